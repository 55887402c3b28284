/* SPDX-License-Identifier: MIT */
/* Notices: when they are due, that they are recorded with the mode, and their file. */
#include "fake.h"
#include "vocab/limits.h"

#include "session/notices.c"
#include "session/notice_file.c"

static int notice_collect(void *data, const struct notice_row *row)
{
	buf_printf(data, "%u %s\n", row->number, row->text);
	return 0;
}

static const char *published(const char *session)
{
	static char text[4096];
	_buf_ struct buf out = BUF_INIT(sizeof(text) - 1);

	assert_int_equal(store_notices_each(fake.store, session, 0, notice_collect, &out), 0);
	snprintf(text, sizeof(text), "%s", out.data ? out.data : "");
	return text;
}

/* Files as well, for the tests below. */
static void with_files(void)
{
	snprintf(fake.notices, sizeof(fake.notices), "%s/notices", fake.dir);
	fake_stop();
	fake_start();
	assert_int_equal(service_recover(fake.service, &fake.failure), 0);
}

static const char *file_text(const char *session)
{
	static char text[8192];
	char path[FS_PATH_SIZE];
	_free_ char *got = NULL;
	int r;

	assert_int_equal(service_notices_path(fake.service, session, path), 0);
	r = fs_read_at(AT_FDCWD, path, sizeof(text) - 1, &got);
	if (r < 0)
		return strerror(-r);
	strcpy(text, got);
	return text;
}

static void files_gone(void)
{
	assert_int_equal(rmdir(fake.notices), 0);
}

static void test_due_when_the_mode_rises(void **state)
{
	(void)state;
	made("a/b");
	assert_string_equal(published("a/b"), "");
	assert_int_equal(escalate("a/b", LEVEL_INTERNAL, "i", NULL), 0);
	assert_string_equal(published("a/b"), "");
	assert_int_equal(escalate("a/b", LEVEL_CONFIDENTIAL, "c", NULL), 0);
	assert_int_equal(escalate("a/b", LEVEL_CONFIDENTIAL, "c2", NULL), 0);
	assert_int_equal(escalate("a/b", LEVEL_PUBLIC, NULL, NULL), 0);
	assert_int_equal(escalate("a/b", LEVEL_SECRET, NULL, NULL), 0);
	assert_int_equal(escalate("a/b", LEVEL_SECRET, "s", NULL), 0);
	assert_string_equal(published("a/b"),
			    "1 a/b CONFIDENTIAL PROXIED c because raised\n2 a/b SECRET NONE - because raised\n");
}

static void test_new_sessions(void **state)
{
	struct session_row row;

	(void)state;
	assert_int_equal(service_session_create(fake.service, "a/b", LEVEL_PUBLIC, false, "test", &row, &fake.failure),
			 0);
	assert_string_equal(published("a/b"), "");
	assert_int_equal(service_session_create(fake.service, "a/c", LEVEL_SECRET, false, "test", &row, &fake.failure),
			 0);
	assert_string_equal(published("a/c"), "1 a/c SECRET NONE - - raised\n");
	assert_int_equal(escalate("a/d", LEVEL_CONFIDENTIAL, "d", NULL), 0);
	assert_string_equal(published("a/d"), "1 a/d CONFIDENTIAL PROXIED d because raised\n");
	/* Ended and used again at its level: no news. */
	assert_int_equal(service_session_end(fake.service, "a/d", "test", &fake.failure), 0);
	made("a/d");
	assert_string_equal(published("a/d"), "1 a/d CONFIDENTIAL PROXIED d because raised\n");
	assert_int_equal(service_session_end(fake.service, "a/d", "test", &fake.failure), 0);
	assert_int_equal(escalate("a/d", LEVEL_SECRET, "e", NULL), 0);
	assert_string_equal(published("a/d"),
			    "1 a/d CONFIDENTIAL PROXIED d because raised\n2 a/d SECRET NONE e because raised\n");
}

static void test_a_level_that_is_proxied_too(void **state)
{
	(void)state;
	fake.modes.of[LEVEL_INTERNAL] = NP_PROXIED;
	fake_stop();
	fake_start();
	assert_int_equal(escalate("a/b", LEVEL_INTERNAL, NULL, NULL), 0);
	assert_int_equal(escalate("a/b", LEVEL_CONFIDENTIAL, NULL, NULL), 0);
	assert_string_equal(published("a/b"),
			    "1 a/b INTERNAL PROXIED - because raised\n2 a/b CONFIDENTIAL PROXIED - because raised\n");
}

static void test_a_stricter_policy(void **state)
{
	struct level_modes modes = level_modes_default;
	struct policy_effect effect = { 0 };

	(void)state;
	made("a/b");
	modes.of[LEVEL_PUBLIC] = modes.of[LEVEL_INTERNAL] = NP_PROXIED;
	assert_int_equal(service_policy_raise(fake.service, &modes, "test", &effect, &fake.failure), 0);
	assert_string_equal(published("a/b"), "1 a/b PUBLIC PROXIED - -\n");
}

/* Not recorded, no notice; recorded at the next try, one. */
static void test_with_the_record_or_not_at_all(void **state)
{
	(void)state;
	made("a/b");
	fake.disk_full = true;
	assert_true(escalate("a/b", LEVEL_SECRET, "s", NULL) < 0);
	assert_string_equal(published("a/b"), "");
	fake.disk_full = false;
	assert_int_equal(escalate("a/b", LEVEL_SECRET, "s", NULL), 0);
	assert_string_equal(published("a/b"), "1 a/b SECRET NONE s because raised\n");
	/* A new session, too: its row and its notice are one transaction. */
	fake.disk_full = true;
	assert_true(escalate("c/d", LEVEL_CONFIDENTIAL, "x", NULL) < 0);
	fake.disk_full = false;
	assert_int_equal(escalate("c/d", LEVEL_CONFIDENTIAL, "x", NULL), 0);
	assert_string_equal(published("c/d"), "1 c/d CONFIDENTIAL PROXIED x because raised\n");
}

/* The same of a raise that was on its way to the disk beside the cut when the database turned out to be locked: the sweep does not record it
 * behind the caller's back. */
static void test_a_locked_database(void **state)
{
	static const char *const wanted = "1 a/b SECRET NONE s because raised\n";
	sqlite3 *other;

	(void)state;
	with_files();
	fake.notes_cuts = true;
	made("a/b");
	store_tend(fake.store);
	assert_int_equal(sqlite3_open(fake.db, &other), SQLITE_OK);
	assert_int_equal(sqlite3_exec(other, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
	assert_int_equal(escalate("a/b", LEVEL_SECRET, "s", NULL), -EBUSY);
	assert_int_equal(fake.failure.reason, NP_R_NOT_RECORDED);
	assert_string_equal(published("a/b"), "");
	assert_int_equal(sqlite3_exec(other, "ROLLBACK", NULL, NULL, NULL), SQLITE_OK);
	sqlite3_close(other);
	service_sweep(fake.service);
	assert_string_equal(published("a/b"), "");
	assert_string_equal(file_text("a/b"), "");
	assert_int_equal(escalate("a/b", LEVEL_SECRET, "s", NULL), 0);
	assert_string_equal(published("a/b"), wanted);
	assert_non_null(strstr(file_text("a/b"), "\"notice\":1,"));
	assert_null(strstr(file_text("a/b"), "\"notice\":2,"));
	/* A daemon that ends in between: the record follows the kernel, with the notice, and asking again adds none. */
	made("c/d");
	store_tend(fake.store);
	assert_int_equal(sqlite3_open(fake.db, &other), SQLITE_OK);
	assert_int_equal(sqlite3_exec(other, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
	assert_int_equal(escalate("c/d", LEVEL_SECRET, "s", NULL), -EBUSY);
	assert_int_equal(sqlite3_exec(other, "ROLLBACK", NULL, NULL, NULL), SQLITE_OK);
	sqlite3_close(other);
	fake_stop();
	fake_start();
	assert_int_equal(service_recover(fake.service, &fake.failure), 0);
	assert_string_equal(published("c/d"), "1 c/d SECRET NONE - - raised\n");
	assert_int_equal(escalate("c/d", LEVEL_SECRET, "s", NULL), 0);
	assert_string_equal(published("c/d"), "1 c/d SECRET NONE - - raised\n");
	assert_int_equal(service_session_end(fake.service, "a/b", "test", &fake.failure), 0);
	assert_int_equal(service_session_end(fake.service, "c/d", "test", &fake.failure), 0);
	files_gone();
}

/* Every single commit fails once: whatever is on record then has its notice. */
static void test_failure_of_each_step(void **state)
{
	(void)state;
	for (int step = 1; step < 12; step++) {
		struct session_row row;

		fake_again();
		made("a/b");
		fake_reset(step);
		escalate("a/b", LEVEL_SECRET, "s", NULL);
		fake_reset(0);
		assert_int_equal(store_session_get(fake.store, "a/b", &row), 0);
		assert_int_equal(*published("a/b") != '\0', row.rung.mode == NP_NONE);
		assert_int_equal(escalate("a/b", LEVEL_SECRET, "s", NULL), 0);
		assert_memory_equal(published("a/b"), "1 a/b SECRET NONE ", 18);
		assert_null(strstr(published("a/b"), "\n2 "));
	}
}

static void test_a_dataset_too_many_keeps_the_notice(void **state)
{
	char name[16];

	(void)state;
	for (int i = 0; i < NP_DATASETS_MAX; i++) {
		snprintf(name, sizeof(name), "d%d", i);
		fake_reset(0);
		assert_int_equal(escalate("a/b", LEVEL_PUBLIC, name, NULL), 0);
	}
	fake_reset(0);
	assert_int_equal(escalate("a/b", LEVEL_SECRET, "one more", NULL), 0);
	assert_string_equal(published("a/b"), "1 a/b SECRET NONE one more because raised\n");
}

static void test_the_file(void **state)
{
	char path[FS_PATH_SIZE];
	struct stat st;

	(void)state;
	with_files();
	made("a/b");
	assert_string_equal(file_text("a/b"), "");
	assert_int_equal(escalate("a/b", LEVEL_CONFIDENTIAL, "c\xc3\xa9", NULL), 0);
	assert_string_equal(
		file_text("a/b"),
		"{\"notice\":1,\"time\":\"1970-01-01T00:00:01.000000Z\",\"session\":\"a/b\",\"level\":"
		"\"CONFIDENTIAL\",\"mode\":\"PROXIED\",\"dataset\":\"c\xc3\xa9\",\"reason\":\"because\",\"text\":"
		"\"a/b CONFIDENTIAL PROXIED c\xc3\xa9 because raised\"}\n");
	service_notices_path(fake.service, "a/b", path);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0644);
	*strrchr(path, '/') = '\0';
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0755);
	assert_int_equal(stat(fake.notices, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0700);
	made("a/c");
	/* Without a sandbox nobody looks for it. */
	assert_int_equal(escalate("b/b", LEVEL_SECRET, NULL, NULL), 0);
	assert_string_equal(file_text("b/b"), strerror(ENOENT));
	assert_int_equal(service_session_end(fake.service, "a/b", "test", &fake.failure), 0);
	assert_string_equal(file_text("a/b"), strerror(ENOENT));
	assert_string_equal(file_text("a/c"), ""); /* the user's other session */
	assert_int_equal(service_session_end(fake.service, "a/c", "test", &fake.failure), 0);
	files_gone();
}

/* a/b with a notice: where its file is, and what that says. */
static void with_one_notice(char path[static FS_PATH_SIZE], char first[static 4096])
{
	with_files();
	made("a/b");
	escalate("a/b", LEVEL_CONFIDENTIAL, NULL, NULL);
	strcpy(first, file_text("a/b"));
	service_notices_path(fake.service, "a/b", path);
}

/* Who has the file open reads on: what is added is added to it. What is wrong in it is replaced. */
static void test_the_file_is_added_to(void **state)
{
	char path[FS_PATH_SIZE], first[4096];
	struct stat before, after;
	FILE *f;

	(void)state;
	with_one_notice(path, first);
	assert_int_equal(stat(path, &before), 0);
	escalate("a/b", LEVEL_SECRET, NULL, NULL);
	assert_memory_equal(file_text("a/b"), first, strlen(first));
	assert_int_equal(stat(path, &after), 0);
	assert_int_equal(before.st_ino, after.st_ino);
	strcpy(first, file_text("a/b"));
	/* Written in part, as by a daemon that died: the rest comes. */
	assert_int_equal(truncate(path, (off_t)strlen(first) - 5), 0);
	fake_stop();
	fake_start();
	assert_int_equal(service_recover(fake.service, &fake.failure), 0);
	assert_string_equal(file_text("a/b"), first);
	/* Somebody else's bytes do not stay. */
	f = fopen(path, "r+");
	fputs("{}", f);
	fclose(f);
	made("a/b");
	assert_string_equal(file_text("a/b"), first);
	assert_int_equal(service_session_end(fake.service, "a/b", "test", &fake.failure), 0);
	files_gone();
}

/* A line is added only to what we wrote ourselves. */
static void test_the_file_is_not_what_it_was(void **state)
{
	char path[FS_PATH_SIZE], first[4096];
	FILE *f;

	(void)state;
	with_one_notice(path, first);
	f = fopen(path, "a");
	fputs("{}\n", f);
	fclose(f);
	escalate("a/b", LEVEL_SECRET, NULL, NULL);
	assert_memory_equal(file_text("a/b"), first, strlen(first));
	assert_memory_equal(file_text("a/b") + strlen(first), "{\"notice\":2,", 12);
	assert_int_equal(service_session_end(fake.service, "a/b", "test", &fake.failure), 0);
	files_gone();
}

static void test_no_way_through_links(void **state)
{
	char victim[128], link[128], path[FS_PATH_SIZE];

	(void)state;
	with_files();
	made("a/b");
	service_notices_path(fake.service, "a/b", path);
	snprintf(victim, sizeof(victim), "%s/victim", fake.dir);
	assert_int_equal(mkdir(victim, 0755), 0);
	/* The file itself: replaced, and what it led to is as it was. */
	snprintf(link, sizeof(link), "%s/victim/file", fake.dir);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(symlink(link, path), 0);
	escalate("a/b", LEVEL_CONFIDENTIAL, NULL, NULL);
	assert_int_equal(access(link, F_OK), -1);
	assert_int_equal(readlink(path, link, sizeof(link)), -1);
	assert_non_null(strstr(file_text("a/b"), "CONFIDENTIAL"));
	/* A directory on the way: refused, told, and the escalation goes on. */
	assert_int_equal(service_session_end(fake.service, "a/b", "test", &fake.failure), 0);
	snprintf(link, sizeof(link), "%s/a", fake.notices);
	assert_int_equal(symlink(victim, link), 0);
	fake_reset(0);
	made("a/b");
	assert_non_null(strstr(fake.log, "event failed"));
	fake_reset(0);
	assert_int_equal(escalate("a/b", LEVEL_SECRET, "s", NULL), 0);
	assert_non_null(strstr(fake.log, "event failed"));
	assert_non_null(strstr(published("a/b"), "2 a/b SECRET NONE s"));
	assert_int_equal(unlink(link), 0);
	assert_int_equal(rmdir(victim), 0); /* nothing was put there */
	files_gone();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fake_test(test_due_when_the_mode_rises),
		fake_test(test_new_sessions),
		fake_test(test_a_level_that_is_proxied_too),
		fake_test(test_a_stricter_policy),
		fake_test(test_with_the_record_or_not_at_all),
		fake_test(test_a_locked_database),
		fake_test(test_failure_of_each_step),
		fake_test(test_a_dataset_too_many_keeps_the_notice),
		fake_test(test_the_file),
		fake_test(test_the_file_is_added_to),
		fake_test(test_the_file_is_not_what_it_was),
		fake_test(test_no_way_through_links),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
