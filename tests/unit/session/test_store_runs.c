/* SPDX-License-Identifier: MIT */
/* Runs on record. What the store promises is asked of the file itself, by another connection without our settings: whoever
 * writes there meets the same triggers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants the four above first */
#include <cmocka.h>

#include "session/store_runs.c"

#include "vocab/limits.h"
#include "stranger_fixture.h"

static int runs_setup(void **state)
{
	struct session_row row = { .rung = { .level = LEVEL_PUBLIC, .mode = NP_FULL, .generation = 1 } };
	const char *problem;

	session_name_parse("a/b", &row.name, &problem);
	return stranger_setup(state) || store_session_put(store, &row, NULL);
}

#define store_test(fn) cmocka_unit_test_setup_teardown(fn, runs_setup, stranger_teardown)

static uint64_t asked(enum run_class class)
{
	struct run_row row = { .class = class,
			       .created_us = 10,
			       .expires_us = 1000,
			       .command = "[\"true\"]",
			       .options = "{}",
			       .who = "me" };
	const char *problem;
	uint64_t id = 0;

	assert_int_equal(session_name_parse("a/b", &row.session, &problem), 0);
	assert_int_equal(store_run_put(store, &row, &id), 0);
	return id;
}

static struct run_row got(uint64_t id)
{
	struct run_row row;

	assert_int_equal(store_run_get(store, id, &row), 0);
	return row;
}

static void test_write_needs_its_own_approval(void **state)
{
	uint64_t one = asked(CLASS_WRITE), two = asked(CLASS_WRITE);

	(void)state;
	assert_int_equal(store_run_start(store, one, "box", 20), -EPERM);
	assert_int_equal(got(one).state, RUN_PENDING);
	assert_int_equal(store_run_decide(store, two, true, "boss", "fine", 30), 0);
	assert_int_equal(store_run_start(store, one, "box", 40), -EPERM); /* another run's approval */
	assert_int_equal(store_run_start(store, two, "box", 40), 0);
	assert_int_equal(got(two).state, RUN_RUNNING);
	assert_string_equal(got(two).decider, "boss");
	assert_string_equal(got(two).sandbox, "box");
	assert_int_equal(got(two).expires_us, 30 + 60000000);		      /* a minute, whatever it was before */
	assert_int_equal(store_run_start(store, two, "box2", 50), -EALREADY); /* once */
	assert_int_equal(store_run_end(store, two, RUN_COMPLETED, "{}", 60), 0);
	assert_int_equal(store_run_start(store, two, "box3", 70), -EALREADY);
	assert_int_equal(store_run_end(store, two, RUN_FAILED, "{}", 80), -EALREADY);
	assert_int_equal(got(two).ended_us, 60);
}

static void test_other_classes_need_none(void **state)
{
	(void)state;
	for (enum run_class class = CLASS_NONE; class <= CLASS_READ_ONLY; class ++)
		assert_int_equal(store_run_start(store, asked(class), "box", 20), 0);
}

static void test_rejected_is_final(void **state)
{
	uint64_t write = asked(CLASS_WRITE), none = asked(CLASS_NONE);

	(void)state;
	assert_int_equal(store_run_decide(store, write, false, "boss", "no", 30), 0);
	assert_int_equal(got(write).state, RUN_REJECTED);
	assert_string_equal(got(write).reason, "no");
	assert_int_equal(store_run_decide(store, write, true, "boss", "", 31), -EALREADY);
	assert_int_equal(store_run_start(store, write, "box", 40), -EALREADY);
	assert_int_equal(store_run_decide(store, none, false, "boss", "no", 30), 0);
	assert_int_equal(store_run_start(store, none, "box", 40), -EALREADY);
	assert_int_equal(store_run_decide(store, 999, true, "boss", "", 31), -ENOENT);
}

static void test_approved_is_not_rejected_afterwards(void **state)
{
	uint64_t id = asked(CLASS_WRITE);

	(void)state;
	assert_int_equal(store_run_decide(store, id, true, "boss", "", 30), 0);
	assert_int_equal(store_run_decide(store, id, false, "other", "late", 31), -EALREADY);
	assert_true(got(id).approved);
	assert_int_equal(got(id).expires_us, 30 + 60000000);
	assert_int_equal(store_run_start(store, id, "box", 30 + 60000000), -EALREADY); /* its time is over */
	assert_int_equal(store_run_withdraw(store, id, "daemon", "late", 1001), 0);
	assert_int_equal(got(id).state, RUN_REJECTED);
	assert_int_equal(store_run_start(store, id, "box", 20), -EALREADY);
}

static void test_expired(void **state)
{
	uint64_t id = asked(CLASS_WRITE);

	(void)state;
	assert_int_equal(store_run_withdraw(store, id, "daemon", "late", 1001), 0);
	assert_int_equal(got(id).state, RUN_REJECTED);
	assert_string_equal(got(id).decider, "daemon");
	assert_false(got(id).approved);
	assert_int_equal(store_run_withdraw(store, id, "daemon", "late", 1002), -EALREADY);
}

static void test_file_refuses_unapproved(void **state)
{
	unsigned long long id = asked(CLASS_WRITE);

	(void)state;
	/* The control: the same by a stranger, of a class that needs no approval. */
	assert_int_equal(sql("UPDATE runs SET state = 'running', started_us = 20 WHERE id = %llu",
			     (unsigned long long)asked(CLASS_NONE)),
			 SQLITE_OK);
#define INSERT "INSERT INTO runs (id, session, class, command, state, who, created_us, expires_us, options) VALUES "
	assert_int_equal(sql(INSERT "(70, 'a/b', 'write', 'x', 'pending', '', 1, 2, '{}')"), SQLITE_OK);
	REFUSED(INSERT "(71, 'a/b', 'write', 'x', 'running', '', 1, 2, '{}')");
	REFUSED(INSERT "(71, 'a/b', 'write', 'x', 'completed', '', 1, 2, '{}')");
	REFUSED(INSERT "(71, 'a/b', 'none', 'x', 'running', '', 1, 2, '{}')");
	REFUSED(INSERT "(71, 'a/b', 'WRITE', 'x', 'pending', '', 1, 2, '{}')");
	REFUSED("INSERT OR REPLACE INTO runs (id, session, class, command, state, who, created_us, expires_us, options)"
		" VALUES (%llu, 'a/b', 'none', 'x', 'pending', '', 1, 2, '{}')",
		id);
	REFUSED("UPDATE runs SET state = 'running' WHERE id = %llu", (unsigned long long)asked(CLASS_NONE)); /* when? */
	REFUSED("UPDATE runs SET state = 'running', started_us = 1000 WHERE id = %llu",
		(unsigned long long)asked(CLASS_NONE)); /* too late */
	REFUSED("UPDATE runs SET state = 'running', started_us = 20 WHERE id = %llu", id);
	REFUSED("UPDATE runs SET expires_us = 5000 WHERE id = %llu", id);
	REFUSED("INSERT INTO approvals VALUES (%llu, 1, 'x', '', 1000)", id); /* its time is over */
	REFUSED("UPDATE OR IGNORE runs SET state = 'running' WHERE id = %llu", id);
	REFUSED("UPDATE OR REPLACE runs SET state = 'running' WHERE id = %llu", id);
	REFUSED("UPDATE runs SET state = 'completed' WHERE id = %llu", id);
	REFUSED("UPDATE runs SET class = 'none', state = 'running' WHERE id = %llu", id);
	REFUSED("UPDATE runs SET class = 'none' WHERE id = %llu", id);
	REFUSED("DELETE FROM runs WHERE id = %llu", id);
	assert_int_equal(got(id).state, RUN_PENDING);
}

static void test_file_keeps_what_was_approved(void **state)
{
	unsigned long long id = asked(CLASS_WRITE), none = asked(CLASS_NONE), other = asked(CLASS_WRITE);

	(void)state;
	assert_int_equal(store_run_decide(store, id, true, "boss", "", 30), 0);
	REFUSED("UPDATE runs SET command = '[\"rm\"]' WHERE id = %llu", id);
	REFUSED("UPDATE runs SET options = '{\"user\":\"root\"}' WHERE id = %llu", id);
	REFUSED("UPDATE runs SET launched = 1 WHERE id = %llu", id);
	REFUSED("UPDATE runs SET expires_us = expires_us + 1 WHERE id = %llu", id);
	REFUSED("UPDATE runs SET session = 'x/y' WHERE id = %llu", id);
	REFUSED("UPDATE runs SET id = 900 WHERE id = %llu", id);
	REFUSED("UPDATE runs SET id = %llu WHERE id = %llu", id, other);
	REFUSED("UPDATE runs SET class = 'write' WHERE id = %llu", none);
	REFUSED("UPDATE approvals SET run = %llu", other);
	REFUSED("UPDATE approvals SET approved = 0");
	REFUSED("DELETE FROM approvals");
	REFUSED("INSERT OR REPLACE INTO approvals VALUES (%llu, 1, 'x', '', 1)", id);
	REFUSED("INSERT INTO approvals VALUES (901, 1, 'x', '', 1)"); /* before its run */
	assert_int_equal(store_run_start(store, other, "box", 40), -EPERM);
	assert_int_equal(store_run_decide(store, other, false, "boss", "no", 30), 0);
	REFUSED("UPDATE approvals SET approved = 1 WHERE run = %llu", other);
	REFUSED("UPDATE runs SET state = 'pending' WHERE id = %llu", other);
	REFUSED("UPDATE runs SET state = 'running' WHERE id = %llu", other);
	REFUSED("INSERT INTO approvals VALUES (%llu, 1, 'x', '', 1)", other);
}

static void test_file_reuses_no_approval(void **state)
{
	unsigned long long id = asked(CLASS_WRITE);

	(void)state;
	assert_int_equal(store_run_decide(store, id, true, "boss", "", 30), 0);
	assert_int_equal(store_run_start(store, id, "box", 40), 0);
	assert_int_equal(store_run_end(store, id, RUN_COMPLETED, "{}", 60), 0);
	REFUSED("UPDATE runs SET state = 'running' WHERE id = %llu", id);
	/* A stranger's DELETE leaves the approval behind, for foreign keys are off. No run takes its id. */
	assert_int_equal(sql("DELETE FROM runs WHERE id = %llu", id), SQLITE_OK);
	REFUSED(INSERT "(%llu, 'a/b', 'write', 'x', 'pending', '', 1, 2, '{}')", id);
	assert_true(asked(CLASS_WRITE) > id);
	/* Not even when the numbers are made to begin again. */
	assert_int_equal(sql("DELETE FROM runs; UPDATE runs SET state = 'rejected'; DELETE FROM runs;"),
			 SQLITE_CONSTRAINT);
	assert_int_equal(
		sql("UPDATE runs SET state = 'rejected'; DELETE FROM runs; UPDATE sqlite_sequence SET seq = %llu",
		    id - 1),
		SQLITE_OK);
	REFUSED("INSERT INTO runs (session, class, command, state, who, created_us, expires_us, options) VALUES"
		" ('a/b', 'write', 'x', 'pending', '', 1, 2, '{}')");
}

static int count(void *data, const struct run_row *row)
{
	(void)row;
	++*(unsigned *)data;
	return 0;
}

static void test_bounds(void **state)
{
	struct run_row row = { .class = CLASS_WRITE,
			       .created_us = 10,
			       .expires_us = 1000,
			       .command = "[]",
			       .options = "{}",
			       .who = "me" };
	const char *problem;
	unsigned n = 0;
	uint64_t id;

	(void)state;
	session_name_parse("no/such", &row.session, &problem);
	assert_int_equal(store_run_put(store, &row, &id), -ENOENT);
	session_name_parse("a/b", &row.session, &problem);
	assert_int_equal(sql("BEGIN; WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d)"
			     "INSERT INTO runs (session, class, command, state, who, created_us, expires_us, options)"
			     " SELECT 'a/b', 'none', 'x', 'pending', '', 1, 2, '{}' FROM n; COMMIT",
			     NP_RUNS_PENDING),
			 SQLITE_OK);
	assert_int_equal(store_run_put(store, &row, &id), -E2BIG);
	assert_int_equal(sql("UPDATE runs SET state = 'rejected'"), SQLITE_OK);
	for (int i = 0; i < NP_RUNS_KEPT / NP_RUNS_PENDING; i++)
		assert_int_equal(
			sql("INSERT INTO runs (session, class, command, state, who, created_us, expires_us, options)"
			    " SELECT 'a/b', 'none', 'x', 'pending', '', 1, 2, '{}' FROM runs LIMIT %d;"
			    "UPDATE runs SET state = 'rejected'",
			    NP_RUNS_PENDING),
			SQLITE_OK);
	assert_int_equal(store_run_put(store, &row, &id), 0);
	assert_int_equal(store_runs_each(store, "a/b", count, &n), 0);
	assert_int_equal(n, NP_RUNS_KEPT);
	n = 0;
	assert_int_equal(store_runs_open_each(store, count, &n), 0);
	assert_int_equal(n, 1);
}

/* One user's runs that wait leave room for another's, whichever of his processes asked. */
static void test_each_user_has_a_share(void **state)
{
	struct run_row row = { .class = CLASS_WRITE,
			       .created_us = 10,
			       .expires_us = 1000,
			       .command = "[]",
			       .options = "{}",
			       .who = "uid 7 pid 1" };
	const char *problem;
	uint64_t id;

	(void)state;
	session_name_parse("a/b", &row.session, &problem);
	assert_int_equal(sql("BEGIN; WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d)"
			     "INSERT INTO runs (session, class, command, state, who, created_us, expires_us, options)"
			     " SELECT 'a/b', 'none', 'x', 'pending', 'uid 7 pid ' || i, 1, 2, '{}' FROM n; COMMIT",
			     NP_RUNS_PER_USER - 1),
			 SQLITE_OK);
	assert_int_equal(store_run_put(store, &row, &id), 0);
	assert_int_equal(store_run_put(store, &row, &id), -EDQUOT);
	strcpy(row.who, "uid 77 pid 1");
	assert_int_equal(store_run_put(store, &row, &id), 0);
	strcpy(row.who, "uid 7 pid 2");
	assert_int_equal(store_run_put(store, &row, &id), -EDQUOT);
	assert_int_equal(sql("UPDATE runs SET state = 'rejected' WHERE who = 'uid 7 pid 3'"), SQLITE_OK);
	assert_int_equal(store_run_put(store, &row, &id), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		store_test(test_write_needs_its_own_approval),
		store_test(test_other_classes_need_none),
		store_test(test_rejected_is_final),
		store_test(test_approved_is_not_rejected_afterwards),
		store_test(test_expired),
		store_test(test_file_refuses_unapproved),
		store_test(test_file_keeps_what_was_approved),
		store_test(test_file_reuses_no_approval),
		store_test(test_bounds),
		store_test(test_each_user_has_a_share),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
