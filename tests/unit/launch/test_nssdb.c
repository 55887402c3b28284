/* SPDX-License-Identifier: MIT */
/* What SQLite finds in the files; what NSS makes of them is in tests/clients/test_browser.py. */
#include "launch/nssdb.c"

#include <fcntl.h>
#include <setjmp.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdlib.h>
#include <unistd.h>
#include <cmocka.h>

/* Version 3, serial 1, an algorithm, issuer CN=a, validity, subject CN=b; a key and a signature are of no interest here. */
static const uint8_t certificate[] = {
	0x30, 0x3a, 0x30, 0x34, 0xa0, 0x03, 0x02, 0x01, 0x02, 0x02, 0x01, 0x01, 0x30, 0x02, 0x06,
	0x00, 0x30, 0x0c, 0x31, 0x0a, 0x30, 0x08, 0x06, 0x03, 0x55, 0x04, 0x03, 0x0c, 0x01, 0x61,
	0x30, 0x04, 0x17, 0x00, 0x17, 0x00, 0x30, 0x0c, 0x31, 0x0a, 0x30, 0x08, 0x06, 0x03, 0x55,
	0x04, 0x03, 0x0c, 0x01, 0x62, 0x30, 0x00, 0x30, 0x02, 0x06, 0x00, 0x03, 0x02, 0x00, 0x01,
};
static char path[] = "/tmp/np-nssdb-XXXXXX";
static struct buf certificates = BUF_INIT(1u << 20), keys = BUF_INIT(1u << 20);

/* The one value that it answers, as text. */
static const char *ask(const struct buf *file, const char *sql)
{
	static char answer[2048];
	sqlite3_stmt *statement;
	sqlite3 *db;
	int fd = open(path, O_WRONLY | O_TRUNC);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, file->data, file->len), file->len);
	close(fd);
	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	if (sqlite3_prepare_v2(db, sql, -1, &statement, NULL) != SQLITE_OK)
		fail_msg("%s: %s", sql, sqlite3_errmsg(db));
	assert_int_equal(sqlite3_step(statement), SQLITE_ROW);
	snprintf(answer, sizeof(answer), "%s", (const char *)sqlite3_column_text(statement, 0) ?: "(null)");
	sqlite3_finalize(statement);
	sqlite3_close(db);
	return answer;
}

static int make(const uint8_t *der, size_t len)
{
	buf_free(&certificates);
	buf_free(&keys);
	certificates = keys = BUF_INIT(1u << 20);
	return nssdb_make(der, len, &certificates, &keys);
}

static void sqlite_reads_it(void **state)
{
	(void)state;
	assert_int_equal(make(certificate, sizeof(certificate)), 0);
	assert_string_equal(ask(&certificates, "PRAGMA integrity_check"), "ok");
	assert_string_equal(ask(&keys, "PRAGMA integrity_check"), "ok");
	assert_string_equal(ask(&certificates, "SELECT count(*) FROM pragma_table_info('nssPublic')"), "120");
	/* By the index, and not: both have it. */
	assert_string_equal(ask(&certificates, "SELECT hex(a11) = hex(a11) || '' FROM nssPublic WHERE id = 1"), "1");
	assert_string_equal(ask(&certificates, "SELECT length(a11) FROM nssPublic WHERE a0 = x'00000001'"), "60");
	assert_string_equal(ask(&certificates, "SELECT hex(a81) FROM nssPublic WHERE id = 2"),
			    "300C310A300806035504030C0161");
	assert_string_equal(ask(&certificates, "SELECT hex(a101) FROM nssPublic WHERE id = 1"),
			    "300C310A300806035504030C0162");
	assert_string_equal(ask(&certificates, "SELECT hex(a82) FROM nssPublic WHERE id = 1"), "020101");
	assert_string_equal(ask(&certificates, "SELECT hex(ace536358) FROM nssPublic WHERE id = 2"), "CE534352");
	assert_string_equal(ask(&keys, "SELECT count(*) FROM nssPrivate"), "0");
	assert_string_equal(
		ask(&keys, "SELECT count(*) FROM metaData WHERE id LIKE 'sig_cert_00000002_%' AND length(item1) = 131"),
		"7");
	assert_string_equal(ask(&keys, "SELECT length(item2) FROM metaData WHERE id = 'password'"), "132");
}

/* As NSS made it of its own object 0x0e799673, but for the salts. */
static void what_is_vouched_for_is_the_value(void **state)
{
	struct attribute one = { TRUST_SERVER, value_bytes(TRUSTED_ISSUER, 4) },
			 other = { TRUST_SERVER, value_bytes(MUST_BE_CHECKED, 4) },
			 third = { TRUST_CLIENT, value_bytes(TRUSTED_ISSUER, 4) };
	uint8_t macs[3][MAC_SIZE];

	(void)state;
	assert_int_equal(MAC_SIZE, 131);
	mac_make(&one, macs[0]);
	mac_make(&other, macs[1]);
	mac_make(&third, macs[2]);
	assert_memory_equal(macs[0], macs[1], MAC_SIZE - 32);
	assert_memory_not_equal(macs[0] + MAC_SIZE - 32, macs[1] + MAC_SIZE - 32, 32);
	assert_memory_not_equal(macs[0] + MAC_SIZE - 32, macs[2] + MAC_SIZE - 32, 32);
}

static void what_is_no_certificate(void **state)
{
	uint8_t bad[sizeof(certificate)], *large = calloc(1, 8192);

	(void)state;
	/* Cut short within the names that are needed. */
	for (size_t len = 0; len < 50; len++)
		assert_int_equal(make(certificate, len), -EINVAL);
	for (size_t i = 0; i < sizeof(certificate); i++)
		for (unsigned bit = 0; bit < 8; bit++) {
			int r;

			memcpy(bad, certificate, sizeof(bad));
			bad[i] ^= (uint8_t)(1u << bit);
			r = make(bad, sizeof(bad));
			assert_true(r == 0 || r == -EINVAL);
		}
	/* One that takes more than its page. */
	assert_non_null(large);
	memcpy(large, certificate, sizeof(certificate));
	assert_int_equal(make(large, 3000), 0);
	assert_string_equal(ask(&certificates, "PRAGMA integrity_check"), "ok");
	assert_int_equal(make(large, 4000), -E2BIG);
	assert_int_equal(make(large, 8192), -E2BIG);
	free(large);
}

static int setup(void **state)
{
	int fd = mkstemp(path);

	(void)state;
	return fd < 0 ? -1 : close(fd);
}

static int teardown(void **state)
{
	(void)state;
	buf_free(&certificates);
	buf_free(&keys);
	return unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sqlite_reads_it),
		cmocka_unit_test(what_is_vouched_for_is_the_value),
		cmocka_unit_test(what_is_no_certificate),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
