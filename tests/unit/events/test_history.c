/* SPDX-License-Identifier: MIT */
#include "tempdir.h"

#include <inttypes.h>

#include "events/history.c"

#include "reason.h"
#include "vocab/limits.h"

#define LINE 100 /* bytes of a line that put_line() makes */

static struct history *history;
static struct keep_limits limits;
static struct buf out = { .max = 4 << 20 };

static int setup(void **state)
{
	if (tempdir_make(state) < 0)
		return -1;
	limits = KEEP_DEFAULTS;
	return history_new(tempdir, &limits, &history);
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
	assert_int_equal(history_new(tempdir, &limits, &history), 0);
}

static void put(uint64_t seq, const char *session, unsigned reason)
{
	struct history_row row = {
		.seq = seq, .wall_us = 1000 + seq, .session = session, .reason = reason, .weight = 1
	};
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
	struct history_filter filter = { session, reason, after, limit, false, false };

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
	assert_int_equal(history_flush(history, 0), 0);
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
	assert_int_equal(history_flush(history, 0), 0);
	assert_int_equal(stat(temp_path("events.db-wal"), &st), 0);
	assert_int_equal(st.st_mode & 07777 & ~0640, 0);
}

/* Of LINE bytes, at a time of its own, standing for `weight` events. */
static void put_line(uint64_t seq, const char *session, unsigned reason, uint64_t weight)
{
	struct history_row row = {
		.seq = seq, .wall_us = 1000 + seq, .session = session, .reason = reason, .weight = weight
	};
	char json[LINE + 1];

	snprintf(json, sizeof(json), "%-*" PRIu64 "\n", LINE - 1, seq);
	history_put(history, &row, json, LINE);
}

static void put_lines(uint64_t first, uint64_t last, const char *session, unsigned reason)
{
	for (uint64_t seq = first; seq <= last; seq++)
		put_line(seq, session, reason, 1);
}

static void flush_all(void)
{
	do
		assert_int_equal(history_flush(history, 0), 0);
	while (history->over);
}

static void assert_dropped(const char *session, enum keep_class class, uint64_t count, uint64_t first, uint64_t last)
{
	struct keep_dropped dropped;

	assert_int_equal(history_dropped(history, session, &dropped), 0);
	assert_int_equal(dropped.count[class], count);
	assert_int_equal(dropped.since_us[class], first ? 1000 + first : 0);
	assert_int_equal(dropped.until_us[class], last ? 1000 + last : 0);
	assert_int_equal(dropped.until_seq[class], last);
}

/* What one session is refused pushes out nothing but its own older refusals. */
static void test_bound_of_a_session(void **state)
{
	(void)state;
	limits.session_bytes = 10 * LINE;
	reopen();
	put_lines(1, 5, "a/1", NP_R_MODE_NONE);
	put_line(6, "b/1", NP_R_RAISED, 1);
	put_line(7, "b/1", NP_R_RULE_ALLOWS, 1);
	put_line(8, NULL, NP_R_DAEMON_READY, 1);
	put_lines(101, 600, "b/1", NP_R_MODE_NONE);
	flush_all();
	assert_int_equal(stored("SELECT count(*) FROM event WHERE session = 'a/1'"), 5);
	assert_int_equal(stored("SELECT count(*) FROM event WHERE seq IN (6, 7, 8)"), 3);
	assert_int_equal(stored("SELECT count(*) FROM event WHERE session = 'b/1' AND seq > 100"), 10);
	assert_int_equal(stored("SELECT min(seq) FROM event WHERE session = 'b/1' AND seq > 100"), 591);
	assert_dropped("b/1", KEEP_REFUSED, 490, 101, 590);
	assert_dropped("b/1", KEEP_ALLOWED, 0, 0, 0);
	assert_dropped("a/1", KEEP_REFUSED, 0, 0, 0);
	assert_dropped(NULL, KEEP_REFUSED, 490, 101, 590);
	/* The account outlives a restart; requests have a bound of their own. */
	reopen();
	put_lines(601, 620, "b/1", NP_R_RULE_ALLOWS);
	flush_all();
	assert_dropped("b/1", KEEP_REFUSED, 490, 101, 590);
	assert_dropped("b/1", KEEP_ALLOWED, 11, 7, 610);
	assert_int_equal(stored("SELECT count(*) FROM event WHERE session = 'b/1'"), 21);
}

/* A row that only counts others takes all of them along; so does a refusal that came with such a count. */
static void test_what_is_dropped_is_counted_by_weight(void **state)
{
	(void)state;
	limits.session_bytes = 2 * LINE;
	reopen();
	put_line(1, "a/1", NP_R_MODE_NONE, 8);
	put_line(2, "a/1", NP_R_SUPPRESSED, 1000);
	put_lines(3, 4, "a/1", NP_R_MODE_NONE);
	flush_all();
	assert_dropped("a/1", KEEP_REFUSED, 1008, 1, 2);
}

/* Over all sessions: who has the most loses first, whatever the order of events was. */
static void test_bound_of_all(void **state)
{
	(void)state;
	limits.session_bytes = 1000 * LINE;
	limits.total_bytes = 100 * LINE;
	reopen();
	put_lines(1, 20, "a/1", NP_R_MODE_NONE);
	put_lines(21, 30, "b/1", NP_R_RULE_ALLOWS);
	put_lines(31, 230, "c/1", NP_R_MODE_NONE);
	put_lines(231, 430, "d/1", NP_R_RULE_ALLOWS);
	flush_all();
	assert_int_equal(stored("SELECT count(*) FROM event"), 100);
	assert_int_equal(stored("SELECT count(*) FROM event WHERE seq <= 30"), 30);
	assert_int_equal(stored("SELECT count(*) FROM event WHERE session = 'c/1'"), 35);
	assert_int_equal(stored("SELECT count(*) FROM event WHERE session = 'd/1'"), 35);
	assert_dropped(NULL, KEEP_REFUSED, 165, 31, 195);
	assert_dropped(NULL, KEEP_ALLOWED, 165, 231, 395);
}

/* Changes have a reserve: refusals take nothing of it, nor does one session's churn take another's rise. */
static void test_bound_of_changes(void **state)
{
	(void)state;
	limits.change_bytes = 50 * LINE;
	limits.session_bytes = limits.total_bytes = 10 * LINE;
	reopen();
	put_lines(1, 3, "a/1", NP_R_RAISED);
	put_lines(4, 203, "a/1", NP_R_MODE_NONE);
	put_lines(301, 500, "b/1", NP_R_SANDBOX_MADE);
	flush_all();
	assert_int_equal(stored("SELECT count(*) FROM event WHERE seq <= 3"), 3);
	assert_int_equal(stored("SELECT count(*) FROM event WHERE session = 'b/1'"), 47);
	assert_int_equal(stored("SELECT count(*) FROM event WHERE reason = 32"), 10);
	assert_dropped("b/1", KEEP_CHANGE, 153, 301, 453);
	assert_dropped("a/1", KEEP_CHANGE, 0, 0, 0);
}

static void test_age(void **state)
{
	(void)state;
	limits.total_age_us = 500000000; /* the rows are of the first second */
	reopen();
	put_lines(1, 4, "a/1", NP_R_MODE_NONE);
	put_lines(5, 6, "a/1", NP_R_RAISED);
	put_lines(7, 8, "a/1", NP_R_RULE_ALLOWS);
	assert_int_equal(history_flush(history, 500000000), 0);
	assert_int_equal(stored("SELECT count(*) FROM event"), 8);
	assert_int_equal(history_flush(history, 600000000), 0);
	assert_int_equal(stored("SELECT count(*) FROM event"), 2);
	assert_int_equal(stored("SELECT count(*) FROM event WHERE reason = 128"), 2);
	assert_dropped("a/1", KEEP_REFUSED, 4, 1, 4);
	limits.change_age_us = 1;
	reopen();
	assert_int_equal(history_flush(history, 600000000), 0);
	assert_int_equal(stored("SELECT count(*) FROM event"), 0);
}

/* A bound that was lowered is reached in steps, without new events too. */
static void test_bounds_in_steps(void **state)
{
	(void)state;
	for (uint64_t seq = 1; seq <= 4000; seq++)
		put_line(seq, "a/1", NP_R_MODE_NONE, 1);
	limits.session_bytes = 1000 * LINE;
	reopen();
	assert_int_equal(history_flush(history, 0), 0);
	assert_true(history->over);
	assert_int_equal(stored("SELECT count(*) FROM event"), 4000 - 4 * NP_HISTORY_BATCH);
	flush_all();
	assert_int_equal(stored("SELECT count(*) FROM event"), 1000);
	assert_int_equal(stored("SELECT min(seq) FROM event"), 3001);
}

/* Names that never come again leave no row for ever, and what was not kept of all of them still adds up. */
static void test_empty_accounts(void **state)
{
	const unsigned sessions = NP_HISTORY_EMPTY + NP_HISTORY_EMPTY / 4;
	struct keep_dropped dropped;
	char session[32];

	(void)state;
	limits.total_age_us = 1000000;
	reopen();
	for (unsigned round = 0; round < 2; round++) {
		for (uint64_t seq = 1; seq <= sessions; seq++) {
			snprintf(session, sizeof(session), "a/%u-%u", round, (unsigned)seq);
			put(round * sessions + seq, session, NP_R_MODE_NONE);
		}
		put((round + 1) * 100000, "a/here", NP_R_RAISED);
		for (unsigned i = 0; i < 20; i++)
			assert_int_equal(history_flush(history, 600000000ull * (round + 1)), 0);
		assert_int_equal(stored("SELECT count(*) FROM event"), round + 1); /* the changes */
		assert_in_range(stored("SELECT count(*) FROM account"), NP_HISTORY_EMPTY / 2, NP_HISTORY_EMPTY + 2);
		assert_int_equal(history_dropped(history, NULL, &dropped), 0);
		assert_int_equal(dropped.count[KEEP_REFUSED], (round + 1) * sessions);
		assert_int_equal(dropped.since_us[KEEP_REFUSED], 1001);
		assert_int_equal(dropped.until_seq[KEEP_REFUSED], (round + 1) * sessions);
	}
	assert_dropped(session, KEEP_REFUSED, 1, 2 * sessions, 2 * sessions); /* of the newest it is known */
	assert_int_equal(history_dropped(history, "a/0-1", &dropped), 0);
	assert_int_equal(dropped.count[KEEP_REFUSED], 0);
	assert_int_equal(stored("SELECT count(*) FROM account WHERE session = 'a/here'"), 1);
}

/* An account that says more than there is cannot make the bounds spin or remove what is others'. */
static void test_wrong_account(void **state)
{
	(void)state;
	put_lines(1, 3, "a/1", NP_R_MODE_NONE);
	flush_all();
	run_sql("events.db", "UPDATE account SET bytes = 99999999999; "
			     "INSERT INTO account (session, class, bytes) VALUES ('gone/1', 2, 99999999999)");
	reopen();
	put_line(4, "b/1", NP_R_MODE_NONE, 1);
	flush_all();
	assert_int_equal(stored("SELECT count(*) FROM event WHERE session = 'b/1'"), 1);
	assert_int_equal(stored("SELECT count(*) FROM account WHERE bytes > 99999"), 0);
}

/* A transaction that fails leaves the sums as they were. */
static void test_sums_after_a_failure(void **state)
{
	(void)state;
	put_lines(1, 3, "a/1", NP_R_MODE_NONE);
	flush_all();
	run_sql("events.db", "CREATE TRIGGER t BEFORE INSERT ON event WHEN NEW.seq = 5 "
			     "BEGIN SELECT RAISE(ABORT, 'no'); END");
	put_lines(4, 5, "a/1", NP_R_MODE_NONE);
	assert_int_equal(history_flush(history, 0), -EIO);
	assert_int_equal(history->bytes[KEEP_REFUSED], 3 * LINE);
	run_sql("events.db", "DROP TRIGGER t");
	flush_all();
	assert_int_equal(history->bytes[KEEP_REFUSED], 5 * LINE);
	assert_int_equal(stored("SELECT sum(bytes) FROM account"), 5 * LINE);
}

static const char version_1[] =
	"BEGIN;"
	"CREATE TABLE event (seq INTEGER PRIMARY KEY, wall_us INTEGER NOT NULL, session TEXT, reason INTEGER NOT NULL, "
	"json TEXT NOT NULL);"
	"CREATE INDEX event_session ON event (session, seq, reason);"
	"CREATE INDEX event_reason ON event (reason);"
	"PRAGMA application_id = 0x6e706576; PRAGMA user_version = 1; COMMIT;";

static void old_database(const char *sql)
{
	history_free(history);
	history = NULL;
	assert_int_equal(unlink(temp_path("events.db")), 0);
	run_sql("events.db", version_1);
	run_sql("events.db", sql);
	reopen();
}

static void test_version_1_is_brought_up_to_date(void **state)
{
	(void)state;
	old_database("INSERT INTO event VALUES (11, 1011, 'a/1', 32, '{\"seq\":11,\"suppressed\":7}' || char(10)), "
		     "(12, 1012, NULL, 136, 'no json'), (13, 1013, 'a/1', 139, '{\"suppressed\":50}'), "
		     "(14, 1014, 'a/1', 6, '{}'), (15, 1015, 'a/1', 128, '{}'), (16, 1016, 'a/1', 32, '{}')");
	assert_false(temp_exists("events.db.bad"));
	assert_stats(0, 0);
	assert_int_equal(history_last_seq(history), 16);
	assert_int_equal(stored("PRAGMA user_version"), HISTORY_VERSION);
	assert_int_equal(stored("SELECT group_concat(class, '') FROM (SELECT class FROM event ORDER BY seq)"), 101201);
	assert_int_equal(stored("SELECT weight FROM event WHERE seq = 11"), 8);
	assert_int_equal(stored("SELECT weight FROM event WHERE seq = 13"), 50);
	assert_int_equal(stored("SELECT sum(bytes) FROM account"), stored("SELECT sum(length(json)) FROM event"));
	put(17, "a/1", NP_R_MODE_NONE);
	assert_string_equal(query(NULL, NP_R_MODE_NONE, 11, 10), "{}17\n");
	/* Its rows are under the bounds as others are. */
	limits.session_bytes = 20;
	reopen();
	flush_all();
	assert_dropped("a/1", KEEP_REFUSED, 58, 11, 13);
}

static void test_damaged_version_1_is_moved_aside(void **state)
{
	(void)state;
	old_database("DROP INDEX event_reason");
	assert_true(temp_exists("events.db.bad"));
	assert_stats(0, 0);
	put(5, NULL, NP_R_CUT);
	assert_string_equal(query(NULL, -1, 0, 10), "5\n");
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
	run_sql("events.db", "PRAGMA user_version = 3");
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
	run_sql("events.db", "INSERT INTO event VALUES (9223372036854775807, 1, '', 1, 2, 1, 1, 'x')");
	assert_moved_aside();
}

/* Damage while it is open: what waits goes into a new database. */
static void test_damage_while_open(void **state)
{
	char rubbish[4096];
	int fd;

	(void)state;
	put_many(1, 900);
	assert_int_equal(history_flush(history, 0), 0);
	run_sql("events.db", "PRAGMA wal_checkpoint(TRUNCATE)");
	memset(rubbish, 0xee, sizeof(rubbish));
	fd = open(temp_path("events.db"), O_WRONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	for (off_t page = 1; page < 12; page++)
		assert_int_equal(pwrite(fd, rubbish, sizeof(rubbish), page * 4096), sizeof(rubbish));
	close(fd);
	sqlite3_db_release_memory(history->db);
	put(901, NULL, NP_R_CUT);
	assert_int_equal(history_flush(history, 0), 0);
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
	assert_int_equal(history_flush(history, 0), 0);
	assert_int_equal(sql_exec(other, "BEGIN IMMEDIATE"), 0);
	put(2, NULL, NP_R_CUT);
	assert_int_equal(history_flush(history, 0), -EBUSY);
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
	assert_int_equal(history_flush(history, 0), -EIO);
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
	assert_int_equal(history_new(dir, &limits, &history), 0);
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
	assert_int_equal(history_flush(history, 0), 0);
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
	struct history_filter filter = { "a/1", -1, 0, 3, true, false };

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
		{ { NULL, -1, 0, 1, false, false }, "SEARCH event USING INTEGER PRIMARY KEY (rowid>?)" },
		{ { "a/1", -1, 0, 1, false, false }, "SEARCH event USING INDEX event_session (session=? AND seq>?)" },
		{ { NULL, 1, 0, 1, false, false }, "SEARCH event USING INDEX event_reason (reason=? AND rowid>?)" },
		{ { "a/1", 1, 0, 1, false, false }, "SEARCH event USING INDEX event_session (session=? AND seq>?)" },
		{ { "a/1", -1, 0, 1, true, false },
		  "SEARCH event USING INDEX event_class (session=? AND class=? AND rowid>?)" },
		{ { NULL, -1, 0, 1, false, true }, "SEARCH event USING INTEGER PRIMARY KEY (rowid>?)" },
		{ { "a/1", -1, 0, 1, false, true }, "SEARCH event USING INDEX event_session (session=? AND seq>?)" },
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
		T(test_bound_of_a_session),
		T(test_what_is_dropped_is_counted_by_weight),
		T(test_bound_of_all),
		T(test_bound_of_changes),
		T(test_age),
		T(test_bounds_in_steps),
		T(test_empty_accounts),
		T(test_wrong_account),
		T(test_sums_after_a_failure),
		T(test_version_1_is_brought_up_to_date),
		T(test_damaged_version_1_is_moved_aside),
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
