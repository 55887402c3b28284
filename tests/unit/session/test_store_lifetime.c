/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants the four above first */
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "session/store_lifetime.c"
#include "store_fixture.h"

static int sql(const char *text)
{
	return sqlite3_exec(store->db, text, NULL, NULL, NULL);
}

static struct session_name name_of(const char *text)
{
	struct session_name name;
	const char *problem;

	assert_int_equal(session_name_parse(text, &name, &problem), 0);
	return name;
}

static int put(const char *name, enum level level, enum np_mode mode, uint32_t generation, bool temporary)
{
	const struct session_row row = { .name = name_of(name),
					 .rung = { .level = level, .mode = mode, .generation = generation },
					 .created_us = 5,
					 .temporary = temporary };

	return store_session_put(store, &row, NULL);
}

static int forget(const char *name)
{
	const struct session_name one = name_of(name);

	return store_sessions_forget(store, &one, 1, 50);
}

static void gone(const char *name, enum level level, enum np_mode mode, uint32_t generation)
{
	assert_int_equal(put(name, level, mode, generation, false), 0);
	assert_int_equal(store_session_end(store, name, false, 40), 0);
	assert_int_equal(forget(name), 0);
}

static void assert_remembered(const char *name, enum level level, enum np_mode mode, uint32_t generation)
{
	struct np_rung rung = { 0 };

	assert_int_equal(store_level_get(store, name, &rung), 0);
	assert_int_equal(rung.level, level);
	assert_int_equal(rung.mode, mode);
	assert_int_equal(rung.generation, generation);
}

static void test_a_session_goes_and_its_level_stays(void **state)
{
	const struct dataset_row dataset = { .name = "d", .level = LEVEL_SECRET };
	struct notice_row notice = { .rung = { .level = LEVEL_SECRET, .mode = NP_NONE }, .text = "t" };
	const struct np_rung secret = { .level = LEVEL_SECRET, .mode = NP_NONE, .generation = 3 };
	struct session_row row;
	struct np_rung rung;

	(void)state;
	assert_int_equal(put("a/b", LEVEL_PUBLIC, NP_FULL, 1, false), 0);
	assert_int_equal(store_session_raise(store, "a/b", &secret, &dataset, &notice, NULL), 0);
	assert_int_equal(store_reader_put(store, "a/b", "r", 1), 0);
	assert_int_equal(forget("a/b"), -EPERM); /* it has not ended */
	assert_int_equal(store_level_get(store, "a/b", &rung), -ENOENT);
	assert_int_equal(store_session_end(store, "a/b", false, 40), 0);
	assert_int_equal(forget("a/b"), 0);
	assert_int_equal(forget("a/b"), -ENOENT);
	assert_int_equal(store_session_get(store, "a/b", &row), -ENOENT);
	assert_int_equal(store_sessions_count(store), 0);
	assert_int_equal(store_sessions_ended(store), 0);
	assert_int_equal(store_levels_count(store), 1);
	reopen();
	assert_int_equal(store_levels_count(store), 1);
	assert_remembered("a/b", LEVEL_SECRET, NP_NONE, 3);
	/* Lower it does not come back; as high it does, and has none of what it had. */
	assert_int_equal(put("a/b", LEVEL_PUBLIC, NP_FULL, 1, false), -EPERM);
	assert_int_equal(put("a/b", LEVEL_SECRET, NP_NONE, 3, false), 0);
	assert_int_equal(store_session_get(store, "a/b", &row), 0);
	assert_int_equal(row.datasets, 0);
	/* A second time: the maximum. */
	assert_int_equal(store_session_raise(store, "a/b", &(struct np_rung){ .mode = NP_FULL, .generation = 9 }, NULL,
					     NULL, NULL),
			 0);
	assert_int_equal(store_session_end(store, "a/b", false, 41), 0);
	assert_int_equal(forget("a/b"), 0);
	assert_remembered("a/b", LEVEL_SECRET, NP_NONE, 9);
	assert_int_equal(store_levels_count(store), 1);
	/* What never rose has nothing to remember. */
	gone("a/public", LEVEL_PUBLIC, NP_FULL, 1);
	assert_int_equal(store_level_get(store, "a/public", &rung), -ENOENT);
	gone("a/internal", LEVEL_INTERNAL, NP_FULL, 2);
	assert_remembered("a/internal", LEVEL_INTERNAL, NP_FULL, 2);
	gone("a/tight", LEVEL_PUBLIC, NP_PROXIED, 2); /* by a stricter policy */
	assert_remembered("a/tight", LEVEL_PUBLIC, NP_PROXIED, 2);
}

#define COLUMNS "(name, level, mode, generation, created_us, ended_us, temporary)"

/* Whoever writes to the file: no order of statements makes a/high (SECRET, ended), a/live (SECRET, open) or a/gone (SECRET,
 * forgotten) lower. Each line is one attack; what an earlier part of it may do is undone. */
static void test_no_statement_lowers(void **state)
{
	static const char *const attacks[] = {
		"DELETE FROM sessions",
		"DELETE FROM sessions WHERE name = 'a/live'",
		"DELETE FROM sessions WHERE name = 'a/high'",
		"INSERT OR REPLACE INTO sessions " COLUMNS " VALUES ('a/high', 0, 1, 1, 1, NULL, 0)",
		"REPLACE INTO sessions " COLUMNS " VALUES ('a/live', 0, 1, 1, 1, NULL, 1)",
		"INSERT INTO sessions " COLUMNS " VALUES ('a/gone', 0, 1, 1, 1, NULL, 0)",
		"INSERT INTO sessions " COLUMNS " VALUES ('a/gone', 0, 1, 1, 1, NULL, 1)", /* temporary or not */
		"INSERT OR REPLACE INTO sessions " COLUMNS " VALUES ('a/gone', 3, 1, 9, 1, NULL, 0)",
		"INSERT INTO sessions " COLUMNS " VALUES ('a/gone', 3, 3, 1, 1, NULL, 0)", /* the generation */
		/* to be deleted as one that leaves nothing */
		"UPDATE sessions SET temporary = 1 WHERE name = 'a/high'",
		/* the level first */
		"DELETE FROM levels",
		"UPDATE levels SET level = 0 WHERE name = 'a/gone'",
		"UPDATE levels SET mode = 1 WHERE name = 'a/gone'",
		"UPDATE levels SET generation = 0 WHERE name = 'a/gone'",
		"UPDATE levels SET name = 'a/other' WHERE name = 'a/gone'",
		"INSERT OR REPLACE INTO levels VALUES ('a/gone', 0, 1, 1, 1, 0)",
		"REPLACE INTO levels VALUES ('a/gone', 0, 1, 1, 1, 1)",
		"INSERT INTO levels VALUES ('a/gone', 0, 1, 1, 1, 0) ON CONFLICT DO UPDATE SET level = 0",
		/* a level that is too low, or released, does not let a session go */
		"INSERT INTO levels VALUES ('a/high', 2, 3, 9, 1, 0); DELETE FROM sessions WHERE name = 'a/high'",
		"INSERT INTO levels VALUES ('a/high', 3, 2, 9, 1, 0); DELETE FROM sessions WHERE name = 'a/high'",
		"INSERT INTO levels VALUES ('a/high', 3, 3, 1, 1, 0); DELETE FROM sessions WHERE name = 'a/high'",
		"INSERT INTO levels VALUES ('a/high', 3, 3, 9, 1, 1)",
		"INSERT INTO levels VALUES ('a/high', 3, 3, 9, 1, 0); UPDATE levels SET released = 1 WHERE name = "
		"'a/high'",
		"INSERT INTO levels VALUES ('a/high', 3, 3, 9, 1, 0); DELETE FROM levels WHERE name = 'a/high'",
		/* the whole way: the row that lets it go keeps it from coming back */
		"INSERT INTO levels VALUES ('a/high', 3, 3, 9, 1, 0); DELETE FROM sessions WHERE name = 'a/high';"
		"INSERT INTO sessions " COLUMNS " VALUES ('a/high', 0, 1, 1, 1, NULL, 0)",
		"INSERT INTO levels VALUES ('a/high', 3, 3, 9, 1, 0); DELETE FROM sessions WHERE name = 'a/high';"
		"DELETE FROM levels WHERE name = 'a/high'; INSERT INTO sessions " COLUMNS
		" VALUES ('a/high', 0, 1, 1, 1, NULL, 0)",
		/* an open one is not made one that may go */
		"INSERT INTO levels VALUES ('a/live', 3, 3, 9, 1, 0); DELETE FROM sessions WHERE name = 'a/live'",
		/* its notices stay with it */
		"DELETE FROM notices",
	};
	const struct np_rung secret = { .level = LEVEL_SECRET, .mode = NP_NONE, .generation = 4 };
	struct notice_row notice = { .rung = secret, .text = "t" };

	(void)state;
	gone("a/gone", LEVEL_SECRET, NP_NONE, 4);
	assert_int_equal(put("a/live", LEVEL_SECRET, NP_NONE, 4, false), 0);
	assert_int_equal(put("a/high", LEVEL_SECRET, NP_NONE, 4, false), 0);
	assert_int_equal(store_session_raise(store, "a/high", &secret, NULL, &notice, NULL), 0);
	assert_int_equal(store_session_end(store, "a/high", false, 40), 0);
	for (int recursive = 1; recursive >= 0; recursive--) {
		assert_int_equal(sql(recursive ? "PRAGMA recursive_triggers = ON" : "PRAGMA recursive_triggers = OFF"),
				 0);
		for (size_t i = 0; i < ARRAY_SIZE(attacks); i++) {
			assert_int_equal(sql("BEGIN"), SQLITE_OK);
			if ((sql(attacks[i]) & 0xff) != SQLITE_CONSTRAINT)
				fail_msg("not refused: %s", attacks[i]);
			assert_int_equal(sql("ROLLBACK"), SQLITE_OK);
		}
	}
	/* The control: the same statements, in the order that says what it does. */
	assert_int_equal(
		sql("INSERT INTO levels VALUES ('a/high', 3, 3, 9, 1, 0); DELETE FROM sessions WHERE name = 'a/high';"
		    "UPDATE levels SET released = 1 WHERE name = 'a/high'; DELETE FROM levels WHERE name = 'a/high';"
		    "INSERT INTO sessions " COLUMNS " VALUES ('a/high', 0, 1, 1, 1, NULL, 0)"),
		SQLITE_OK);
}

static void test_release(void **state)
{
	struct np_rung rung;

	(void)state;
	gone("a/b", LEVEL_SECRET, NP_NONE, 4);
	assert_int_equal(put("a/b", LEVEL_SECRET, NP_NONE, 4, false), 0);
	assert_int_equal(store_level_release(store, "a/b"), -EPERM); /* it is on record */
	assert_remembered("a/b", LEVEL_SECRET, NP_NONE, 4);
	assert_int_equal(store_session_end(store, "a/b", false, 40), 0);
	assert_int_equal(store_level_release(store, "a/b"), -EPERM);
	assert_int_equal(forget("a/b"), 0);
	assert_int_equal(store_level_release(store, "a/b"), 0);
	assert_int_equal(store_level_get(store, "a/b", &rung), -ENOENT);
	assert_int_equal(store_levels_count(store), 0);
	assert_int_equal(store_level_release(store, "a/b"), 0); /* none is fine */
	assert_int_equal(put("a/b", LEVEL_PUBLIC, NP_FULL, 1, false), 0);
}

static void test_temporary_leaves_nothing(void **state)
{
	struct np_rung rung;

	(void)state;
	assert_int_equal(put("a/temporary-1", LEVEL_SECRET, NP_NONE, 4, true), 0);
	assert_int_equal(store_session_end(store, "a/temporary-1", false, 40), 0);
	assert_int_equal(forget("a/temporary-1"), 0);
	assert_int_equal(store_level_get(store, "a/temporary-1", &rung), -ENOENT);
	assert_int_equal(store_sessions_count(store), 0);
	/* Unless it has a name that anybody may come back to, as it once could, or only the name. */
	assert_int_equal(put("a/t", LEVEL_SECRET, NP_NONE, 4, true), 0);
	assert_int_equal(put("a/temporary-1", LEVEL_SECRET, NP_NONE, 4, false), 0);
	assert_int_equal(store_session_end(store, "a/t", false, 40), 0);
	assert_int_equal(store_session_end(store, "a/temporary-1", false, 40), 0);
	assert_int_equal(forget("a/t"), 0);
	assert_int_equal(forget("a/temporary-1"), 0);
	assert_remembered("a/t", LEVEL_SECRET, NP_NONE, 4);
	assert_remembered("a/temporary-1", LEVEL_SECRET, NP_NONE, 4);
}

static void test_a_sandbox_holds_its_session(void **state)
{
	struct sandbox_row row = { .id = "x", .cgroup_id = 1, .path = "/p", .created_us = 30 };
	const struct session_name both[] = { name_of("a/free"), name_of("a/held") };
	struct session_row session;

	(void)state;
	row.session = both[1];
	assert_int_equal(put("a/free", LEVEL_SECRET, NP_NONE, 1, false), 0);
	assert_int_equal(put("a/held", LEVEL_SECRET, NP_NONE, 1, false), 0);
	assert_int_equal(store_sandbox_put(store, &row), 0);
	assert_int_equal(store_session_end(store, "a/free", false, 40), 0);
	assert_int_equal(store_session_end(store, "a/held", false, 40), 0);
	/* All or none. */
	assert_int_equal(store_sessions_forget(store, both, 2, 50), -ENOENT);
	assert_int_equal(store_session_get(store, "a/free", &session), 0);
	assert_int_equal(store_sessions_count(store), 2);
	assert_int_equal(store_levels_count(store), 0);
	assert_int_equal(store_sandbox_remove(store, "x", 77), 0);
	assert_int_equal(store_session_get(store, "a/held", &session), 0);
	assert_int_equal(session.used_us, 77);
	assert_int_equal(store_sessions_forget(store, both, 2, 50), 0);
	assert_int_equal(store_sessions_count(store), 0);
}

static void test_bound_of_levels(void **state)
{
	(void)state;
	assert_int_equal(put("a/b", LEVEL_SECRET, NP_NONE, 1, false), 0);
	assert_int_equal(store_session_end(store, "a/b", false, 40), 0);
	store->levels = NP_LEVELS_MAX;
	assert_int_equal(forget("a/b"), -E2BIG);
	store->levels--;
	assert_int_equal(forget("a/b"), 0);
}

static int page_add(void *data, const struct session_row *row)
{
	strcat(strcat(data, " "), row->name.text);
	return 0;
}

static const char *page(const char *after, bool with_ended, unsigned limit)
{
	static char text[512];

	text[0] = '\0';
	assert_int_equal(store_sessions_page(store, after, with_ended, limit, page_add, text), 0);
	return text;
}

static void test_pages(void **state)
{
	(void)state;
	for (int i = 0; i < 6; i++) {
		char name[8];

		snprintf(name, sizeof(name), "a/%d", i);
		assert_int_equal(put(name, LEVEL_PUBLIC, NP_FULL, 1, false), 0);
		if (i % 2)
			assert_int_equal(store_session_end(store, name, false, 40), 0);
	}
	assert_string_equal(page("", true, 4), " a/0 a/1 a/2 a/3");
	assert_string_equal(page("a/3", true, 4), " a/4 a/5");
	assert_string_equal(page("a/5", true, 4), "");
	assert_string_equal(page("", false, 2), " a/0 a/2");
	assert_string_equal(page("a/2", false, 2), " a/4");
	assert_string_equal(page("a/1x", false, 2), " a/2 a/4"); /* a name that has gone meanwhile */
}

/* As many as a node of years has: what a second's sweep asks for does not grow with them. */
static void test_many(void **state)
{
	struct store_names names;

	(void)state;
	assert_int_equal(
		sql("PRAGMA synchronous = OFF; BEGIN; WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n"
		    " WHERE i < 150000) INSERT INTO sessions (name, level, mode, generation, created_us, used_us,"
		    " ended_us) SELECT 'u/' || i, i % 4, 1 + i % 3, 1, i, i, i FROM n; COMMIT"),
		SQLITE_OK);
	reopen();
	assert_int_equal(store_sessions_count(store), 150000);
	assert_int_equal(store_sessions_ended(store), 150000);
	assert_int_equal(store_due(store, DUE_OLD, INT64_MAX, 1000, &names), 0);
	assert_int_equal(names.count, STORE_BATCH);
	assert_string_equal(names.names[0].text, "u/1");
	assert_string_equal(names.names[STORE_BATCH - 1].text, "u/64");
	assert_int_equal(store_sessions_forget(store, names.names, names.count, 50), 0);
	assert_int_equal(store_due(store, DUE_OLD, 66, 1000, &names), 0);
	assert_int_equal(names.count, 1);
	assert_int_equal(store_due(store, DUE_IDLE, INT64_MAX, 1000, &names), 0);
	assert_int_equal(names.count, 0);
	assert_int_equal(put("u/new", LEVEL_PUBLIC, NP_FULL, 1, false), 0);
	assert_int_equal(store_sessions_count(store), 150000 - STORE_BATCH + 1);
	/* Every list has an index to go by. */
	for (size_t i = 0; i < ARRAY_SIZE(due_sql); i++) {
		sqlite3_stmt *plan;
		char text[1024];

		snprintf(text, sizeof(text), "EXPLAIN QUERY PLAN %s", due_sql[i]);
		assert_int_equal(sqlite3_prepare_v2(store->db, text, -1, &plan, NULL), SQLITE_OK);
		while (sqlite3_step(plan) == SQLITE_ROW) {
			const char *step = (const char *)sqlite3_column_text(plan, 3);

			if ((strstr(step, "SCAN sessions") && !strstr(step, "INDEX")) ||
			    (strstr(step, "SCAN levels") && !strstr(step, "INDEX")) || strstr(step, "TEMP B-TREE"))
				fail_msg("%s: %s", due_sql[i], step);
		}
		sqlite3_finalize(plan);
	}
}

#define store_test(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		store_test(test_a_session_goes_and_its_level_stays),
		store_test(test_no_statement_lowers),
		store_test(test_release),
		store_test(test_temporary_leaves_nothing),
		store_test(test_a_sandbox_holds_its_session),
		store_test(test_bound_of_levels),
		store_test(test_pages),
		store_test(test_many),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
