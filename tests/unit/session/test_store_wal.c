/* SPDX-License-Identifier: MIT */
/*
 * The database's log on a disk with a block that cannot be written. The disk is a model of what Linux does: each try to write the block back
 * fails, is told of once to each descriptor, and leaves the page clean, so that the next try has nothing to do, and is all right.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants the four above first */
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static bool bad_block, dirty, refuses;
static unsigned errors, told[256]; /* how many there were, and of how many a descriptor has heard */

static bool is_log(int fd)
{
	char name[64], file[256];
	ssize_t n;

	snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
	n = readlink(name, file, sizeof(file) - 1);
	file[n < 0 ? 0 : n] = '\0';
	return n > 4 && !strcmp(file + n - 4, "-wal") && fd < 256;
}

static int tell(int fd)
{
	if (told[fd] == errors)
		return 0;
	told[fd] = errors;
	errno = EIO;
	return -1;
}

/* SQLite's as well: this one comes first when symbols are looked up. */
int fdatasync(int fd)
{
	if (bad_block && is_log(fd)) {
		errors += dirty;
		dirty = false;
		return tell(fd);
	}
	return (int)syscall(SYS_fdatasync, fd);
}

int sync_file_range(int fd, off64_t at, off64_t n, unsigned flags)
{
	(void)at;
	(void)n;
	(void)flags;
	return bad_block && is_log(fd) ? tell(fd) : 0;
}

static ssize_t pwrite_noted(int fd, const void *data, size_t n, off_t at)
{
	if (refuses) {
		errno = EIO;
		return -1;
	}
	dirty |= bad_block && at == 0; /* all of the log is written again: the bad block, too */
	return (pwrite)(fd, data, n, at);
}

#define pwrite pwrite_noted
#include "session/store_wal.c"
#undef pwrite

#include "session/raise_log.h"
#include "store_fixture.h"

#define RUNG(l, m, g) ((struct np_rung){ .level = (l), .mode = (m), .generation = (g) })

static int log_teardown(void **state)
{
	bad_block = dirty = refuses = false;
	return teardown(state);
}

static void put(const char *name)
{
	struct session_row row = { .rung = RUNG(LEVEL_PUBLIC, NP_FULL, 1), .created_us = 1 };
	const char *problem;

	assert_int_equal(session_name_parse(name, &row.name, &problem), 0);
	assert_int_equal(store_session_put(store, &row, NULL), 0);
}

static void acknowledged(const char *name)
{
	struct raise_entry entry = { .session = name, .rung = RUNG(LEVEL_SECRET, NP_NONE, 2) };

	assert_int_equal(store_raise_begin(store, &entry), 0);
	store_raise_write(store);
	assert_int_equal(store_raise_end(store, store_raise_wait(store), 0), 0);
	assert_int_equal(store_catch_up(store), 0);
}

/* The block goes bad while it is written back: nobody has asked. */
static void fails_meanwhile(void)
{
	bad_block = true;
	errors++;
}

static uint64_t run_put(void)
{
	struct run_row row = { .class = CLASS_NONE, .command = "true", .who = "w", .options = "{}", .expires_us = 100 };
	const char *problem;
	uint64_t id = 0;

	assert_int_equal(session_name_parse("a/b", &row.session, &problem), 0);
	assert_int_equal(store_run_put(store, &row, &id), 0);
	return id;
}

static uint64_t question_put(const char *host)
{
	struct question_row row = { .rule = 1,
				    .port = 443,
				    .place = "p",
				    .sandbox = "s",
				    .method = "GET",
				    .url = "u",
				    .policy = "v",
				    .rung = RUNG(LEVEL_PUBLIC, NP_PROXIED, 1),
				    .created_us = 1,
				    .expires_us = 100 };
	const char *problem;
	uint64_t id = 0;

	strcpy(row.host, host);
	assert_int_equal(session_name_parse("a/b", &row.session, &problem), 0);
	assert_int_equal(store_question_put(store, &row, &id), 0);
	return id;
}

/* Rows that the verbs below need. */
static uint64_t run, running, asked, answered;

static int verb_session_end(void)
{
	return store_session_end(store, "e/f", false, 5);
}

static int verb_seen_to(void)
{
	return store_session_seen_to(store, "e/f");
}

static int verb_level_renew(void)
{
	return store_level_renew(store, "e/f", 5);
}

static int verb_run_start(void)
{
	return store_run_start(store, run, "s", 5);
}

static int verb_run_lose(void)
{
	return store_run_lose(store, running, 5);
}

static int verb_run_end(void)
{
	return store_run_end(store, running, RUN_COMPLETED, "{}", 5);
}

static int verb_question_answer(void)
{
	return store_question_answer(
		store,
		&(struct question_row){
			.id = asked, .state = QUESTION_ALLOWED, .answer = ANSWER_ONCE, .who = "w", .answered_us = 5 });
}

static int verb_question_end(void)
{
	return store_question_end(store, asked, QUESTION_EXPIRED, 5);
}

static int verb_answer_end(void)
{
	return store_answer_end(store, answered, "", 5);
}

static int verb_answer_return(void)
{
	return store_answer_return(store, answered);
}

static int verb_grant_revoked(void)
{
	return store_grant_revoked(store, answered, "w");
}

static int verb_temporary(void)
{
	return store_temporary_end(store, "e/f", 5);
}

/* No verb says that something is on the disk, or frees a block of the log of raises, while the database's log has a hole: neither in words of its
 * own nor by what its commit means for others. */
static void test_a_log_with_a_hole(void **state)
{
	static int (*const verbs[])(void) = { verb_session_end,	    verb_seen_to,      verb_level_renew,
					      verb_run_start,	    verb_run_lose,     verb_run_end,
					      verb_question_answer, verb_question_end, verb_answer_end,
					      verb_answer_return,   verb_grant_revoked };
	uint64_t settled;

	(void)state;
	put("a/b");
	put("e/f");
	run = run_put();
	running = run_put();
	assert_int_equal(store_run_start(store, running, "s", 1), 0);
	asked = question_put("one.example");
	answered = question_put("two.example");
	assert_int_equal(store_question_answer(store, &(struct question_row){ .id = answered,
									      .state = QUESTION_ALLOWED,
									      .answer = ANSWER_ONCE,
									      .who = "w",
									      .answered_us = 1 }),
			 0);
	store_tend(store);
	assert_int_equal(store_sync(store), 0);
	settled = store->synced;
	acknowledged("a/b");
	fails_meanwhile();
	assert_int_equal(store_sync(store), -EIO);
	for (size_t i = 0; i < 2 * ARRAY_SIZE(verbs); i++) { /* twice: the second try is all right for the kernel */
		assert_int_equal(verbs[i / 2](), -EIO);
		assert_int_equal(store->synced, settled);
	}
	assert_int_equal(verb_temporary(), 0); /* says nothing of the disk */
	assert_int_equal(store->synced, settled);
	bad_block = false;
	put("g/h");
	assert_int_equal(store->synced, store->written);
}

/* Also when nothing waits for the disk: the kernel may have forgotten by the next time that something does. */
static void test_it_is_asked_for_in_each_sweep(void **state)
{
	(void)state;
	put("a/b");
	assert_int_equal(store_sync(store), 0);
	assert_int_equal(store->synced, store->written);
	fails_meanwhile();
	assert_int_equal(store_sync(store), -EIO);
	assert_int_equal(store_sync(store), -EIO); /* and stays known */
	bad_block = false;
	assert_int_equal(store_sync(store), 0);
}

/* In a commit, too, when the log is so long that nobody waits for the next sweep. */
static void test_it_is_written_again_in_a_commit(void **state)
{
	char name[64];

	(void)state;
	put("a/b");
	store->wal_torn = true;
	for (int i = 0; i < SETTLE_MUST && store->wal_torn; i++) {
		struct session_row row = { .rung = RUNG(LEVEL_PUBLIC, NP_FULL, 1), .temporary = true };
		const char *problem;

		snprintf(name, sizeof(name), "a/" NP_TEMPORARY_NAME "%d", i);
		assert_int_equal(session_name_parse(name, &row.name, &problem), 0);
		assert_int_equal(store_session_put(store, &row, NULL), 0);
	}
	assert_true(store->frames >= SETTLE_MUST);
	assert_false(store->wal_torn);
	put("c/d");
	assert_int_equal(store_session_get(store, name, &(struct session_row){ 0 }), 0);
}

/* The database gets nothing out of it at the end, either: the next start reads it. */
static void test_the_end_with_a_hole(void **state)
{
	struct session_row row;
	char file[128];

	(void)state;
	put("a/b");
	store_tend(store);
	acknowledged("a/b");
	fails_meanwhile();
	refuses = true; /* and so SQLite's descriptor, which has heard of the first failure, hears of no other */
	store_close(store);
	store = NULL;
	snprintf(file, sizeof(file), "%s-wal", path);
	assert_int_equal(access(file, F_OK), 0);
	bad_block = dirty = refuses = false;
	assert_int_equal(store_open(path, &store), 0);
	assert_int_equal(store_session_get(store, "a/b", &row), 0);
	assert_int_equal(row.rung.level, LEVEL_SECRET);
	store_close(store);
	store = NULL;
	assert_int_equal(access(file, F_OK), -1);
	assert_int_equal(store_open(path, &store), 0);
}

/* It is not written again while another process may be writing to it. A start goes on without. */
static void test_somebody_else_is_writing(void **state)
{
	struct session_row row;
	sqlite3 *other;

	(void)state;
	put("a/b");
	assert_int_equal(sqlite3_open(path, &other), SQLITE_OK);
	assert_int_equal(sqlite3_exec(other, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
	store->wal_torn = true;
	assert_int_equal(store_sync(store), -EBUSY);
	assert_true(store->wal_torn);
	reopen();
	assert_true(store->wal_torn);
	assert_int_equal(store_session_get(store, "a/b", &row), 0);
	assert_int_equal(store_session_seen_to(store, "a/b"), -EBUSY);
	assert_int_equal(sqlite3_exec(other, "ROLLBACK", NULL, NULL, NULL), SQLITE_OK);
	assert_int_equal(store_session_seen_to(store, "a/b"), 0);
	assert_false(store->wal_torn);
	sqlite3_close(other);
}

#define log_test(fn) cmocka_unit_test_setup_teardown(fn, setup, log_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		log_test(test_a_log_with_a_hole),
		log_test(test_it_is_asked_for_in_each_sweep),
		log_test(test_it_is_written_again_in_a_commit),
		log_test(test_the_end_with_a_hole),
		log_test(test_somebody_else_is_writing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
