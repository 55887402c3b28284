/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants the four above first */
#include <cmocka.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/sql.c"

static char dir[] = "/tmp/npt-sql-XXXXXX";
static char path[64];
static sqlite3 *db;

static sqlite3 *opened(int flags)
{
	sqlite3 *made = NULL;

	assert_int_equal(sqlite3_open_v2(path, &made, flags | SQLITE_OPEN_EXRESCODE, NULL), SQLITE_OK);
	return made;
}

static int setup(void **state)
{
	(void)state;
	strcpy(dir, "/tmp/npt-sql-XXXXXX");
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/db", dir);
	db = opened(SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE);
	assert_int_equal(sql_exec(db,
				  "PRAGMA foreign_keys = ON;"
				  "CREATE TABLE t (name TEXT PRIMARY KEY, n INTEGER NOT NULL) STRICT, WITHOUT ROWID;"
				  "CREATE TABLE u (name TEXT REFERENCES t (name));"
				  "CREATE TRIGGER stay BEFORE DELETE ON t BEGIN SELECT RAISE(ABORT, 'no'); END"),
			 0);
	return 0;
}

static int teardown(void **state)
{
	static const char *const names[] = { "db", "db-wal", "db-shm", "db-journal" };
	char name[96];

	(void)state;
	sqlite3_close(db);
	for (size_t i = 0; i < 4; i++) {
		snprintf(name, sizeof(name), "%s/%s", dir, names[i]);
		unlink(name);
	}
	assert_int_equal(rmdir(dir), 0);
	return 0;
}

static void test_statements(void **state)
{
	sqlite3_stmt *insert = NULL, *get = NULL, *update = NULL;
	char text[4] = "?";
	uint64_t n = 7;
	int changes = -1;

	(void)state;
	assert_int_equal(sql_prepare(db, "INSERT INTO t VALUES (?1, ?2)", &insert), 0);
	assert_int_equal(sql_prepare(db, "SELECT n, name FROM t WHERE name = ?1", &get), 0);
	assert_int_equal(sql_prepare(db, "UPDATE t SET n = n + 1", &update), 0);
	sql_bind_text(get, 1, "abc");
	assert_int_equal(sql_query(get, &n), 0);
	assert_int_equal(n, 0);
	sql_bind_text(get, 1, "abc");
	assert_int_equal(sql_row(get), -ENOENT);
	sql_done(get);
	sql_bind_text(insert, 1, "abc");
	sql_bind_number(insert, 2, UINT64_MAX);
	assert_int_equal(sql_run(insert, &changes), 0);
	assert_int_equal(changes, 1);
	/* Ready for the next use, and with nothing of the last one: NULL is refused. */
	assert_int_equal(sql_run(insert, NULL), -EIO);
	sql_bind_text(get, 1, "abc");
	assert_int_equal(sql_row(get), 0);
	assert_true(sql_column_number(get, 0) == UINT64_MAX);
	assert_int_equal(sql_column_copy(get, 1, text, 3), -EUCLEAN);
	assert_string_equal(text, "?");
	assert_int_equal(sql_column_copy(get, 1, text, 4), 0);
	assert_string_equal(text, "abc");
	sql_done(get);
	sql_bind_text(insert, 1, "abd");
	sql_bind_number(insert, 2, 1);
	assert_int_equal(sql_run(insert, NULL), 0);
	assert_int_equal(sql_run(update, &changes), 0);
	assert_int_equal(changes, 2);
	sqlite3_finalize(insert);
	sqlite3_finalize(get);
	sqlite3_finalize(update);
}

static void test_numbers(void **state)
{
	sqlite3_stmt *none = NULL;
	uint64_t n = 7;

	(void)state;
	assert_int_equal(sql_number(db, "SELECT 5", &n), 0);
	assert_int_equal(n, 5);
	assert_int_equal(sql_number(db, "SELECT n FROM t", &n), -ENODATA);
	assert_int_equal(sql_number(db, "SELECT nonsense", &n), -EIO);
	assert_int_equal(n, 5);
	assert_int_equal(sql_prepare(db, "nonsense", &none), -EIO);
	assert_null(none);
	assert_int_equal(sql_use_wal(db), 0);
}

static void test_constraints(void **state)
{
	(void)state;
	assert_int_equal(sql_exec(db, "INSERT INTO t VALUES ('a', 1)"), 0);
	assert_int_equal(sql_exec(db, "INSERT INTO t VALUES ('a', 2)"), -EEXIST);
	assert_int_equal(sql_exec(db, "INSERT INTO u VALUES ('b')"), -ENOENT);
	assert_int_equal(sql_exec(db, "DELETE FROM t"), -EPERM);
}

static void test_transactions(void **state)
{
	uint64_t n = 7;

	(void)state;
	assert_int_equal(sql_begin(db), 0);
	assert_int_equal(sql_exec(db, "INSERT INTO t VALUES ('a', 1)"), 0);
	assert_int_equal(sql_end(db, -E2BIG), -E2BIG);
	assert_int_equal(sql_number(db, "SELECT count(*) FROM t", &n), 0);
	assert_int_equal(n, 0);
	assert_int_equal(sql_begin(db), 0);
	assert_int_equal(sql_exec(db, "INSERT INTO t VALUES ('a', 1)"), 0);
	assert_int_equal(sql_end(db, 0), 0);
	assert_int_equal(sql_number(db, "SELECT count(*) FROM t", &n), 0);
	assert_int_equal(n, 1);
	assert_int_equal(sql_end(db, 0), -EIO); /* there is none */
}

/* What is wrong with a database has its own error, and its own words. */
static void test_locked(void **state)
{
	sqlite3 *other = opened(SQLITE_OPEN_READWRITE);

	(void)state;
	assert_int_equal(sql_begin(other), 0);
	assert_int_equal(sql_begin(db), -EBUSY);
	assert_non_null(strstr(sql_strerror(-EBUSY), "locked"));
	assert_int_equal(sql_end(other, 0), 0);
	sqlite3_close(other);
	assert_int_equal(sql_begin(db), 0);
	assert_int_equal(sql_end(db, 0), 0);
}

static void test_read_only(void **state)
{
	sqlite3 *other = opened(SQLITE_OPEN_READONLY);

	(void)state;
	assert_int_equal(sql_exec(other, "INSERT INTO t VALUES ('a', 1)"), -EROFS);
	assert_non_null(strstr(sql_strerror(-EROFS), "read-only"));
	sqlite3_close(other);
}

static void test_full(void **state)
{
	(void)state;
	assert_int_equal(sql_exec(db, "PRAGMA max_page_count = 1"), 0);
	assert_int_equal(sql_exec(db, "INSERT INTO u SELECT NULL FROM (WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL "
				      "SELECT x + 1 FROM c LIMIT 100000) SELECT x FROM c)"),
			 -ENOSPC);
	assert_non_null(strstr(sql_strerror(-ENOSPC), "space"));
}

/* Overwrites the file from an offset on. */
static void spoil(off_t from)
{
	static const char junk[4096] = "This is no page of a database.";
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	for (off_t at = from; at < 65536; at += (off_t)sizeof(junk))
		assert_int_equal(pwrite(fd, junk, sizeof(junk), at), sizeof(junk));
	close(fd);
}

static void test_corrupt(void **state)
{
	uint64_t n;

	(void)state;
	assert_int_equal(sql_exec(db, "INSERT INTO t VALUES ('a', 1)"), 0);
	sqlite3_close(db);
	spoil(4096);
	db = opened(SQLITE_OPEN_READWRITE);
	assert_int_equal(sql_number(db, "SELECT sum(n) FROM t", &n), -EUCLEAN);
	assert_non_null(strstr(sql_strerror(-EUCLEAN), "corrupt"));
	sqlite3_close(db);
	spoil(0);
	db = opened(SQLITE_OPEN_READWRITE);
	assert_int_equal(sql_number(db, "SELECT sum(n) FROM t", &n), -EPROTO);
	assert_non_null(strstr(sql_strerror(-EPROTO), "not a database"));
}

static void test_codes(void **state)
{
	(void)state;
	assert_int_equal(sql_errno(NULL, SQLITE_OK), 0);
	assert_int_equal(sql_errno(NULL, SQLITE_NOMEM), -ENOMEM);
	assert_int_equal(sql_errno(NULL, SQLITE_PERM), -EACCES);
	assert_int_equal(sql_errno(NULL, SQLITE_CONSTRAINT), -EIO);
	/* Never -ENOENT: whoever reads a row would take it for "no such row". */
	assert_int_equal(sql_errno(NULL, SQLITE_CANTOPEN), -EIO);
	assert_string_equal(sql_strerror(-EIO), strerror(EIO));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_statements, setup, teardown),
		cmocka_unit_test_setup_teardown(test_numbers, setup, teardown),
		cmocka_unit_test_setup_teardown(test_constraints, setup, teardown),
		cmocka_unit_test_setup_teardown(test_transactions, setup, teardown),
		cmocka_unit_test_setup_teardown(test_locked, setup, teardown),
		cmocka_unit_test_setup_teardown(test_read_only, setup, teardown),
		cmocka_unit_test_setup_teardown(test_full, setup, teardown),
		cmocka_unit_test_setup_teardown(test_corrupt, setup, teardown),
		cmocka_unit_test(test_codes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
