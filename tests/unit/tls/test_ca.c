/* SPDX-License-Identifier: MIT */
#include <stdint.h>

#include "loop/loop.h"

/* A clock that the tests set. */
static uint64_t test_wall_us(void);
#define loop_wall_us test_wall_us
#include "tls/ca.c"
#undef loop_wall_us

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <cmocka.h>

#include "certs.h"
#include "vocab/limits.h"

static struct ca *ca;
static int64_t ahead_s; /* of the real time */

static uint64_t test_wall_us(void)
{
	return loop_wall_us() + (uint64_t)(ahead_s * 1000000);
}

static int setup(void **state)
{
	(void)state;
	return ca_new("alice/work", &ca);
}

static int teardown(void **state)
{
	(void)state;
	ca_free(ca);
	return 0;
}

static struct host host_of(const char *text)
{
	struct host host;

	assert_int_equal(host_parse(text, strlen(text), &host), 0);
	return host;
}

static SSL *server_of(struct ca *from, const char *text)
{
	struct host host = host_of(text);
	SSL *ssl;

	assert_int_equal(ca_server(from, &host, &ssl), 0);
	return ssl;
}

/* A careful client that trusts the authority, as it gets it from the PEM text, and nobody else. */
static SSL_CTX *client_of(struct ca *from)
{
	SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());
	_buf_ struct buf pem = BUF_INIT(1 << 16);
	X509_VERIFY_PARAM *param = SSL_CTX_get0_param(ctx);
	X509 *cert;
	BIO *bio;

	assert_int_equal(ca_pem(from, &pem), 0);
	bio = BIO_new_mem_buf(pem.data, (int)pem.len);
	cert = PEM_read_bio_X509(bio, NULL, NULL, NULL);
	assert_non_null(cert);
	X509_STORE_add_cert(SSL_CTX_get_cert_store(ctx), cert);
	X509_free(cert);
	BIO_free(bio);
	SSL_CTX_set_security_level(ctx, 2);
	X509_VERIFY_PARAM_set_flags(param, X509_V_FLAG_X509_STRICT);
	SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER, NULL);
	return ctx;
}

/* NULL, or what the client did not like. session: offered when it is not NULL, replaced by the newest. */
static SSL_SESSION *newest;
static int on_new(SSL *ssl, SSL_SESSION *session)
{
	(void)ssl;
	SSL_SESSION_free(newest);
	newest = session;
	return 1;
}

struct attempt {
	const char *server, *name; /* what the server is, and what the client wants */
	int version;
	const char *alpn;
	bool resume;
	/* What came of it. */
	bool reused;
	char protocol[16];
	X509 *leaf;
};

static const char *attempt(SSL_CTX *ctx, struct ca *from, struct attempt *a)
{
	SSL *server = server_of(from, a->server), *client = SSL_new(ctx);
	struct host wanted = host_of(a->name);
	const char *problem = NULL;
	const unsigned char *proto;
	unsigned len;

	SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
	SSL_CTX_sess_set_new_cb(ctx, on_new);
	SSL_set_connect_state(client);
	if (a->version) {
		SSL_set_min_proto_version(client, a->version);
		SSL_set_max_proto_version(client, a->version);
	}
	if (wanted.is_addr) {
		X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(client), strtok(strdupa(a->name), "[]"));
	} else {
		SSL_set1_host(client, a->name);
		SSL_set_tlsext_host_name(client, a->name);
	}
	if (a->alpn)
		SSL_set_alpn_protos(client, (const unsigned char *)a->alpn, (unsigned)strlen(a->alpn));
	if (a->resume && newest)
		SSL_set_session(client, newest);
	if (!test_shake(client, server)) {
		problem = X509_verify_cert_error_string(SSL_get_verify_result(client));
	} else {
		a->reused = SSL_session_reused(client);
		assert_int_equal(SSL_session_reused(server), a->reused);
		SSL_get0_alpn_selected(server, &proto, &len);
		snprintf(a->protocol, sizeof(a->protocol), "%.*s", (int)len, proto);
		X509_free(a->leaf);
		a->leaf = SSL_get1_peer_certificate(client);
	}
	SSL_free(client);
	SSL_free(server);
	return problem;
}

static void test_names(void **state)
{
	static const char longest[] =
		"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa.bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb.test";
	static const char *const hosts[] = {
		"a.test", "x.y.a.test", "192.0.2.9", "[2001:db8::9]", "a_b.test", longest
	};
	SSL_CTX *ctx = client_of(ca);

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(hosts); i++)
		for (int version = TLS1_2_VERSION; version <= TLS1_3_VERSION; version++) {
			struct attempt a = { .server = hosts[i], .name = hosts[i], .version = version };

			assert_null(attempt(ctx, ca, &a));
			X509_free(a.leaf);
		}
	assert_string_equal(attempt(ctx, ca, &(struct attempt){ .server = "a.test", .name = "b.test" }),
			    "hostname mismatch");
	assert_string_equal(attempt(ctx, ca, &(struct attempt){ .server = "a.test", .name = "x.a.test" }),
			    "hostname mismatch");
	assert_string_equal(attempt(ctx, ca, &(struct attempt){ .server = "192.0.2.1", .name = "192.0.2.2" }),
			    "IP address mismatch");
	assert_int_equal(lru_count(ca->leaves), ARRAY_SIZE(hosts) + 1);
	SSL_CTX_free(ctx);
}

static void test_authorities_differ(void **state)
{
	struct ca *other;
	SSL_CTX *ctx = client_of(ca);

	(void)state;
	assert_int_equal(ca_new("alice/work", &other), 0);
	assert_non_null(attempt(ctx, other, &(struct attempt){ .server = "a.test", .name = "a.test" }));
	assert_int_not_equal(ASN1_INTEGER_cmp(X509_get0_serialNumber(other->cert), X509_get0_serialNumber(ca->cert)),
			     0);
	ca_free(other);
	ca_free(NULL);
	SSL_CTX_free(ctx);
}

static long seconds_from_now(const ASN1_TIME *time)
{
	int days, seconds;

	assert_int_equal(ASN1_TIME_diff(&days, &seconds, NULL, time), 1);
	return days * TEST_DAY + seconds;
}

static void near(long value, long wanted)
{
	assert_in_range(value + 1000 * TEST_DAY, wanted + 1000 * TEST_DAY - 30, wanted + 1000 * TEST_DAY + 30);
}

static void test_contents(void **state)
{
	struct attempt a = { .server = "a.test", .name = "a.test" };
	SSL_CTX *ctx = client_of(ca);
	char name[128];

	(void)state;
	X509_NAME_get_text_by_NID(X509_get_subject_name(ca->cert), NID_commonName, name, sizeof(name));
	assert_string_equal(name, "netpawl alice/work");
	assert_int_equal(X509_check_ca(ca->cert), 1);
	assert_int_equal(X509_get_pathlen(ca->cert), 0);
	assert_int_equal(X509_get_key_usage(ca->cert), KU_KEY_CERT_SIGN | KU_CRL_SIGN);
	assert_non_null(X509_get0_subject_key_id(ca->cert));
	near(seconds_from_now(X509_get0_notBefore(ca->cert)), -366 * TEST_DAY);
	near(seconds_from_now(X509_get0_notAfter(ca->cert)), (20 * 365 + 5) * TEST_DAY);

	assert_null(attempt(ctx, ca, &a));
	assert_int_equal(X509_check_ca(a.leaf), 0);
	assert_int_equal(X509_get_key_usage(a.leaf), KU_DIGITAL_SIGNATURE);
	assert_int_equal(X509_get_extended_key_usage(a.leaf), XKU_SSL_SERVER);
	assert_int_equal(ASN1_OCTET_STRING_cmp(X509_get0_authority_key_id(a.leaf), X509_get0_subject_key_id(ca->cert)),
			 0);
	near(seconds_from_now(X509_get0_notBefore(a.leaf)), -3600);
	near(seconds_from_now(X509_get0_notAfter(a.leaf)), 8 * TEST_DAY);
	assert_int_equal(ASN1_STRING_length(X509_get0_serialNumber(a.leaf)), 16);
	X509_free(a.leaf);
	SSL_CTX_free(ctx);
}

static void test_session_names(void **state)
{
	char longest[200], name[128];
	struct ca *made;

	(void)state;
	memset(longest, 'x', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = '\0';
	assert_int_equal(ca_new(longest, &made), 0);
	assert_int_equal(
		X509_NAME_get_text_by_NID(X509_get_subject_name(made->cert), NID_commonName, name, sizeof(name)), 64);
	assert_string_equal(name + 61, "...");
	ca_free(made);
	assert_int_equal(ca_new("\xff\xfe", &made), -EINVAL);
}

static void test_alpn(void **state)
{
	static const struct {
		const char *offered, *chosen;
	} cases[] = {
		{ "\2h2\10http/1.1", "h2" },
		{ "\10http/1.1\2h2", "h2" },
		{ "\10http/1.1", "http/1.1" },
		{ "\10http/1.0\2h3", "" },
		{ NULL, "" },
		{ "\3h2x\2hx\1h", "" },
		{ "\10http/1.0\10http/1.1", "http/1.1" },
	};
	SSL_CTX *ctx = client_of(ca);

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct attempt a = { .server = "a.test", .name = "a.test", .alpn = cases[i].offered };

		assert_null(attempt(ctx, ca, &a));
		assert_string_equal(a.protocol, cases[i].chosen);
		X509_free(a.leaf);
	}
	SSL_CTX_free(ctx);
}

static void test_old_versions(void **state)
{
	SSL_CTX *ctx = client_of(ca);

	(void)state;
	SSL_CTX_set_security_level(ctx, 0);
	assert_non_null(
		attempt(ctx, ca, &(struct attempt){ .server = "a.test", .name = "a.test", .version = TLS1_1_VERSION }));
	SSL_CTX_free(ctx);
}

/* -- other workers ------------------------------------------------------------ */

static void resume_with(int version)
{
	struct attempt a = { .server = "a.test", .name = "a.test", .version = version };
	_buf_ struct buf blob = BUF_INIT(1 << 16);
	SSL_CTX *ctx = client_of(ca);
	struct ca *twin, *stranger;

	assert_null(attempt(ctx, ca, &a));
	a.resume = true;
	assert_null(attempt(ctx, ca, &a));
	assert_true(a.reused);
	assert_int_equal(ca_export(ca, &blob), 0);
	assert_int_equal(ca_import(blob.data, blob.len, &twin), 0);
	assert_null(attempt(ctx, twin, &a));
	assert_true(a.reused);
	assert_null(attempt(ctx, ca, &a));
	assert_true(a.reused);
	/* A ticket is good for the host that gave it. */
	a.server = a.name = "b.test";
	assert_null(attempt(ctx, ca, &a));
	assert_false(a.reused);
	/* Another authority's tickets are noise. */
	assert_int_equal(ca_new("bob/work", &stranger), 0);
	assert_non_null(attempt(ctx, stranger, &a));
	X509_free(a.leaf);
	SSL_SESSION_free(newest);
	newest = NULL;
	ca_free(twin);
	ca_free(stranger);
	SSL_CTX_free(ctx);
}

static void test_resume_13(void **state)
{
	(void)state;
	resume_with(TLS1_3_VERSION);
}

static void test_resume_12(void **state)
{
	(void)state;
	resume_with(TLS1_2_VERSION);
}

static void test_import_refuses(void **state)
{
	_buf_ struct buf blob = BUF_INIT(1 << 16), more = BUF_INIT(1 << 16), small = BUF_INIT(100);
	struct ca *other, *made = NULL;
	size_t key_size;

	(void)state;
	assert_int_equal(ca_export(ca, &blob), 0);
	assert_int_equal(ca_export(ca, &small), -E2BIG);
	for (size_t len = 0; len < blob.len; len++) {
		char *exact = malloc(len ? len : 1); /* for ASan */

		memcpy(exact, blob.data, len);
		assert_int_equal(ca_import(exact, len, &made), -EINVAL);
		free(exact);
	}
	buf_append(&more, blob.data, blob.len);
	buf_append(&more, "x", 1);
	assert_int_equal(ca_import(more.data, more.len, &made), -EINVAL);

	/* The key of one and the certificate of another. */
	assert_int_equal(ca_new("bob/work", &other), 0);
	buf_clear(&more);
	assert_int_equal(ca_export(other, &more), 0);
	key_size = (size_t)((unsigned char)blob.data[8] << 8 | (unsigned char)blob.data[9]);
	memcpy(more.data + 10, blob.data + 10, key_size);
	assert_int_equal(ca_import(more.data, more.len, &made), -EINVAL);

	/* A certificate that is not as it was signed: the last byte of its signature, before the ticket keys. */
	buf_clear(&more);
	buf_append(&more, blob.data, blob.len);
	more.data[more.len - TICKET_KEYS - 1] ^= 1;
	assert_int_equal(ca_import(more.data, more.len, &made), -EINVAL);
	assert_null(made);
	assert_int_equal(ERR_peek_error(), 0);
	ca_free(other);
}

/* -- leaves ---------------------------------------------------------------------- */

static void test_leaves_are_bounded(void **state)
{
	SSL *ssl, *first = server_of(ca, "h0.test");
	X509 *leaf = SSL_get_certificate(first);
	char name[32];

	(void)state;
	for (int i = 0; i < NP_LEAVES_MAX + 10; i++) {
		snprintf(name, sizeof(name), "h%d.test", i);
		SSL_free(server_of(ca, name));
		if (i % 100 == 0) { /* the same leaf as long as it is used */
			ssl = server_of(ca, "h0.test");
			assert_ptr_equal(SSL_get_certificate(ssl), leaf);
			SSL_free(ssl);
		}
	}
	assert_int_equal(lru_count(ca->leaves), NP_LEAVES_MAX);
	SSL_free(first);
}

/* A leaf in the table that is about to end is replaced, unless its authority ends as well. */
static void test_leaf_renewed(void **state)
{
	struct host host = host_of("a.test");
	unsigned char key[LRU_KEY_MAX];
	size_t len = host_key(&host, 0, key);
	SSL *ssl = server_of(ca, "a.test"), *again;
	X509 *leaf = lru_get(ca->leaves, key, len);

	(void)state;
	X509_gmtime_adj(X509_getm_notAfter(leaf), RENEW_S - 60);
	again = server_of(ca, "a.test");
	assert_ptr_not_equal(SSL_get_certificate(again), SSL_get_certificate(ssl));
	SSL_free(again);
	SSL_free(ssl);

	X509_gmtime_adj(X509_getm_notAfter(ca->cert), 1000);
	ssl = server_of(ca, "b.test");
	near(seconds_from_now(X509_get0_notAfter(SSL_get_certificate(ssl))), 1000);
	again = server_of(ca, "b.test");
	assert_ptr_equal(SSL_get_certificate(again), SSL_get_certificate(ssl));
	SSL_free(again);
	SSL_free(ssl);
}

/* A program that read what it trusts when it started, and the workers' clock in a hurry: the leaves are renewed, and it
 * goes on. Also when the clock was wrong at the start, and is put back. */
static void test_a_session_of_many_years(void **state)
{
	static const long days[] = { 0, 6, 7, 8, 9, 11, 40, 41, 400, 3650, 7000, 7290, 12, -20, -300, 0 };
	SSL_CTX *ctx = client_of(ca);
	unsigned renewed = 0;
	X509 *last = NULL;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(days); i++) {
		struct attempt a = { .server = "a.test", .name = "a.test" };

		ahead_s = days[i] * TEST_DAY;
		X509_VERIFY_PARAM_set_time(SSL_CTX_get0_param(ctx), (time_t)(test_wall_us() / 1000000));
		assert_null(attempt(ctx, ca, &a));
		renewed += last && X509_cmp(last, a.leaf) != 0;
		X509_free(last);
		last = a.leaf;
	}
	ahead_s = 0;
	X509_free(last);
	SSL_CTX_free(ctx);
	assert_int_equal(renewed, 10); /* on days 6, 8, 9, 11 and 41 the last one is still good */
}

static void test_ssl_outlives_authority(void **state)
{
	struct ca *made;
	SSL_CTX *ctx;
	SSL *server, *client;

	(void)state;
	assert_int_equal(ca_new("alice/short", &made), 0);
	ctx = client_of(made);
	server = server_of(made, "a.test");
	ca_free(made);
	client = SSL_new(ctx);
	SSL_set_connect_state(client);
	assert_true(test_shake(client, server));
	SSL_free(client);
	SSL_free(server);
	SSL_CTX_free(ctx);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_names, setup, teardown),
		cmocka_unit_test_setup_teardown(test_authorities_differ, setup, teardown),
		cmocka_unit_test_setup_teardown(test_contents, setup, teardown),
		cmocka_unit_test_setup_teardown(test_session_names, setup, teardown),
		cmocka_unit_test_setup_teardown(test_alpn, setup, teardown),
		cmocka_unit_test_setup_teardown(test_old_versions, setup, teardown),
		cmocka_unit_test_setup_teardown(test_resume_13, setup, teardown),
		cmocka_unit_test_setup_teardown(test_resume_12, setup, teardown),
		cmocka_unit_test_setup_teardown(test_import_refuses, setup, teardown),
		cmocka_unit_test_setup_teardown(test_leaves_are_bounded, setup, teardown),
		cmocka_unit_test_setup_teardown(test_leaf_renewed, setup, teardown),
		cmocka_unit_test_setup_teardown(test_a_session_of_many_years, setup, teardown),
		cmocka_unit_test_setup_teardown(test_ssl_outlives_authority, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
