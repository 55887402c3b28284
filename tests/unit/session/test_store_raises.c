/* SPDX-License-Identifier: MIT */
/* Raises by the log in front of the store: a machine that ends after any step of one, and the start after it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants the four above first */
#include <cmocka.h>
#include <limits.h>

#include <sqlite3.h>

static int busy_ms[8]; /* for how long others that have the database locked are waited for, as it was set last */
static unsigned busy_set;

static int busy_noted(sqlite3 *db, int ms)
{
	busy_ms[busy_set++ % 8] = ms;
	return (sqlite3_busy_timeout)(db, ms);
}
#define sqlite3_busy_timeout(db, ms) busy_noted(db, ms)

#include "session/store_raises.c"

#include "store_fixture.h"

#define RUNG(l, m, g) ((struct np_rung){ .level = (l), .mode = (m), .generation = (g) })

static const struct dataset_row dataset = { "customers.csv", LEVEL_SECRET, "ticket 4711", 1234567 };
static const struct notice_row notice = { .made_us = 7654321,
					  .rung = { .mode = NP_NONE, .level = LEVEL_SECRET },
					  .dataset = "customers.csv",
					  .reason = "ticket 4711",
					  .text = "nothing is reached any more" };

static struct raise_entry entry_of(const char *session, uint32_t generation)
{
	return (struct raise_entry){
		.session = session,
		.rung = RUNG(LEVEL_SECRET, NP_NONE, generation),
		.dataset = &dataset,
		.notice = &notice,
	};
}

/* A database that has been in use: its log has room. */
static int used_setup(void **state)
{
	int r = setup(state);

	if (r == 0)
		store_tend(store);
	return r;
}

static void put(const char *name)
{
	struct session_row row = { .rung = RUNG(LEVEL_PUBLIC, NP_FULL, 1), .created_us = 1 };
	const char *problem;

	assert_int_equal(session_name_parse(name, &row.name, &problem), 0);
	assert_int_equal(store_session_put(store, &row, NULL), 0);
}

/* How the files are on the disk right now, if it is as slow as it may be: of the database what was synced last, of the log all. */
static char disk[96];

static void copy(const char *suffix)
{
	char command[512];

	snprintf(command, sizeof(command), "rm -f %s%s; test ! -e %s%s || cp %s%s %s%s", disk, suffix, path, suffix,
		 path, suffix, disk, suffix);
	assert_int_equal(system(command), 0);
}

static void database_synced(void)
{
	snprintf(disk, sizeof(disk), "%s/disk.db", dir);
	copy("");
	copy("-wal");
}

/* The machine ends, and a daemon starts with what the disk has. */
static void machine_ends(void)
{
	copy("-raises");
	store_close(store);
	store = NULL;
	assert_int_equal(store_open(disk, &store), 0);
}

static void unlink_raises(void)
{
	char file[128];

	snprintf(file, sizeof(file), "%s-raises", path);
	assert_int_equal(unlink(file), 0);
}

static int disk_teardown(void **state)
{
	store_close(store);
	store = NULL;
	store_files_remove(disk);
	return teardown(state);
}

static int notices_count(void *data, const struct notice_row *row)
{
	assert_string_equal(row->text, notice.text);
	assert_string_equal(row->dataset, "customers.csv");
	assert_int_equal(row->made_us, notice.made_us);
	++*(unsigned *)data;
	return 0;
}

static void assert_raised(const char *name, uint32_t generation)
{
	struct session_row row;
	unsigned notices = 0;

	assert_int_equal(store_session_get(store, name, &row), 0);
	assert_int_equal(row.rung.level, LEVEL_SECRET);
	assert_int_equal(row.rung.mode, NP_NONE);
	assert_int_equal(row.rung.generation, generation);
	assert_int_equal(row.datasets, 1);
	assert_int_equal(store_notices_each(store, name, 0, notices_count, &notices), 0);
	assert_int_equal(notices, 1);
}

static void assert_as_before(const char *name)
{
	struct session_row row;
	unsigned notices = 0;

	assert_int_equal(store_session_get(store, name, &row), 0);
	assert_int_equal(row.rung.level, LEVEL_PUBLIC);
	assert_int_equal(row.datasets, 0);
	assert_int_equal(store_notices_each(store, name, 0, notices_count, &notices), 0);
	assert_int_equal(notices, 0);
}

static void replayed_count(void *data, const struct replayed_raise *raise)
{
	assert_int_equal(raise->rung.level, LEVEL_SECRET);
	assert_string_equal(raise->session.text, "a/b");
	++*(unsigned *)data;
}

static unsigned replayed(void)
{
	unsigned count = 0;

	store_replayed_each(store, replayed_count, &count);
	return count;
}

/* An entry that is nowhere else, as if the daemon ended there. */
static void log_only(const struct raise_entry *entry)
{
	uint64_t number;

	assert_int_equal(raise_log_put(store->raises, entry, &number), 0);
	assert_int_equal(raise_log_wait(store->raises), 0);
}

/* The same, and somebody has seen to them. */
static void all_are_in_the_database(void)
{
	assert_int_equal(begin_synced(store), 0);
	assert_int_equal(sql_end(store->db, raises_note(store, raise_log_follow(store->raises, 0))), 0);
}

/* A database of a build that noted no numbers. */
static void numbers_forgotten(void)
{
	assert_int_equal(sql_exec(store->db, "DELETE FROM meta WHERE key = 'raises'"), 0);
}

static void acknowledged(const struct raise_entry *entry)
{
	assert_int_equal(store_raise_begin(store, entry), 0);
	store_raise_write(store);
	assert_int_equal(store_raise_end(store, store_raise_wait(store), 0), 0);
}

static void test_the_machine_ends_after_the_log(void **state)
{
	struct raise_entry entry = entry_of("a/b", 2);

	(void)state;
	put("a/b");
	database_synced();
	assert_int_equal(store_raise_begin(store, &entry), 0);
	assert_int_equal(store_raise_wait(store), 0);
	machine_ends();
	assert_raised("a/b", 2);
	assert_int_equal(replayed(), 1);
	assert_int_equal(replayed(), 0); /* once */
	/* And the next start has nothing to do. */
	store_close(store);
	assert_int_equal(store_open(disk, &store), 0);
	assert_raised("a/b", 2);
	assert_int_equal(replayed(), 0);
}

static void test_the_machine_ends_after_the_commit(void **state)
{
	struct raise_entry entry = entry_of("a/b", 2);
	uint32_t number;

	(void)state;
	put("a/b");
	database_synced();
	assert_int_equal(store_raise_begin(store, &entry), 0);
	assert_int_equal(store_raise_wait(store), 0);
	assert_int_equal(store_raise_check(store, "a/b", &number), 0);
	assert_int_equal(number, 1);
	assert_int_equal(store_raise_end(store, 0, 0), 0);
	assert_true(store->behind);
	assert_raised("a/b", 2); /* whoever asks has it */
	assert_false(store->behind);
	machine_ends(); /* with nothing of the commit on the disk */
	assert_raised("a/b", 2);
	assert_int_equal(replayed(), 1);
}

static void test_the_machine_ends_after_all_is_on_the_disk(void **state)
{
	struct raise_entry entry = entry_of("a/b", 2);

	(void)state;
	put("a/b");
	assert_int_equal(store_raise_begin(store, &entry), 0);
	assert_int_equal(store_raise_wait(store), 0);
	assert_int_equal(store_raise_end(store, 0, 0), 0);
	assert_int_equal(store_catch_up(store), 0);
	assert_int_equal(store_sync(store), 0);
	database_synced();
	machine_ends();
	assert_raised("a/b", 2);
	assert_int_equal(replayed(), 0);
}

/* What the store knows to be higher stays as it is, and what it has forgotten does not come back. */
static void test_old_entries(void **state)
{
	struct raise_entry one = entry_of("a/b", 2), other = entry_of("c/d", 2), never = entry_of("x/y", 9);
	struct session_name name;
	struct session_row row;
	const char *problem;

	(void)state;
	put("a/b");
	put("c/d");
	log_only(&one);
	log_only(&other);
	log_only(&never);
	all_are_in_the_database();
	assert_int_equal(store_session_raise(store, "a/b", &RUNG(LEVEL_SECRET, NP_NONE, 7), NULL, NULL, NULL), 0);
	assert_int_equal(store_session_end(store, "c/d", false, 5), 0);
	assert_int_equal(session_name_parse("c/d", &name, &problem), 0);
	assert_int_equal(store_sessions_forget(store, &name, 1, 6), 0);
	database_synced();
	machine_ends();
	assert_int_equal(store_session_get(store, "a/b", &row), 0);
	assert_int_equal(row.rung.generation, 7);
	assert_int_equal(row.datasets, 0);
	assert_int_equal(store_session_get(store, "c/d", &row), -ENOENT);
	assert_int_equal(store_session_get(store, "x/y", &row), -ENOENT);
	assert_int_equal(replayed(), 0);
}

/* The same of such a database, of which generations alone tell. */
static void test_entries_of_a_build_without_numbers(void **state)
{
	struct raise_entry one = entry_of("a/b", 2), two = entry_of("c/d", 2);
	struct session_row row;

	(void)state;
	put("a/b");
	put("c/d");
	log_only(&one);
	log_only(&two);
	assert_int_equal(store_session_raise(store, "a/b", &RUNG(LEVEL_SECRET, NP_NONE, 2), NULL, NULL, NULL), 0);
	numbers_forgotten();
	database_synced();
	machine_ends();
	assert_int_equal(store_session_get(store, "a/b", &row), 0);
	assert_int_equal(row.datasets, 0);
	assert_raised("c/d", 2);
	/* From then on numbers tell. */
	one = entry_of("a/b", 2);
	log_only(&one);
	store_close(store);
	assert_int_equal(store_open(disk, &store), 0);
	assert_int_equal(store_session_get(store, "a/b", &row), 0);
	assert_int_equal(row.datasets, 1);
}

static void assert_remembered(const char *name, enum level level, enum np_mode mode, uint32_t generation)
{
	struct np_rung rung = { 0 };

	assert_int_equal(store_session_get(store, name, &(struct session_row){ 0 }), -ENOENT);
	assert_int_equal(store_level_get(store, name, &rung), 0);
	assert_int_equal(rung.level, level);
	assert_int_equal(rung.mode, mode);
	assert_int_equal(rung.generation, generation);
}

/* A copy of the database is put back that does not know the session yet: it comes back as high as it was raised. */
static void test_a_copy_that_does_not_know_the_session(void **state)
{
	struct raise_entry entry = entry_of("a/b", 2),
			   low = { "a/b", RUNG(LEVEL_CONFIDENTIAL, NP_PROXIED, 7), NULL, NULL },
			   temporary = entry_of("a/" NP_TEMPORARY_NAME "1", 2);
	struct session_row row = { .rung = RUNG(LEVEL_PUBLIC, NP_FULL, 1), .created_us = 1, .temporary = true };
	struct np_rung rung;
	uint64_t lately = 0;
	const char *problem;

	(void)state;
	database_synced();
	assert_int_equal(session_name_parse(temporary.session, &row.name, &problem), 0);
	assert_int_equal(store_session_put(store, &row, NULL), 0);
	put("a/b");
	acknowledged(&temporary);
	acknowledged(&entry);
	acknowledged(&low);
	machine_ends();
	assert_remembered("a/b", LEVEL_SECRET, NP_NONE, 7);
	assert_int_equal(store_sessions_count(store), 0);
	assert_int_equal(store_levels_count(store), 1);
	assert_int_equal(store_level_get(store, temporary.session, &rung), -ENOENT);
	assert_int_equal(store->n_replayed, 2);
	/* It counts from now, not from the beginning of time, or it would be due to go. */
	assert_int_equal(sql_number(store->db, "SELECT gone_us > 1700000000000000 FROM levels", &lately), 0);
	assert_int_equal(lately, 1);
	store_close(store);
	assert_int_equal(store_open(disk, &store), 0);
	assert_int_equal(store->n_replayed, 0);
	assert_int_equal(store_levels_count(store), 1);
	assert_int_equal(store_level_release(store, "a/b"), 0);
}

/* Of an older build, too, if what it has of the session is looser than the raise: its generation may be of another history. */
static void test_a_copy_without_numbers(void **state)
{
	struct raise_entry entry = entry_of("a/b", 2);

	(void)state;
	put("a/b");
	assert_int_equal(store_session_raise(store, "a/b", &RUNG(LEVEL_INTERNAL, NP_FULL, 5), NULL, NULL, NULL), 0);
	numbers_forgotten();
	database_synced();
	acknowledged(&entry);
	machine_ends();
	assert_raised("a/b", 5);
}

/* Generations begin anew: what was raised before has no say, and what was raised after is not taken for it. */
static void test_a_session_that_was_forgotten_and_made_again(void **state)
{
	struct raise_entry high = entry_of("a/b", 5), low = entry_of("a/b", 2);
	struct session_name name;
	struct session_row row;
	const char *problem;

	(void)state;
	put("a/b");
	acknowledged(&high);
	assert_int_equal(session_name_parse("a/b", &name, &problem), 0);
	assert_int_equal(store_session_end(store, "a/b", false, 5), 0);
	assert_int_equal(store_sessions_forget(store, &name, 1, 6), 0);
	assert_int_equal(store_level_release(store, "a/b"), 0);
	put("a/b");
	database_synced();
	machine_ends();
	assert_int_equal(store_session_get(store, "a/b", &row), 0);
	assert_int_equal(row.rung.level, LEVEL_PUBLIC);
	assert_int_equal(replayed(), 0);
	store_tend(store);
	acknowledged(&low);
	store->behind = false; /* the daemon ends here */
	store_close(store);
	assert_int_equal(store_open(disk, &store), 0);
	assert_raised("a/b", 2);
	assert_int_equal(replayed(), 1);
}

/* The first of them could not be recorded, so that the second has its generation. */
static void test_two_raises_of_one_generation(void **state)
{
	struct dataset_row other = { "other.csv", LEVEL_SECRET, "x", 99 };
	struct raise_entry one = entry_of("a/b", 2), two = one;
	struct session_row row;

	(void)state;
	two.dataset = &other;
	two.notice = NULL;
	put("a/b");
	acknowledged(&one);
	assert_int_equal(store_catch_up(store), 0);
	database_synced();
	acknowledged(&two);
	machine_ends();
	assert_int_equal(store_session_get(store, "a/b", &row), 0);
	assert_int_equal(row.datasets, 2);
	assert_int_equal(replayed(), 1);
}

/* Lost, or left behind when the database was moved: numbers go on where they were, or entries would be taken for old ones. */
static void test_a_log_that_is_made_anew(void **state)
{
	struct raise_entry one = entry_of("a/b", 2), two = entry_of("a/b", 3);

	(void)state;
	put("a/b");
	acknowledged(&one);
	acknowledged(&one);
	assert_int_equal(store_catch_up(store), 0);
	unlink_raises();
	store_close(store);
	assert_int_equal(store_open(path, &store), 0);
	store_tend(store);
	database_synced();
	two.dataset = NULL;
	two.notice = NULL;
	acknowledged(&two);
	machine_ends();
	assert_int_equal(replayed(), 1);
}

static void test_too_many_datasets(void **state)
{
	struct raise_entry entry = entry_of("a/b", 2);
	struct dataset_row other = dataset;
	struct session_row row;

	(void)state;
	put("a/b");
	for (int i = 0; i < NP_DATASETS_MAX; i++) {
		snprintf(other.name, sizeof(other.name), "d%d", i);
		assert_int_equal(store_session_raise(store, "a/b", &RUNG(LEVEL_PUBLIC, NP_FULL, 1), &other, NULL, NULL),
				 0);
	}
	store_tend(store);
	database_synced();
	for (int ends = 0; ends < 2; ends++) {
		if (ends) {
			machine_ends();
		} else {
			assert_int_equal(store_raise_begin(store, &entry), 0);
			assert_int_equal(store_raise_wait(store), 0);
			assert_int_equal(store_raise_end(store, 0, 0), 0);
		}
		assert_int_equal(store_session_get(store, "a/b", &row), 0);
		assert_int_equal(row.rung.level, LEVEL_SECRET);
		assert_int_equal(row.datasets, NP_DATASETS_MAX);
		assert_int_equal(replayed(), ends);
	}
}

/* A block of the log is free when the commit is on the disk: by the next one that waits for it, or by store_sync(). */
static void test_when_blocks_are_free(void **state)
{
	struct notice_row row = notice;
	uint32_t generation = 2;
	int rounds = 0;

	(void)state;
	put("a/b");
	for (int way = 0; way < 2; way++) {
		store->placed = INT_MAX; /* the database's own log is another bound */
		for (rounds = 0; rounds < 1000; rounds++) {
			struct raise_entry entry = entry_of("a/b", generation++);
			int r = store_raise_begin(store, &entry);

			if (r == -EAGAIN)
				break;
			assert_int_equal(r, 0);
			assert_int_equal(store_raise_wait(store), 0);
			assert_int_equal(store_raise_end(store, 0, 0), 0);
			assert_int_equal(store_catch_up(store), 0);
			assert_true(store->synced < store->written);
		}
		assert_int_equal(rounds, 64);
		if (way == 0)
			assert_int_equal(store_session_raise(store, "a/b", &RUNG(LEVEL_SECRET, NP_NONE, generation++),
							     NULL, &row, NULL),
					 0);
		else
			assert_int_equal(store_sync(store), 0);
		assert_int_equal(store->synced, store->written);
	}
}

/* Locked by somebody else, moved away: that is known before the raise is acknowledged. It is one that was not recorded, then. */
static void test_a_database_that_cannot_follow(void **state)
{
	struct raise_entry entry = entry_of("a/b", 2);
	char away[128];
	uint32_t number;
	sqlite3 *other;

	(void)state;
	put("a/b");
	snprintf(away, sizeof(away), "%s/away.db", dir);
	assert_int_equal(store_raise_begin(store, &entry), 0);
	assert_int_equal(store_raise_wait(store), 0);
	assert_int_equal(rename(path, away), 0);
	assert_int_equal(store_raise_check(store, "a/b", &number), -ESTALE);
	assert_int_equal(rename(away, path), 0);
	assert_int_equal(sqlite3_open(path, &other), SQLITE_OK);
	assert_int_equal(sqlite3_exec(other, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
	assert_int_equal(store_raise_check(store, "a/b", &number), -EBUSY);
	assert_int_equal(store_raise_end(store, 0, -EBUSY), -EBUSY);
	assert_as_before("a/b"); /* who reads does not write */
	assert_int_equal(store_raise_begin(store, &entry), -EBUSY);
	assert_int_equal(sqlite3_exec(other, "ROLLBACK", NULL, NULL, NULL), SQLITE_OK);
	store_tend(store);
	assert_as_before("a/b");
	/* Nobody is kept from it meanwhile, and what was asked leaves no lock. */
	assert_int_equal(store_raise_begin(store, &entry), 0);
	assert_int_equal(store_raise_check(store, "a/b", &number), 0);
	assert_int_equal(number, 1);
	assert_int_equal(sqlite3_exec(other, "BEGIN IMMEDIATE; ROLLBACK", NULL, NULL, NULL), SQLITE_OK);
	sqlite3_close(other);
	assert_int_equal(store_raise_begin(store, &entry),
			 -EAGAIN); /* the first is in its block, and not yet at its end */
	assert_int_equal(store_raise_wait(store), 0);
	assert_int_equal(store_raise_end(store, 0, 0), 0);
	assert_raised("a/b", 2);
	/* Without room in its log a commit may find a full disk: such a raise waits for it. */
	store->placed = store->frames;
	assert_int_equal(store_raise_begin(store, &entry), -EAGAIN);
}

/* In each way that there is to fail. */
static void refused(const struct raise_entry *entry, bool log_fails)
{
	const int fd = store->wal_fd;
	sqlite3 *other;

	assert_int_equal(store_raise_begin(store, entry), 0);
	store_raise_write(store);
	assert_int_equal(store_raise_wait(store), 0);
	if (log_fails) {
		store->wal_fd = INT_MAX; /* what is not there cannot be synced */
		assert_int_equal(store_raise_end(store, -EIO, 0), -EBADF);
		store->wal_fd = fd;
		return;
	}
	assert_int_equal(sqlite3_open(path, &other), SQLITE_OK);
	assert_int_equal(sqlite3_exec(other, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
	assert_int_equal(store_raise_end(store, 0, -EBUSY), -EBUSY);
	assert_int_equal(sqlite3_exec(other, "ROLLBACK", NULL, NULL, NULL), SQLITE_OK);
	sqlite3_close(other);
}

/* Not recorded, no notice; recorded at the next try, one: whatever comes between the two, and behind. */
static void test_a_raise_that_is_refused(void **state)
{
	struct raise_entry entry = entry_of("a/b", 2);

	(void)state;
	for (int way = 0; way < 8; way++) {
		if (way)
			assert_int_equal(disk_teardown(state) || used_setup(state), 0);
		put("a/b");
		database_synced();
		refused(&entry, way & 1);
		if (way & 2) { /* the daemon ends, and its log is all that the next one has */
			store->behind = false;
			machine_ends();
			assert_raised("a/b", 2);
			assert_int_equal(replayed(), 1);
			continue;
		}
		store_tend(store);
		assert_int_equal(store_sync(store), 0);
		assert_as_before("a/b");
		assert_false(store->behind);
		acknowledged(&entry);
		if (way & 4)
			machine_ends(); /* with both of them in the log */
		assert_raised("a/b", 2);
	}
}

/* Nor is it taken for one that the database lost. */
static void test_refused_and_forgotten(void **state)
{
	struct raise_entry entry = entry_of("a/b", 2);
	struct np_rung level;
	struct session_name name;
	const char *problem;

	(void)state;
	put("a/b");
	refused(&entry, false);
	assert_int_equal(store_session_end(store, "a/b", false, 5), 0);
	assert_int_equal(session_name_parse("a/b", &name, &problem), 0);
	assert_int_equal(store_sessions_forget(store, &name, 1, 6), 0);
	database_synced();
	machine_ends();
	assert_int_equal(store_level_get(store, "a/b", &level), -ENOENT);
	assert_int_equal(replayed(), 0);
}

/* Who has the database locked is waited for once, and not by everybody who comes along. */
static void test_a_lock_is_waited_for_once(void **state)
{
	struct raise_entry entry = entry_of("a/b", 2);
	struct session_row row;
	sqlite3 *other;

	(void)state;
	put("a/b");
	acknowledged(&entry);
	assert_int_equal(sqlite3_open(path, &other), SQLITE_OK);
	assert_int_equal(sqlite3_exec(other, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
	busy_set = 0;
	for (int i = 0; i < 2; i++)
		assert_int_equal(store_session_get(store, "a/b", &row), -EBUSY);
	assert_int_equal(busy_set, 3);
	assert_int_equal(busy_ms[0], STORE_BUSY_MS); /* behind the first, */
	assert_int_equal(busy_ms[1], 0);	     /* before the second */
	assert_int_equal(busy_ms[2], STORE_BUSY_MS); /* and behind it */
	assert_int_equal(sqlite3_exec(other, "ROLLBACK", NULL, NULL, NULL), SQLITE_OK);
	assert_raised("a/b", 2);
	busy_set = 0;
	entry.rung.generation = 3;
	acknowledged(&entry);
	assert_int_equal(store_catch_up(store), 0);
	assert_int_equal(busy_set, 1);
	assert_int_equal(busy_ms[0], STORE_BUSY_MS);
	sqlite3_close(other);
}

/* The log's disk has failed: the database's own may not have. */
static void test_a_log_that_fails(void **state)
{
	struct raise_entry entry = entry_of("a/b", 2);

	(void)state;
	put("a/b");
	assert_int_equal(store_raise_begin(store, &entry), 0);
	assert_int_equal(store_raise_end(store, -EIO, 0), 0);
	assert_false(store->behind);
	assert_int_equal(store->synced, store->written);
	database_synced();
	unlink_raises();
	machine_ends();
	assert_raised("a/b", 2);
	assert_int_equal(replayed(), 0);
}

static unsigned due;

static void on_due(void *data)
{
	(void)data;
	due++;
}

static void test_somebody_is_asked_to_come_by(void **state)
{
	struct raise_entry entry = entry_of("a/b", 2);

	(void)state;
	put("a/b");
	store_on_due(store, on_due, NULL);
	due = 0;
	assert_int_equal(store_raise_begin(store, &entry), 0);
	assert_int_equal(store_raise_wait(store), 0);
	assert_int_equal(store_raise_end(store, 0, 0), 0);
	assert_int_equal(due, 1);
	store_tend(store);
	assert_false(store->behind);
	assert_int_equal(store->written, store->logged);
	assert_true(store->synced < store->written); /* which is for others than those who wait for an answer */
	store_on_due(store, NULL, NULL);
}

#define raises_test(fn) cmocka_unit_test_setup_teardown(fn, used_setup, disk_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		raises_test(test_the_machine_ends_after_the_log),
		raises_test(test_the_machine_ends_after_the_commit),
		raises_test(test_the_machine_ends_after_all_is_on_the_disk),
		raises_test(test_old_entries),
		raises_test(test_entries_of_a_build_without_numbers),
		raises_test(test_a_copy_that_does_not_know_the_session),
		raises_test(test_a_copy_without_numbers),
		raises_test(test_a_session_that_was_forgotten_and_made_again),
		raises_test(test_two_raises_of_one_generation),
		raises_test(test_a_log_that_is_made_anew),
		raises_test(test_too_many_datasets),
		raises_test(test_when_blocks_are_free),
		raises_test(test_a_database_that_cannot_follow),
		raises_test(test_a_raise_that_is_refused),
		raises_test(test_refused_and_forgotten),
		raises_test(test_a_lock_is_waited_for_once),
		raises_test(test_a_log_that_fails),
		raises_test(test_somebody_is_asked_to_come_by),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
