/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants the four above first */
#include <cmocka.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/buf.h"
#include "vocab/words.h"
#include "vocab/limits.h"
#include "session/store.c"
#include "store_fixture.h"
#include "store_v3.h"

#define COLUMNS	      "(name, level, mode, generation, created_us, ended_us)"
#define RUNG(l, m, g) (&(struct np_rung){ .level = (l), .mode = (m), .generation = (g) })

static off_t wal_size(void)
{
	char file[128];
	struct stat st;

	snprintf(file, sizeof(file), "%s-wal", path);
	return stat(file, &st) ? -1 : st.st_size;
}

static struct session_row row_of(const char *name, enum level level, enum np_mode mode, uint32_t generation)
{
	struct session_row row = { .rung = { .level = level, .mode = mode, .generation = generation },
				   .created_us = 5 };
	const char *problem;

	assert_int_equal(session_name_parse(name, &row.name, &problem), 0);
	return row;
}

static void put(const char *name, enum level level, enum np_mode mode, uint32_t generation)
{
	struct session_row row = row_of(name, level, mode, generation);

	assert_int_equal(store_session_put(store, &row, NULL), 0);
}

static struct session_row get(const char *name)
{
	struct session_row row;

	assert_int_equal(store_session_get(store, name, &row), 0);
	return row;
}

static void assert_stands(const char *name, enum level level, enum np_mode mode, uint32_t generation)
{
	struct session_row row = get(name);

	assert_int_equal(row.rung.level, level);
	assert_int_equal(row.rung.mode, mode);
	assert_int_equal(row.rung.generation, generation);
}

static int sql(const char *text)
{
	return sqlite3_exec(store->db, text, NULL, NULL, NULL);
}

static void test_file_modes(void **state)
{
	mode_t old = umask(0);
	struct stat st;
	char file[128];

	(void)state;
	teardown(NULL);
	assert_int_equal(setup(NULL), 0);
	put("a/b", LEVEL_PUBLIC, NP_FULL, 1);
	for (size_t i = 0; i < STORE_FILES; i++) {
		snprintf(file, sizeof(file), "%s%s", path, store_files[i]);
		assert_int_equal(stat(file, &st), 0);
		assert_int_equal(st.st_mode & 07777, 0600);
	}
	/* One that somebody opened up is shut again. */
	store_close(store);
	assert_int_equal(chmod(path, 0644), 0);
	assert_int_equal(store_open(path, &store), 0);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	umask(old);
}

static void test_settings(void **state)
{
	static const struct {
		const char *pragma, *value;
	} want[] = { { "PRAGMA journal_mode", "wal" }, { "PRAGMA synchronous", "2" }, { "PRAGMA foreign_keys", "1" } };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(want); i++) {
		sqlite3_stmt *statement;

		assert_int_equal(sqlite3_prepare_v2(store->db, want[i].pragma, -1, &statement, NULL), SQLITE_OK);
		assert_int_equal(sqlite3_step(statement), SQLITE_ROW);
		assert_string_equal((const char *)sqlite3_column_text(statement, 0), want[i].value);
		sqlite3_finalize(statement);
	}
}

static unsigned syncs;

/* SQLite's, too. */
int fdatasync(int fd)
{
	syncs++;
	return (int)syscall(SYS_fdatasync, fd);
}

/* A sandbox is gone with the kernel; a session's level is not. */
static void test_rows_of_sandboxes_wait_for_no_disk(void **state)
{
	struct sandbox_row row = { .id = "a.b.1", .cgroup_id = 7, .path = "/sys/fs/cgroup/x", .created_us = 1 };

	(void)state;
	put("a/b", LEVEL_PUBLIC, NP_FULL, 1);
	row.session = get("a/b").name;
	syncs = 0;
	assert_int_equal(store_sandbox_put(store, &row), 0);
	assert_int_equal(store_sandbox_put(store, &row), -EEXIST); /* a failure leaves the setting as it was, too */
	assert_int_equal(store_sandbox_remove(store, row.id, 9), 0);
	assert_int_equal(syncs, 0);
	test_settings(state);
	put("a/c", LEVEL_PUBLIC, NP_FULL, 1);
	assert_int_equal(syncs, 1);
}

/* An adopted one is a container that its engine may start again when the kernel is gone: it is awaited by its row. */
static void test_rows_of_adopted_ones_are_on_the_disk(void **state)
{
	struct sandbox_row row = { .id = "a.b.1", .cgroup_id = 7, .path = "/sys/fs/cgroup/x", .adopted = true };

	(void)state;
	put("a/b", LEVEL_PUBLIC, NP_FULL, 1);
	row.session = get("a/b").name;
	syncs = 0;
	assert_int_equal(store_sandbox_put(store, &row), 0);
	assert_int_equal(syncs, 1);
	assert_int_equal(store_sandbox_put(store, &row), -EEXIST);
	assert_int_equal(store_sandbox_await(store, row.id, 8),
			 0); /* without this it is found to have gone, and awaited */
	assert_int_equal(store_sandbox_remove(store, row.id, 9), 0);
	assert_int_equal(syncs, 1);
	test_settings(state);
}

/* A temporary session goes with its sandbox. What raises it is on the disk all the same, and what came before with it. */
static void test_temporary_sessions_wait_for_no_disk(void **state)
{
	struct session_row row = { .rung = { .mode = NP_FULL, .generation = 1 }, .temporary = true };
	struct np_rung higher = { .level = LEVEL_SECRET, .mode = NP_NONE, .generation = 2 };
	const char *problem;

	(void)state;
	assert_int_equal(session_name_parse("a/temporary-1", &row.name, &problem), 0);
	syncs = 0;
	assert_int_equal(store_session_put(store, &row, NULL), 0);
	assert_int_equal(store_session_put(store, &row, NULL), -EEXIST);
	assert_int_equal(syncs, 0);
	test_settings(state);
	assert_int_equal(store_session_raise(store, row.name.text, &higher, NULL, NULL, NULL), 0);
	assert_int_equal(syncs, 1);
	assert_int_equal(store_temporary_forget(store, &row.name, 1, 9), -EPERM); /* it has not ended */
	assert_int_equal(store_temporary_end(store, row.name.text, 8), 0);
	assert_int_equal(store_temporary_end(store, row.name.text, 8), 0);
	assert_int_equal(store_temporary_end(store, "a/none", 8), -ENOENT);
	assert_true(get(row.name.text).ended);
	assert_int_equal(store_sessions_ended(store), 1);
	assert_int_equal(store_temporary_forget(store, &row.name, 1, 9), 0);
	assert_int_equal(store_sessions_count(store), 0);
	assert_int_equal(syncs, 1);
	test_settings(state);
}

static void test_session_put_and_get(void **state)
{
	struct session_row row = { .rung = { .generation = 99 } };

	(void)state;
	assert_int_equal(store_session_get(store, "a/b", &row), -ENOENT);
	assert_int_equal(row.rung.generation, 99);
	assert_int_equal(store_sessions_count(store), 0);
	put("a/b", LEVEL_INTERNAL, NP_FULL, UINT32_MAX);
	row = get("a/b");
	assert_string_equal(row.name.text, "a/b");
	assert_int_equal(row.name.user_len, 1);
	assert_stands("a/b", LEVEL_INTERNAL, NP_FULL, UINT32_MAX);
	assert_int_equal(row.created_us, 5);
	assert_false(row.ended);
	assert_int_equal(row.datasets, 0);
	assert_int_equal(store_session_put(store, &row, NULL), -EEXIST);
	assert_int_equal(store_session_get(store, "A/b", &row), -ENOENT); /* case matters */
	assert_int_equal(store_sessions_count(store), 1);
	reopen();
	assert_stands("a/b", LEVEL_INTERNAL, NP_FULL, UINT32_MAX);
	assert_int_equal(store_sessions_count(store), 1);
}

static void test_session_end_and_revive(void **state)
{
	struct session_row row;

	(void)state;
	assert_int_equal(store_session_end(store, "a/b", false, 7), -ENOENT);
	put("a/b", LEVEL_SECRET, NP_NONE, 4);
	assert_int_equal(store_session_end(store, "a/b", false, 7), 0);
	assert_int_equal(store_session_end(store, "a/b", false, 8), 0);
	row = get("a/b");
	assert_true(row.ended);
	assert_int_equal(row.ended_us, 7);
	/* Revived: the level is kept for ever. */
	row = row_of("a/b", LEVEL_PUBLIC, NP_FULL, 1);
	row.created_us = 9;
	assert_int_equal(store_session_put(store, &row, NULL), 0);
	row = get("a/b");
	assert_false(row.ended);
	assert_int_equal(row.created_us, 5);
	assert_stands("a/b", LEVEL_SECRET, NP_NONE, 4);
	assert_int_equal(store_session_put(store, &row, NULL), -EEXIST);
	assert_int_equal(store_sessions_count(store), 1);
}

static void test_raise_takes_each_maximum(void **state)
{
	(void)state;
	put("a/b", LEVEL_INTERNAL, NP_PROXIED, 3);
	assert_int_equal(store_session_raise(store, "a/b", RUNG(LEVEL_PUBLIC, NP_FULL, 1), NULL, NULL, NULL), 0);
	assert_stands("a/b", LEVEL_INTERNAL, NP_PROXIED, 3);
	assert_int_equal(store_session_raise(store, "a/b", RUNG(LEVEL_SECRET, NP_FULL, 1), NULL, NULL, NULL), 0);
	assert_stands("a/b", LEVEL_SECRET, NP_PROXIED, 3);
	assert_int_equal(store_session_raise(store, "a/b", RUNG(LEVEL_PUBLIC, NP_NONE, 1), NULL, NULL, NULL), 0);
	assert_stands("a/b", LEVEL_SECRET, NP_NONE, 3);
	assert_int_equal(store_session_raise(store, "a/b", RUNG(LEVEL_PUBLIC, NP_FULL, 9), NULL, NULL, NULL), 0);
	assert_stands("a/b", LEVEL_SECRET, NP_NONE, 9);
	assert_int_equal(store_session_raise(store, "a/c", RUNG(LEVEL_PUBLIC, NP_FULL, 9), NULL, NULL, NULL), -ENOENT);
	reopen();
	assert_stands("a/b", LEVEL_SECRET, NP_NONE, 9);
}

static void test_triggers_refuse_to_lower(void **state)
{
	static const char *const refused[] = {
		"UPDATE sessions SET level = 1",
		"UPDATE sessions SET mode = 2",
		"UPDATE sessions SET generation = 4",
		"UPDATE sessions SET name = 'x/y'",
		"DELETE FROM sessions",
		"INSERT OR REPLACE INTO sessions " COLUMNS " VALUES ('a/b', 0, 1, 1, 1, NULL)",
		"REPLACE INTO sessions " COLUMNS " VALUES ('a/b', 0, 1, 1, 1, NULL)",
		"INSERT INTO sessions " COLUMNS " VALUES ('a/b', 0, 1, 1, 1, NULL) ON CONFLICT DO UPDATE SET "
		"level = 0",
		"UPDATE datasets SET level = 1",
		/* and the CHECK constraints */
		"UPDATE sessions SET level = 4",
		"UPDATE sessions SET mode = 4",
		"INSERT INTO sessions " COLUMNS " VALUES ('c/d', -1, 1, 1, 1, NULL)",
		"INSERT INTO sessions " COLUMNS " VALUES ('c/d', 0, 0, 1, 1, NULL)",
		"INSERT INTO sessions " COLUMNS " VALUES ('c/d', 'x', 1, 1, 1, NULL)",
		"INSERT INTO sandboxes VALUES ('i', 'a/b', 1, '/p', 2, 1, '')",
		"INSERT INTO sandboxes VALUES ('i', 'a/b', 1, '/p', 1, 1, 'open')",
		"INSERT INTO sandboxes VALUES ('i', 'no/one', 1, '/p', 1, 1, '')",
	};
	struct dataset_row dataset = { .name = "d", .level = LEVEL_CONFIDENTIAL };

	(void)state;
	put("a/b", LEVEL_CONFIDENTIAL, NP_NONE, 5);
	assert_int_equal(store_session_raise(store, "a/b", RUNG(0, NP_FULL, 0), &dataset, NULL, NULL), 0);
	for (size_t i = 0; i < ARRAY_SIZE(refused); i++)
		if ((sql(refused[i]) & 0xff) != SQLITE_CONSTRAINT)
			fail_msg("not refused: %s", refused[i]);
	/* The triggers are in the file, not in this connection's settings. */
	assert_int_equal(sql("PRAGMA recursive_triggers = OFF"), SQLITE_OK);
	assert_int_equal(sql(refused[5]) & 0xff, SQLITE_CONSTRAINT);
	assert_stands("a/b", LEVEL_CONFIDENTIAL, NP_NONE, 5);
	assert_int_equal(sql("UPDATE sessions SET level = 3"), SQLITE_OK);
}

struct datasets {
	unsigned count;
	struct dataset_row rows[8];
	int answer;
};

static int dataset_collect(void *data, const struct dataset_row *row)
{
	struct datasets *all = data;

	all->rows[all->count++] = *row;
	return all->answer;
}

static void test_datasets(void **state)
{
	struct dataset_row one = { .name = "one", .level = LEVEL_INTERNAL, .reason = "first", .added_us = 10 };
	struct dataset_row again = { .name = "one", .level = LEVEL_SECRET, .reason = "second", .added_us = 20 };
	struct dataset_row two = { .name = "ein zwei", .level = LEVEL_PUBLIC, .added_us = 5 };
	struct datasets all = { 0 };
	bool is_new = false;

	(void)state;
	put("a/b", LEVEL_PUBLIC, NP_FULL, 1);
	put("a/c", LEVEL_PUBLIC, NP_FULL, 1);
	assert_int_equal(store_session_raise(store, "a/b", RUNG(LEVEL_INTERNAL, NP_FULL, 2), &one, NULL, &is_new), 0);
	assert_true(is_new);
	assert_int_equal(store_session_raise(store, "a/b", RUNG(LEVEL_SECRET, NP_NONE, 3), &again, NULL, &is_new), 0);
	assert_false(is_new);
	/* Lower than it is: the dataset keeps its maximum, too. */
	assert_int_equal(store_session_raise(store, "a/b", RUNG(LEVEL_INTERNAL, NP_FULL, 3), &one, NULL, &is_new), 0);
	assert_int_equal(store_session_raise(store, "a/b", RUNG(LEVEL_PUBLIC, NP_FULL, 3), &two, NULL, &is_new), 0);
	assert_true(is_new);
	assert_int_equal(get("a/b").datasets, 2);
	assert_int_equal(get("a/c").datasets, 0);

	assert_int_equal(store_datasets_each(store, "a/b", dataset_collect, &all), 0);
	assert_int_equal(all.count, 2);
	assert_string_equal(all.rows[0].name, "ein zwei"); /* by time */
	assert_string_equal(all.rows[1].name, "one");
	assert_int_equal(all.rows[1].level, LEVEL_SECRET);
	assert_string_equal(all.rows[1].reason, "first");
	assert_int_equal(all.rows[1].added_us, 10);

	all = (struct datasets){ .answer = -ECANCELED };
	assert_int_equal(store_datasets_each(store, "a/b", dataset_collect, &all), -ECANCELED);
	assert_int_equal(all.count, 1);
	all = (struct datasets){ 0 };
	assert_int_equal(store_datasets_each(store, "a/c", dataset_collect, &all), 0);
	assert_int_equal(all.count, 0);
}

static void test_dataset_bound_changes_nothing(void **state)
{
	struct dataset_row dataset = { .level = LEVEL_PUBLIC };
	bool is_new = true;

	(void)state;
	put("a/b", LEVEL_PUBLIC, NP_FULL, 1);
	assert_int_equal(sql("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1024)"
			     " INSERT INTO datasets SELECT 'a/b', 'd' || i, 0, '', i FROM n"),
			 SQLITE_OK);
	assert_int_equal(get("a/b").datasets, NP_DATASETS_MAX);
	strcpy(dataset.name, "one too many");
	assert_int_equal(store_session_raise(store, "a/b", RUNG(LEVEL_SECRET, NP_NONE, 2), &dataset, NULL, &is_new),
			 -E2BIG);
	assert_stands("a/b", LEVEL_PUBLIC, NP_FULL, 1);
	strcpy(dataset.name, "d7");
	assert_int_equal(store_session_raise(store, "a/b", RUNG(LEVEL_SECRET, NP_NONE, 2), &dataset, NULL, &is_new), 0);
	assert_false(is_new);
	assert_stands("a/b", LEVEL_SECRET, NP_NONE, 2);
}

static struct sandbox_row sandboxes[8];
static unsigned sandbox_count;

static int sandbox_collect(void *data, const struct sandbox_row *row)
{
	(void)data;
	sandboxes[sandbox_count++] = *row;
	/* The store may be used meanwhile, and the row at hand may be removed. */
	return store_sandbox_remove(store, row->id, 9);
}

static void test_sandboxes(void **state)
{
	struct sandbox_row row = { .id = "a.b.1", .cgroup_id = 0xfedcba9876543210, .path = "/cg/x y", .created_us = 3 };

	(void)state;
	row.session = row_of("a/b", 0, NP_FULL, 1).name;
	assert_int_equal(store_sandbox_put(store, &row), -ENOENT);
	put("a/b", LEVEL_PUBLIC, NP_FULL, 1);
	assert_int_equal(store_sandbox_put(store, &row), 0);
	assert_int_equal(store_sandbox_put(store, &row), -EEXIST);
	strcpy(row.id, "a.b.2");
	row.adopted = true;
	assert_int_equal(store_sandbox_put(store, &row), 0);
	assert_int_equal(store_sandbox_remove(store, "no such", 9), 0);
	reopen();
	sandbox_count = 0;
	assert_int_equal(store_sandboxes_each(store, sandbox_collect, NULL), 0);
	assert_int_equal(sandbox_count, 2);
	assert_string_equal(sandboxes[0].id, "a.b.1");
	assert_string_equal(sandboxes[0].session.text, "a/b");
	assert_true(sandboxes[0].cgroup_id == 0xfedcba9876543210);
	assert_string_equal(sandboxes[0].path, "/cg/x y");
	assert_false(sandboxes[0].adopted);
	assert_true(sandboxes[1].adopted);
	sandbox_count = 0;
	assert_int_equal(store_sandboxes_each(store, sandbox_collect, NULL), 0);
	assert_int_equal(sandbox_count, 0);
}

static int session_nested(void *data, const struct session_row *row)
{
	unsigned *n = data;

	/* A list inside a list. */
	++*n;
	assert_int_equal(get(row->name.text).rung.level, row->rung.level);
	return *n < 100 ? store_sessions_page(store, "", true, 1000, session_nested, &(unsigned){ 100 }) : 0;
}

static void test_lists_nest(void **state)
{
	unsigned n = 0;

	(void)state;
	put("b/b", LEVEL_PUBLIC, NP_FULL, 1);
	put("a/b", LEVEL_SECRET, NP_NONE, 1);
	assert_int_equal(store_session_end(store, "a/b", false, 1), 0);
	assert_int_equal(store_sessions_page(store, "", true, 1000, session_nested, &n), 0);
	assert_int_equal(n, 2);
}

static void test_full_disk(void **state)
{
	struct session_row row = row_of("u/x", LEVEL_PUBLIC, NP_FULL, 1);
	int r = 0;

	(void)state;
	put("a/b", LEVEL_PUBLIC, NP_FULL, 1);
	/* The schema's pages and a few more. */
	assert_int_equal(sql("PRAGMA max_page_count = 16"), SQLITE_OK);
	for (unsigned i = 0; i < 2000 && !r; i++) {
		snprintf(row.name.text, sizeof(row.name.text), "u/%0*u", NP_NAME_MAX, i);
		r = store_session_put(store, &row, NULL);
	}
	assert_int_equal(r, -ENOSPC);
	assert_int_equal(store_session_get(store, row.name.text, &row), -ENOENT);
	/* It is usable, and what was acknowledged is there. */
	assert_int_equal(store_session_raise(store, "a/b", RUNG(LEVEL_SECRET, NP_NONE, 2), NULL, NULL, NULL), 0);
	reopen();
	assert_stands("a/b", LEVEL_SECRET, NP_NONE, 2);
}

static int commit_refuse(void *data)
{
	(void)data;
	return 1;
}

static void test_failed_commit_leaves_nothing_open(void **state)
{
	struct dataset_row dataset = { .name = "d" };
	struct session_row row = row_of("c/d", LEVEL_PUBLIC, NP_FULL, 1);

	(void)state;
	put("a/b", LEVEL_PUBLIC, NP_FULL, 1);
	sqlite3_commit_hook(store->db, commit_refuse, NULL);
	assert_int_equal(store_session_raise(store, "a/b", RUNG(LEVEL_SECRET, NP_NONE, 2), &dataset, NULL, NULL), -EIO);
	assert_int_equal(store_session_put(store, &row, NULL), -EIO);
	assert_int_equal(store_session_end(store, "a/b", false, 1), -EIO);
	assert_int_equal(store_sessions_count(store), 1);
	sqlite3_commit_hook(store->db, NULL, NULL);
	assert_stands("a/b", LEVEL_PUBLIC, NP_FULL, 1);
	assert_int_equal(get("a/b").datasets, 0);
	assert_int_equal(store_session_raise(store, "a/b", RUNG(LEVEL_SECRET, NP_NONE, 2), &dataset, NULL, NULL), 0);
	assert_stands("a/b", LEVEL_SECRET, NP_NONE, 2);
}

static void test_locked_by_another(void **state)
{
	sqlite3 *other;

	(void)state;
	put("a/b", LEVEL_PUBLIC, NP_FULL, 1);
	assert_int_equal(sqlite3_open(path, &other), SQLITE_OK);
	assert_int_equal(sqlite3_exec(other, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
	assert_int_equal(store_session_raise(store, "a/b", RUNG(LEVEL_SECRET, NP_NONE, 2), NULL, NULL, NULL), -EBUSY);
	assert_stands("a/b", LEVEL_PUBLIC, NP_FULL, 1); /* readers do not wait for writers */
	assert_int_equal(sqlite3_exec(other, "ROLLBACK", NULL, NULL, NULL), SQLITE_OK);
	sqlite3_close(other);
	assert_int_equal(store_session_raise(store, "a/b", RUNG(LEVEL_SECRET, NP_NONE, 2), NULL, NULL, NULL), 0);
}

static int notice_collect(void *data, const struct notice_row *row)
{
	struct buf *out = data;

	buf_printf(out, "%u %s %s %s|%s|%s\n", row->number, level_name(row->rung.level), mode_name(row->rung.mode),
		   row->dataset, row->reason, row->text);
	return 0;
}

static const char *notices_of(const char *name, uint32_t after)
{
	static char text[4096];
	_buf_ struct buf out = BUF_INIT(sizeof(text) - 1);

	assert_int_equal(store_notices_each(store, name, after, notice_collect, &out), 0);
	snprintf(text, sizeof(text), "%s", out.data ? out.data : "");
	return text;
}

static void test_notices(void **state)
{
	struct notice_row notice = { .made_us = 1,
				     .rung = { .level = LEVEL_CONFIDENTIAL, .mode = NP_PROXIED },
				     .text = "one" };
	struct session_row row = { .rung = { .level = LEVEL_CONFIDENTIAL, .mode = NP_PROXIED, .generation = 1 } };
	const char *problem;

	(void)state;
	session_name_parse("a/b", &row.name, &problem);
	assert_int_equal(store_session_put(store, &row, &notice), 0);
	put("a/c", LEVEL_PUBLIC, NP_FULL, 1);
	notice = (struct notice_row){ .rung = { .level = LEVEL_SECRET, .mode = NP_NONE }, .text = "two" };
	strcpy(notice.dataset, "d");
	strcpy(notice.reason, "r");
	assert_int_equal(store_session_raise(store, "a/b", RUNG(LEVEL_SECRET, NP_NONE, 2), NULL, &notice, NULL), 0);
	assert_int_equal(store_session_raise(store, "a/c", RUNG(LEVEL_SECRET, NP_NONE, 2), NULL, &notice, NULL), 0);
	reopen();
	assert_string_equal(notices_of("a/b", 0), "1 CONFIDENTIAL PROXIED ||one\n2 SECRET NONE d|r|two\n");
	assert_string_equal(notices_of("a/b", 1), "2 SECRET NONE d|r|two\n");
	assert_string_equal(notices_of("a/b", 2), "");
	assert_string_equal(notices_of("a/c", 0), "1 SECRET NONE d|r|two\n");
	assert_string_equal(notices_of("a/d", 0), "");
	/* With a session that is not there it is not there either. */
	assert_int_equal(store_session_raise(store, "x/y", RUNG(LEVEL_SECRET, NP_NONE, 2), NULL, &notice, NULL),
			 -ENOENT);
	assert_string_equal(notices_of("x/y", 0), "");
	/* What somebody was told stays. */
	assert_int_equal(sql("UPDATE notices SET text = 'other'"), SQLITE_CONSTRAINT_TRIGGER);
	assert_int_equal(sql("DELETE FROM notices"), SQLITE_CONSTRAINT_TRIGGER);
}

static void assert_reader(const char *name, const char *reader, uint32_t want)
{
	uint32_t upto = 77;

	assert_int_equal(store_reader_get(store, name, reader, &upto), 0);
	assert_int_equal(upto, want);
}

static void test_notice_readers(void **state)
{
	struct notice_row notice = { .rung = { .level = LEVEL_SECRET, .mode = NP_NONE }, .text = "t" };
	char reader[16];

	(void)state;
	put("a/b", LEVEL_PUBLIC, NP_FULL, 1);
	assert_reader("a/b", "r0", 0);
	assert_int_equal(store_reader_put(store, "a/b", "r0", 1), -ERANGE);
	assert_int_equal(store_reader_put(store, "x/y", "r0", 0), -ENOENT);
	for (int i = 0; i < 3; i++)
		assert_int_equal(store_session_raise(store, "a/b", RUNG(LEVEL_SECRET, NP_NONE, 2), NULL, &notice, NULL),
				 0);
	assert_int_equal(store_reader_put(store, "a/b", "r0", 2), 0);
	assert_int_equal(store_reader_put(store, "a/b", "r0", 1), 0); /* only ever on */
	reopen();
	assert_reader("a/b", "r0", 2);
	assert_int_equal(store_reader_put(store, "a/b", "r0", 4), -ERANGE);
	assert_reader("a/b", "r0", 2);
	for (int i = 1; i < NP_NOTICE_READERS; i++) {
		snprintf(reader, sizeof(reader), "r%d", i);
		assert_int_equal(store_reader_put(store, "a/b", reader, 1), 0);
	}
	assert_int_equal(store_reader_put(store, "a/b", "more", 1), -E2BIG);
	assert_reader("a/b", "more", 0);
	assert_int_equal(store_reader_put(store, "a/b", "r0", 3), 0);
	assert_int_equal(sql("UPDATE notice_readers SET upto = 0"), SQLITE_CONSTRAINT_TRIGGER);
}

/* A file as the build of schema version 3 left it; then what older versions did not have is taken away. */
static void old_file(const char *less)
{
	sqlite3 *old;

	store_close(store);
	store = NULL;
	assert_int_equal(unlink(path), 0);
	assert_int_equal(sqlite3_open(path, &old), SQLITE_OK);
	assert_int_equal(sqlite3_exec(old, store_v3, NULL, NULL, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_exec(old, less, NULL, NULL, NULL), SQLITE_OK);
	sqlite3_close(old);
}

/* It keeps what it has and gets what it lacks. */
static void test_upgrade(void **state)
{
	static const char *const less[] = {
		"",
		"DROP TABLE approvals; DROP TABLE runs; ALTER TABLE sandboxes DROP COLUMN class; UPDATE meta SET value "
		"= 2",
		"DROP TABLE approvals; DROP TABLE runs; ALTER TABLE sandboxes DROP COLUMN class;"
		"DROP TABLE notices; DROP TABLE notice_readers; UPDATE meta SET value = 1"
	};
	struct notice_row notice = { .rung = { .level = LEVEL_SECRET, .mode = NP_NONE }, .text = "t" };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(less); i++) {
		old_file(less[i]);
		assert_int_equal(store_open(path, &store), 0);
		assert_stands("alice/open", LEVEL_CONFIDENTIAL, NP_PROXIED, 4);
		assert_stands("alice/ended", LEVEL_SECRET, NP_NONE, 5);
		assert_stands("bob/public", LEVEL_PUBLIC, NP_FULL, 1);
		assert_int_equal(get("alice/ended").used_us, 2000);
		assert_true(get("alice/open").used_us > 1600000000000000); /* its time begins with the upgrade */
		assert_false(get("alice/ended").temporary);
		assert_int_equal(store_sessions_count(store), 3);
		assert_int_equal(store_sessions_ended(store), 2);
		assert_int_equal(
			store_session_raise(store, "alice/open", RUNG(LEVEL_SECRET, NP_NONE, 5), NULL, &notice, NULL),
			0);
		assert_int_equal(sql("UPDATE sessions SET level = 1"), SQLITE_CONSTRAINT_TRIGGER);
		assert_int_equal(sql("DELETE FROM sessions"), SQLITE_CONSTRAINT_TRIGGER);
		reopen();
		assert_stands("alice/open", LEVEL_SECRET, NP_NONE, 5);
	}
	/* One that cannot be brought up to date is left as it is. */
	assert_int_equal(sql("UPDATE meta SET value = 1"), SQLITE_OK);
	store_close(store);
	assert_int_equal(store_open(path, &store), -EIO);
	store = NULL;
}

/* Runs with their decisions, and the numbers that were given, are there after they have lost their reference. */
static void test_upgrade_keeps_runs(void **state)
{
	struct run_row run;
	uint64_t id = 0;

	(void)state;
	old_file("");
	assert_int_equal(store_open(path, &store), 0);
	assert_int_equal(store_run_get(store, 1, &run), 0);
	assert_int_equal(run.state, RUN_COMPLETED);
	assert_true(run.decided && run.approved);
	assert_string_equal(run.session.text, "alice/ended");
	assert_int_equal(store_run_get(store, 2, &run), 0);
	assert_int_equal(run.state, RUN_PENDING);
	assert_int_equal(store_run_get(store, 3, &run), -ENOENT);
	run.session = row_of("alice/open", 0, NP_FULL, 1).name;
	assert_int_equal(store_run_put(store, &run, &id), 0);
	assert_int_equal(id, 4); /* 3 was given, and never comes again */
	run.session = row_of("no/one", 0, NP_FULL, 1).name;
	assert_int_equal(store_run_put(store, &run, &id), -ENOENT);
	assert_int_equal(sql("UPDATE runs SET command = '[]' WHERE id = 2"), SQLITE_CONSTRAINT_TRIGGER);
	assert_int_equal(sql("UPDATE runs SET state = 'running', started_us = 1 WHERE id = 2"),
			 SQLITE_CONSTRAINT_TRIGGER);
	assert_int_equal(sql("UPDATE approvals SET approved = 0"), SQLITE_CONSTRAINT_TRIGGER);
	assert_int_equal(sql("DELETE FROM approvals"), SQLITE_CONSTRAINT_TRIGGER);
}

static void test_foreign_files(void **state)
{
	struct store *other = NULL;
	char link[128];
	FILE *f;

	(void)state;
	assert_int_equal(sql("UPDATE meta SET value = 1000 WHERE key = 'schema'"), SQLITE_OK);
	assert_int_equal(store_open(path, &other), -EPROTO);
	assert_int_equal(sql("DELETE FROM meta"), SQLITE_OK);
	assert_int_equal(store_open(path, &other), -EPROTO);
	assert_int_equal(sql("DROP TABLE meta"), SQLITE_OK);
	assert_int_equal(store_open(path, &other), -EPROTO);
	store_close(store);
	store = NULL;
	f = fopen(path, "w");
	fputs("This is a text and no database, and it is long enough to tell by its first hundred "
	      "bytes, or so.\n",
	      f);
	fputs("This is a text and no database, and it is long enough to tell by its first hundred "
	      "bytes, or so.\n",
	      f);
	fclose(f);
	assert_int_equal(store_open(path, &other), -EPROTO);
	assert_int_equal(store_open("/nonexistent/dir/db", &other), -ENOENT);
	assert_int_equal(store_open(dir, &other), -EISDIR);
	snprintf(link, sizeof(link), "%s/link", dir);
	assert_int_equal(symlink(path, link), 0);
	assert_int_equal(store_open(link, &other), -ELOOP);
	unlink(link);
	assert_null(other);
}

#define store_test(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

/* Between commits the log gets room in front of it, which is no part of it, and goes into the database. */
static void test_tended_log(void **state)
{
	char copy[96], command[512];
	struct store *other;
	struct session_row row;
	off_t before, after;

	(void)state;
	put("a/b", LEVEL_PUBLIC, NP_FULL, 1);
	before = wal_size();
	store_tend(store);
	after = wal_size();
	assert_true(after > before);
	store_tend(store);
	assert_int_equal(wal_size(), after);
	assert_int_equal(store_session_raise(store, "a/b", RUNG(LEVEL_SECRET, NP_NONE, 2), NULL, NULL, NULL), 0);
	assert_int_equal(wal_size(), after); /* it had its place */
	/* A crash leaves the files as they are: the zeros are not taken for anything. */
	snprintf(copy, sizeof(copy), "%s/copy.db", dir);
	snprintf(command, sizeof(command), "cp %s %s && cp %s-wal %s-wal", path, copy, path, copy);
	assert_int_equal(system(command), 0);
	assert_int_equal(store_open(copy, &other), 0);
	assert_int_equal(store_session_get(other, "a/b", &row), 0);
	assert_int_equal(row.rung.level, LEVEL_SECRET);
	store_close(other);
	store_files_remove(copy);
	/* What would have been a checkpoint in a commit is one in between; the log then begins anew and stays as long. */
	for (unsigned i = 3; i < 700; i++)
		assert_int_equal(store_session_raise(store, "a/b", RUNG(LEVEL_SECRET, NP_NONE, i), NULL, NULL, NULL),
				 0);
	assert_true(store->frames > 600);
	store_tend(store);
	after = wal_size();
	assert_int_equal(store_session_raise(store, "a/b", RUNG(LEVEL_SECRET, NP_NONE, 700), NULL, NULL, NULL), 0);
	assert_true(store->frames < 10);
	assert_int_equal(wal_size(), after);
	reopen();
	assert_stands("a/b", LEVEL_SECRET, NP_NONE, 700);
}

static void count_due(void *data)
{
	++*(unsigned *)data;
}

/* In busy times it does not wait for the next look: whoever asks is told by the commit that leaves too little room, or too much to
 * carry over, and not by those after it when that was seen to. */
static void test_log_is_due(void **state)
{
	unsigned due = 0, generation = 2, told = 0;
	off_t most;

	(void)state;
	store_on_due(store, count_due, &due);
	put("a/b", LEVEL_PUBLIC, NP_FULL, 1);
	assert_int_equal(due, 1); /* it has no room yet */
	store_tend(store);
	most = wal_size();
	for (due = 0; generation < 2000; generation++) {
		assert_int_equal(
			store_session_raise(store, "a/b", RUNG(LEVEL_SECRET, NP_NONE, generation), NULL, NULL, NULL),
			0);
		if (due) {
			told++;
			store_tend(store);
			most = wal_size() > most ? wal_size() : most;
			due = 0;
		}
		assert_true(wal_size() <= most); /* no commit has made the file grow */
	}
	assert_true(told >= 3 && told < 30);
	assert_true(most < 1000 * (4096 + 24)); /* it begins anew before it is long */
	store_on_due(store, NULL, NULL);
}

/* Another process that reads the file does not take itself for the last one that has it open: it would remove the log, and
 * what is written there afterwards would be nowhere. */
static void test_readers_leave_the_log(void **state)
{
	struct store *other;
	struct session_row row;
	pid_t child;
	int status;

	(void)state;
	put("a/b", LEVEL_PUBLIC, NP_FULL, 1);
	assert_int_equal(store_check(store), 0);
	store_tend(store);
	child = fork();
	if (child == 0)
		execlp("python3", "python3", "-c",
		       "import sqlite3, sys\n"
		       "db = sqlite3.connect(sys.argv[1])\n"
		       "db.execute('SELECT count(*) FROM sessions').fetchall()\n"
		       "db.close()",
		       path, NULL);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_true(wal_size() > 0);
	assert_int_equal(store_session_raise(store, "a/b", RUNG(LEVEL_SECRET, NP_NONE, 2), NULL, NULL, NULL), 0);
	assert_int_equal(store_open(path, &other), 0);
	assert_int_equal(store_session_get(other, "a/b", &row), 0);
	assert_int_equal(row.rung.level, LEVEL_SECRET);
	store_close(other);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		store_test(test_file_modes),
		store_test(test_settings),
		store_test(test_rows_of_sandboxes_wait_for_no_disk),
		store_test(test_rows_of_adopted_ones_are_on_the_disk),
		store_test(test_temporary_sessions_wait_for_no_disk),
		store_test(test_session_put_and_get),
		store_test(test_session_end_and_revive),
		store_test(test_raise_takes_each_maximum),
		store_test(test_triggers_refuse_to_lower),
		store_test(test_datasets),
		store_test(test_dataset_bound_changes_nothing),
		store_test(test_sandboxes),
		store_test(test_lists_nest),
		store_test(test_full_disk),
		store_test(test_failed_commit_leaves_nothing_open),
		store_test(test_locked_by_another),
		store_test(test_notices),
		store_test(test_notice_readers),
		store_test(test_upgrade),
		store_test(test_upgrade_keeps_runs),
		store_test(test_foreign_files),
		store_test(test_tended_log),
		store_test(test_log_is_due),
		store_test(test_readers_leave_the_log),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
