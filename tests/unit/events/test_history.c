/* SPDX-License-Identifier: MIT */
#include "tempdir.h"

#include <inttypes.h>

#include "limits.h"
#undef NP_HISTORY_ROWS
#define NP_HISTORY_ROWS 1000

#include "events/history.c"

#include "reason.h"

static struct history *history;
static struct buf out = { .max = 4 << 20 };

static int setup(void **state)
{
	if (tempdir_make(state) < 0)
		return -1;
	return history_new(tempdir, &history);
}

static int teardown(void **state)
{
	history_free(history);
	history = NULL;
	buf_free(&out);
	return tempdir_remove(state);
}

static void reopen(void)
{
	history_free(history);
	assert_int_equal(history_new(tempdir, &history), 0);
}

static void put(uint64_t seq, const char *session, unsigned reason)
{
	struct history_row row = { .seq = seq, .wall_us = 1000 + seq, .session = session, .reason = reason };
	char json[32];
	int n = snprintf(json, sizeof(json), "%" PRIu64 "\n", seq);

	history_put(history, &row, json, (size_t)n);
}

static void put_many(uint64_t first, uint64_t last)
{
	for (uint64_t seq = first; seq <= last; seq++)
		put(seq, NULL, NP_R_CUT);
}

static const char *query(const char *session, int reason, uint64_t after, unsigned limit)
{
	struct history_filter filter = { session, reason, after, limit, false };

	buf_clear(&out);
	assert_int_equal(history_query(history, &filter, &out), 0);
	return out.data ? out.data : "";
}

/* Asks a connection of its own: what is on disk, not what this process thinks. */
static uint64_t stored(const char *sql)
{
	sqlite3 *db = NULL;
	uint64_t number = 0;

	assert_int_equal(sqlite3_open(temp_path("events.db"), &db), SQLITE_OK);
	assert_int_equal(sql_number(db, sql, &number), 0);
	sqlite3_close(db);
	return number;
}

static void run_sql(const char *name, const char *sql)
{
	sqlite3 *db = NULL;

	assert_int_equal(sqlite3_open(temp_path(name), &db), SQLITE_OK);
	assert_int_equal(sql_exec(db, sql), 0);
	sqlite3_close(db);
}

static void assert_stats(uint64_t dropped, int error)
{
	struct history_stats stats;

	history_stats(history, &stats);
	assert_int_equal(stats.dropped, dropped);
	assert_int_equal(stats.error, error);
}

static void test_query(void **state)
{
	(void)state;
	assert_string_equal(query(NULL, -1, 0, 10), "");
	put(1, "a/1", NP_R_CUT);
	put(2, "a/2", NP_R_RAISED);
	put(3, "a/1", NP_R_RAISED);
	put(4, NULL, NP_R_RAISED);
	put(5, "a/1", NP_R_CUT);
	assert_string_equal(query(NULL, -1, 0, 10), "1\n2\n3\n4\n5\n");
	assert_string_equal(query(NULL, -1, 0, 2), "4\n5\n");
	assert_string_equal(query(NULL, -1, 0, 0), "");
	assert_string_equal(query(NULL, -1, 3, 10), "4\n5\n");
	assert_string_equal(query(NULL, -1, UINT64_MAX, 10), "");
	assert_string_equal(query("a/1", -1, 0, 10), "1\n3\n5\n");
	assert_string_equal(query("a/1", -1, 1, 1), "5\n");
	assert_string_equal(query("a/", -1, 0, 10), "");
	assert_string_equal(query("' OR 1 --", -1, 0, 10), "");
	assert_string_equal(query(NULL, NP_R_RAISED, 0, 10), "2\n3\n4\n");
	assert_string_equal(query("a/1", NP_R_CUT, 0, 10), "1\n5\n");
	assert_string_equal(query("a/1", NP_R_CUT, 0, 1), "5\n");
	assert_string_equal(query(NULL, NP_R_OPEN_MODE, 0, 10), "");
	assert_stats(0, 0);
}

static void test_columns(void **state)
{
	(void)state;
	put(7, "a/1", NP_R_CUT);
	assert_int_equal(stored("SELECT count(*) FROM event"), 0);
	assert_int_equal(history_flush(history), 0);
	assert_int_equal(stored("SELECT count(*) FROM event WHERE seq = 7 AND wall_us = 1007 AND session = 'a/1' "
				"AND reason = 130 AND json = '7' || char(10)"),
			 1);
}

static void test_batch(void **state)
{
	(void)state;
	put_many(1, NP_HISTORY_BATCH - 1);
	assert_int_equal(stored("SELECT count(*) FROM event"), 0);
	put_many(NP_HISTORY_BATCH, NP_HISTORY_BATCH);
	assert_int_equal(stored("SELECT count(*) FROM event"), NP_HISTORY_BATCH);
}

static void test_reopen(void **state)
{
	(void)state;
	assert_int_equal(history_last_seq(history), 0);
	put(41, "a/1", NP_R_CUT);
	put(42, "a/1", NP_R_CUT);
	reopen();
	assert_int_equal(history_last_seq(history), 42);
	assert_string_equal(query(NULL, -1, 0, 10), "41\n42\n");
	assert_false(temp_exists("events.db.bad"));
}

static void test_mode(void **state)
{
	struct stat st;

	(void)state;
	assert_int_equal(stat(temp_path("events.db"), &st), 0);
	assert_int_equal(st.st_mode & 07777 & ~0640, 0);
	put(1, NULL, NP_R_CUT);
	assert_int_equal(history_flush(history), 0);
	assert_int_equal(stat(temp_path("events.db-wal"), &st), 0);
	assert_int_equal(st.st_mode & 07777 & ~0640, 0);
}

static void test_prune(void **state)
{
	(void)state;
	put_many(1, 500);
	put_many(100001, 100800); /* a gap in seq costs no rows */
	assert_int_equal(history_flush(history), 0);
	assert_int_equal(stored("SELECT count(*) FROM event"), NP_HISTORY_ROWS);
	assert_int_equal(stored("SELECT min(seq) FROM event"), 301);
	assert_int_equal(stored("SELECT max(seq) FROM event"), 100800);
	reopen();
	put_many(100801, 100900);
	assert_int_equal(history_flush(history), 0);
	assert_int_equal(stored("SELECT count(*) FROM event"), NP_HISTORY_ROWS);
	assert_int_equal(stored("SELECT min(seq) FROM event"), 401);
}

/* As with a database of a build that kept more: it shrinks in steps, without new events too. */
static void test_prune_in_steps(void **state)
{
	(void)state;
	run_sql("events.db", "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 4000) "
			     "INSERT INTO event SELECT i, 1, NULL, 1, 'x' FROM n");
	reopen();
	assert_int_equal(history_flush(history), 0);
	assert_int_equal(stored("SELECT count(*) FROM event"), 4000 - 4 * NP_HISTORY_BATCH);
	assert_int_equal(history_flush(history), 0);
	assert_int_equal(history_flush(history), 0);
	assert_int_equal(stored("SELECT count(*) FROM event"), NP_HISTORY_ROWS);
	assert_int_equal(stored("SELECT min(seq) FROM event"), 3001);
}

static void assert_moved_aside(void)
{
	reopen();
	assert_true(temp_exists("events.db.bad"));
	assert_stats(0, 0);
	assert_int_equal(history_last_seq(history), 0);
	put(5, NULL, NP_R_CUT);
	assert_string_equal(query(NULL, -1, 0, 10), "5\n");
	assert_int_equal(stored("PRAGMA user_version"), HISTORY_VERSION);
}

static void test_rubbish_is_moved_aside(void **state)
{
	char rubbish[8192], *text;

	(void)state;
	memset(rubbish, 'r', sizeof(rubbish));
	history_free(history);
	history = NULL;
	temp_write("events.db", rubbish, sizeof(rubbish));
	temp_puts("events.db-wal", "old log");
	temp_puts("events.db.bad", "an older one");
	temp_puts("events.db.bad-wal", "an older one's");
	assert_moved_aside();
	assert_int_equal(truncate(temp_path("events.db.bad"), 4), 0);
	text = temp_read("events.db.bad");
	assert_string_equal(text, "rrrr");
	free(text);
}

static void test_damaged_tables_are_moved_aside(void **state)
{
	char zeros[4096];
	int fd;

	(void)state;
	put_many(1, 900);
	history_free(history);
	history = NULL;
	memset(zeros, 0xee, sizeof(zeros));
	fd = open(temp_path("events.db"), O_WRONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	for (off_t page = 1; page < 12; page++)
		assert_int_equal(pwrite(fd, zeros, sizeof(zeros), page * 4096), sizeof(zeros));
	close(fd);
	assert_moved_aside();
}

static void test_unknown_version_is_moved_aside(void **state)
{
	(void)state;
	put(1, NULL, NP_R_CUT);
	history_free(history);
	history = NULL;
	run_sql("events.db", "PRAGMA user_version = 2");
	assert_moved_aside();
	run_sql("events.db.bad", "SELECT seq FROM event");
}

static void test_foreign_database_is_moved_aside(void **state)
{
	(void)state;
	history_free(history);
	history = NULL;
	assert_int_equal(unlink(temp_path("events.db")), 0);
	run_sql("events.db", "CREATE TABLE event (a)");
	temp_puts("events.db.bad-wal", "an older one's");
	assert_moved_aside();
	assert_false(temp_exists("events.db.bad-wal")); /* it would be taken for the new one's */
}

static void test_absurd_seq_is_moved_aside(void **state)
{
	(void)state;
	run_sql("events.db", "INSERT INTO event VALUES (9223372036854775807, 1, NULL, 1, 'x')");
	assert_moved_aside();
}

/* Damage while it is open: what waits goes into a new database. */
static void test_damage_while_open(void **state)
{
	char rubbish[4096];
	int fd;

	(void)state;
	put_many(1, 900);
	assert_int_equal(history_flush(history), 0);
	run_sql("events.db", "PRAGMA wal_checkpoint(TRUNCATE)");
	memset(rubbish, 0xee, sizeof(rubbish));
	fd = open(temp_path("events.db"), O_WRONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	for (off_t page = 1; page < 12; page++)
		assert_int_equal(pwrite(fd, rubbish, sizeof(rubbish), page * 4096), sizeof(rubbish));
	close(fd);
	sqlite3_db_release_memory(history->db);
	put(901, NULL, NP_R_CUT);
	assert_int_equal(history_flush(history), 0);
	assert_true(temp_exists("events.db.bad"));
	assert_string_equal(query(NULL, -1, 0, 10), "901\n");
	assert_stats(0, 0);
}

static void test_busy(void **state)
{
	sqlite3 *other = NULL;

	(void)state;
	assert_int_equal(sqlite3_open(temp_path("events.db"), &other), SQLITE_OK);
	put(1, NULL, NP_R_CUT);
	assert_int_equal(history_flush(history), 0);
	assert_int_equal(sql_exec(other, "BEGIN IMMEDIATE"), 0);
	put(2, NULL, NP_R_CUT);
	assert_int_equal(history_flush(history), -EBUSY);
	assert_string_equal(query(NULL, -1, 0, 10), "1\n"); /* what is stored can be read all the same */
	assert_stats(0, -EBUSY);
	assert_int_equal(sql_exec(other, "ROLLBACK"), 0);
	assert_string_equal(query(NULL, -1, 0, 10), "1\n2\n");
	assert_stats(0, 0);

	assert_int_equal(sql_exec(other, "BEGIN IMMEDIATE"), 0);
	put_many(3, 2 + NP_HISTORY_BATCH);
	assert_stats(NP_HISTORY_BATCH, -EBUSY);
	assert_int_equal(sql_exec(other, "ROLLBACK"), 0);
	put(1000, NULL, NP_R_CUT);
	assert_string_equal(query(NULL, -1, 0, 10), "1\n2\n1000\n");
	assert_stats(NP_HISTORY_BATCH, 0);
	sqlite3_close(other);
}

/* A row that fails takes its batch back; nothing of it is stored, and nothing is stuck. */
static void test_batch_is_all_or_nothing(void **state)
{
	(void)state;
	run_sql("events.db", "CREATE TRIGGER t BEFORE INSERT ON event WHEN NEW.seq = 2 "
			     "BEGIN SELECT RAISE(ABORT, 'no'); END");
	put_many(1, 3);
	assert_int_equal(history_flush(history), -EIO);
	assert_int_equal(stored("SELECT count(*) FROM event"), 0);
	run_sql("events.db", "DROP TRIGGER t");
	assert_string_equal(query(NULL, -1, 0, 10), "1\n2\n3\n");
	assert_stats(0, 0);
}

static void test_directory_appears_later(void **state)
{
	struct history_filter filter = { .reason = -1, .limit = 10 };
	char dir[128];

	(void)state;
	strcpy(dir, temp_path("later"));
	history_free(history);
	assert_int_equal(history_new(dir, &history), 0);
	assert_stats(0, -ENOENT);
	put(1, NULL, NP_R_CUT);
	buf_clear(&out);
	assert_int_equal(history_query(history, &filter, &out), -ENOENT);
	assert_int_equal(mkdir(dir, 0700), 0);
	assert_string_equal(query(NULL, -1, 0, 10), "1\n");
	assert_stats(0, 0);
}

static void test_full_disk(void **state)
{
	struct history_stats stats = { 0 };
	uint64_t seq = 1;

	(void)state;
	if (!temp_mount("512k"))
		skip();
	reopen();
	put(seq++, NULL, NP_R_CUT);
	assert_int_equal(history_flush(history), 0);
	temp_fill("filler");
	for (; seq < 20 * NP_HISTORY_BATCH && !stats.dropped; seq++) {
		put(seq, NULL, NP_R_CUT);
		history_stats(history, &stats);
	}
	assert_int_equal(stats.dropped, NP_HISTORY_BATCH);
	assert_int_not_equal(stats.error, 0);
	query(NULL, -1, 0, 10);
	assert_int_equal(unlink(temp_path("filler")), 0);
	put(99999, NULL, NP_R_CUT);
	assert_string_equal(query(NULL, -1, 99998, 10), "99999\n");
	assert_stats(NP_HISTORY_BATCH, 0);
	assert_false(temp_exists("events.db.bad"));
	history_free(history);
	history = NULL;
}

static void test_answer_too_large(void **state)
{
	struct history_filter filter = { .reason = -1, .limit = 10 };
	struct buf small = BUF_INIT(5);

	(void)state;
	put_many(101, 110);
	buf_puts(&small, "x");
	assert_int_equal(history_query(history, &filter, &small), -E2BIG);
	assert_string_equal(small.data, "x");
	buf_free(&small);
}

static void test_refused_only(void **state)
{
	struct history_filter filter = { "a/1", -1, 0, 3, true };

	(void)state;
	put(1, "a/1", NP_R_MODE_NONE);
	put(2, "a/1", NP_R_RULE_ALLOWS);
	put(3, "b/1", NP_R_MODE_NONE);
	put(4, "a/1", NP_R_RAISED);
	put(5, "a/1", NP_R_NO_TUNNEL);
	put(6, "a/1", NP_R_SUPPRESSED);
	put(7, "a/1", NP_R_FAILED);
	buf_clear(&out);
	assert_int_equal(history_query(history, &filter, &out), 0);
	assert_string_equal(out.data, "1\n5\n6\n");
	filter.limit = 2;
	buf_clear(&out);
	assert_int_equal(history_query(history, &filter, &out), 0);
	assert_string_equal(out.data, "5\n6\n");
}

/* Each form of the query must walk an index: the daemon waits for the answer. */
static void test_query_plans(void **state)
{
	static const struct {
		struct history_filter filter;
		const char *step;
	} cases[] = {
		{ { NULL, -1, 0, 1, false }, "SEARCH event USING INTEGER PRIMARY KEY (rowid>?)" },
		{ { "a/1", -1, 0, 1, false }, "SEARCH event USING INDEX event_session (session=? AND seq>?)" },
		{ { NULL, 1, 0, 1, false }, "SEARCH event USING INDEX event_reason (reason=? AND rowid>?)" },
		{ { "a/1", 1, 0, 1, false }, "SEARCH event USING INDEX event_session (session=? AND seq>?)" },
		{ { "a/1", -1, 0, 1, true }, "SEARCH event USING INDEX event_session (session=? AND seq>?)" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		char sql[QUERY_SIZE], explain[QUERY_SIZE + 32];
		sqlite3_stmt *stmt = NULL;
		unsigned searches = 0, sorts = 0;

		query_text(&cases[i].filter, sql);
		snprintf(explain, sizeof(explain), "EXPLAIN QUERY PLAN %s", sql);
		assert_int_equal(sqlite3_prepare_v2(history->db, explain, -1, &stmt, NULL), SQLITE_OK);
		while (sqlite3_step(stmt) == SQLITE_ROW) {
			const char *step = (const char *)sqlite3_column_text(stmt, 3);

			if (strstr(step, " event ")) {
				assert_string_equal(step, cases[i].step);
				searches++;
			}
			sorts += strstr(step, "B-TREE") != NULL;
		}
		assert_int_equal(searches, 1);
		assert_int_equal(sorts, 1); /* of the rows in the answer, into their order */
		sqlite3_finalize(stmt);
	}
}

int main(void)
{
#define T(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(test_query),
		T(test_columns),
		T(test_batch),
		T(test_reopen),
		T(test_mode),
		T(test_prune),
		T(test_prune_in_steps),
		T(test_rubbish_is_moved_aside),
		T(test_damaged_tables_are_moved_aside),
		T(test_unknown_version_is_moved_aside),
		T(test_foreign_database_is_moved_aside),
		T(test_absurd_seq_is_moved_aside),
		T(test_damage_while_open),
		T(test_busy),
		T(test_batch_is_all_or_nothing),
		T(test_directory_appears_later),
		T(test_full_disk),
		T(test_answer_too_large),
		T(test_query_plans),
		T(test_refused_only),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
