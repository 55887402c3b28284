/* SPDX-License-Identifier: MIT */
/* How long sessions live: lifetime.c, and where the other verbs meet it. */
#include "session/lifetime.c"

#include "fake.h"

static bool on_record(const char *session)
{
	struct session_row row;

	return store_session_get(fake.store, session, &row) == 0;
}

static void ended(const char *session, enum level level)
{
	struct session_row row;

	assert_int_equal(service_session_create(fake.service, session, level, false, "test", &row, &fake.failure), 0);
	assert_int_equal(service_session_end(fake.service, session, "test", &fake.failure), 0);
}

static int forget(const char *session, bool level_too, struct forgotten *ret)
{
	struct forgotten ignored;

	fake.failure = (struct failure){ 0 };
	return service_session_forget(fake.service, session, level_too, "test", ret ? ret : &ignored, &fake.failure);
}

/* Both clocks go on; the sweep looks now and then, as it does. */
static void pass(uint64_t seconds)
{
	fake.wall += seconds * 1000000;
	fake.later_ns += seconds * 1000000000;
	service_sweep(fake.service);
}

#define DAY 86400ull

static void test_forget(void **state)
{
	struct forgotten done;
	struct session_row row;

	(void)state;
	assert_int_equal(forget("a/b", false, NULL), -ENOENT);
	assert_int_equal(fake.failure.reason, NP_R_NO_SUCH_SESSION);
	made("a/b");
	assert_int_equal(escalate("a/b", LEVEL_SECRET, "d", NULL), 0);
	assert_int_equal(forget("a/b", false, NULL), -EBUSY);
	assert_int_equal(fake.failure.reason, NP_R_SESSION_OPEN);
	assert_int_equal(service_session_end(fake.service, "a/b", "test", &fake.failure), 0);
	fake_reset(0);
	assert_int_equal(forget("a/b", false, &done), 0);
	assert_log("workspace of a/b: remove\ncommit\nevent session_forgotten\n");
	assert_true(done.remembered);
	assert_int_equal(done.level.level, LEVEL_SECRET);
	assert_false(on_record("a/b"));
	assert_int_equal(service_session_show(fake.service, "a/b", &row, &fake.failure), -ENOENT);
	assert_non_null(strstr(fake.failure.text, "SECRET"));
	/* Once more there is nothing to forget. */
	fake_reset(0);
	assert_int_equal(forget("a/b", false, NULL), -ENOENT);
	assert_int_equal(fake.failure.reason, NP_R_NO_SUCH_SESSION);
	assert_non_null(strstr(fake.failure.text, "SECRET"));
	assert_log("");
	/* It comes back as high as it went, whoever asks and by whichever verb. */
	assert_int_equal(made("a/b")->rung.mode, NP_NONE);
	assert_int_equal(stored("a/b").rung.level, LEVEL_SECRET);
	assert_int_equal(stored("a/b").datasets, 0);
	assert_int_equal(service_session_end(fake.service, "a/b", "test", &fake.failure), 0);
	assert_int_equal(forget("a/b", false, NULL), 0);
	assert_int_equal(service_session_create(fake.service, "a/b", LEVEL_PUBLIC, false, "test", &row, NULL), 0);
	assert_int_equal(row.rung.level, LEVEL_SECRET);
	assert_int_equal(row.rung.mode, NP_NONE);
	/* Unless an operator says otherwise, of one that is not there: the workspace went before. */
	assert_int_equal(forget("a/b", true, NULL), -EBUSY);
	assert_int_equal(service_session_end(fake.service, "a/b", "test", &fake.failure), 0);
	assert_int_equal(forget("a/b", true, &done), 0);
	assert_false(done.remembered);
	assert_int_equal(forget("a/b", true, NULL), -ENOENT);
	assert_int_equal(service_session_create(fake.service, "a/b", LEVEL_PUBLIC, false, "test", &row, NULL), 0);
	assert_int_equal(row.rung.level, LEVEL_PUBLIC);
}

/* Only the level is left, and that is what is to go: what lies in its workspace goes first. */
static void test_forget_the_level_later(void **state)
{
	(void)state;
	ended("a/b", LEVEL_SECRET);
	assert_int_equal(forget("a/b", false, NULL), 0);
	fake_reset(0);
	assert_int_equal(forget("a/b", true, NULL), 0);
	assert_log("workspace of a/b: remove\ncommit\nevent session_forgotten\n");
	assert_int_equal(store_levels_count(fake.store), 0);
}

/* A step that fails leaves the level where it is; the same call again does the rest. */
static void test_forget_may_fail_at_any_step(void **state)
{
	struct session_row row;

	(void)state;
	for (unsigned step = 1; step <= 3; step++) {
		int r;

		fake_again();
		ended("a/b", LEVEL_SECRET);
		fake_reset(step);
		r = forget("a/b", true, NULL);
		assert_int_equal(r != 0, step <= 3);
		fake_reset(0);
		fake_stop();
		fake_start();
		assert_int_equal(service_session_create(fake.service, "a/b", LEVEL_PUBLIC, false, "test", &row, NULL),
				 0);
		assert_int_equal(row.rung.level, LEVEL_SECRET);
	}
}

static void test_temporary(void **state)
{
	struct session_row row;
	struct np_rung rung;

	(void)state;
	assert_int_equal(service_session_create(fake.service, "a/temporary-1", LEVEL_SECRET, true, "test", &row, NULL),
			 0);
	made("a/temporary-1");
	fake.cgroups[fake.count - 1].populated = true;
	assert_int_equal(service_session_create(fake.service, "a/temporary-1", LEVEL_PUBLIC, true, "test", &row, NULL),
			 0);
	pass(10 * DAY);
	assert_true(on_record("a/temporary-1")); /* it has a sandbox */
	assert_int_equal(service_session_end(fake.service, "a/temporary-1", "test", NULL), 0);
	pass(1);
	assert_false(on_record("a/temporary-1"));
	assert_int_equal(store_level_get(fake.store, "a/temporary-1", &rung), -ENOENT);
	assert_nothing_left();
}

/* Its level goes, so no name does that anybody else may have. */
static void test_temporary_names(void **state)
{
	const struct sandbox_info *sandbox;
	struct session_row row;
	const char *problem;
	bool is_new;

	(void)state;
	assert_int_equal(service_session_create(fake.service, "a/b", LEVEL_PUBLIC, true, "test", &row, &fake.failure),
			 -EINVAL);
	assert_int_equal(fake.failure.reason, NP_R_BAD_NAME);
	assert_false(on_record("a/b"));
	/* By no verb is one made under such a name that stays. */
	assert_int_equal(service_session_create(fake.service, "a/temporary-1", LEVEL_SECRET, false, "test", &row, NULL),
			 -EINVAL);
	assert_int_equal(escalate("a/temporary-1", LEVEL_SECRET, "d", NULL), -EINVAL);
	assert_int_equal(service_sandbox_make(fake.service, "a/temporary-1", "test", &sandbox, &fake.failure), -EINVAL);
	assert_int_equal(fake.failure.reason, NP_R_BAD_NAME);
	assert_int_equal(service_session_end(fake.service, "a/temporary-1", "test", NULL), -ENOENT);
	assert_false(on_record("a/temporary-1"));
	assert_nothing_left();
	/* One that is there is used as any other, but that nothing of it is kept. */
	assert_int_equal(service_session_create(fake.service, "a/temporary-1", LEVEL_PUBLIC, true, "test", &row, NULL),
			 0);
	assert_int_equal(escalate("a/temporary-1", LEVEL_SECRET, "d", NULL), 0);
	assert_int_equal(service_session_create(fake.service, "a/temporary-1", LEVEL_PUBLIC, false, "test", &row, NULL),
			 0);
	assert_int_equal(row.rung.level, LEVEL_SECRET);
	assert_int_equal(service_sandbox_keep(fake.service, "a/temporary-1", "test", &sandbox, &is_new, &fake.failure),
			 -EINVAL);
	assert_int_equal(fake.failure.reason, NP_R_BAD_FIELD);
	made("a/temporary-1");
	/* One that is not temporary, as an older daemon made it, does not become it. */
	row = stored("a/temporary-1");
	assert_int_equal(session_name_parse("a/temporary-2", &row.name, &problem), 0);
	row.temporary = false;
	assert_int_equal(store_session_put(fake.store, &row, NULL), 0);
	assert_int_equal(service_session_create(fake.service, "a/temporary-2", LEVEL_PUBLIC, true, "test", &row, NULL),
			 -EEXIST);
	assert_false(stored("a/temporary-2").temporary);
	made("a/temporary-2");
}

/* Whoever asked for it was killed: before there was a sandbox, or with one. */
static void test_temporary_that_nobody_ends(void **state)
{
	const struct sandbox_info *sandbox;
	struct session_row row;

	(void)state;
	assert_int_equal(service_session_create(fake.service, "a/temporary-1", LEVEL_PUBLIC, true, "test", &row, NULL),
			 0);
	pass(NP_TEMPORARY_S - 1);
	assert_true(on_record("a/temporary-1"));
	pass(2);
	assert_false(on_record("a/temporary-1"));
	assert_int_equal(service_session_create(fake.service, "a/temporary-1", LEVEL_SECRET, true, "test", &row, NULL),
			 0);
	sandbox = made("a/temporary-1");
	fake.cgroups[fake.count - 1].populated = true;
	pass(NP_TEMPORARY_S * 2);
	assert_int_equal(try_remove(sandbox), 0);
	service_sweep(fake.service);
	assert_true(on_record("a/temporary-1")); /* whoever makes another sandbox finds the level that it has */
	assert_int_equal(stored("a/temporary-1").rung.level, LEVEL_SECRET);
	fake_stop();
	fake_start();
	pass(NP_TEMPORARY_S + 1);
	assert_false(on_record("a/temporary-1"));
}

/* Whoever made it was killed before a process was in it. */
static void test_temporary_that_nobody_enters(void **state)
{
	struct session_row row;

	(void)state;
	assert_int_equal(service_session_create(fake.service, "a/temporary-1", LEVEL_PUBLIC, true, "test", &row, NULL),
			 0);
	made("a/temporary-1");
	made("a/b");
	pass(NP_RUN_START_S - 1);
	assert_int_equal(service_sandboxes_count(fake.service), 2);
	pass(2);
	pass(NP_TEMPORARY_S + 1);
	assert_int_equal(service_sandboxes_count(fake.service), 1); /* one that is not temporary waits */
	assert_false(on_record("a/temporary-1"));
}

static void test_age(void **state)
{
	(void)state;
	fake.lifetime = (struct lifetime){ .keep_s = 90 * DAY };
	service_lifetime_set(fake.service, &fake.lifetime);
	fake.wall = 1000 * DAY * 1000000;
	made("a/used");
	ended("a/old", LEVEL_SECRET);
	assert_int_equal(escalate("a/idle", LEVEL_INTERNAL, NULL, NULL), 0);
	for (int i = 0; i < 89; i++)
		pass(DAY);
	ended("a/young", LEVEL_PUBLIC);
	assert_true(on_record("a/old"));
	assert_false(stored("a/idle").ended);
	pass(DAY);
	pass(1);
	assert_false(on_record("a/old"));
	assert_true(on_record("a/young"));
	assert_true(stored("a/idle").ended); /* nobody used it: it ends, and is kept from then on */
	assert_false(stored("a/used").ended);
	assert_int_equal(store_levels_count(fake.store), 1);
	for (int i = 0; i < 91; i++)
		pass(DAY);
	assert_false(on_record("a/idle"));
	assert_false(on_record("a/young"));
	assert_false(stored("a/used").ended);
	assert_int_equal(store_levels_count(fake.store), 2); /* INTERNAL is above the bottom */
}

/* A clock that jumps makes nothing go, and neither does one that a start finds ahead and that is set right. */
static void test_clock_jumps(void **state)
{
	(void)state;
	fake.lifetime = (struct lifetime){ .keep_s = DAY, .remember_s = DAY };
	service_lifetime_set(fake.service, &fake.lifetime);
	ended("a/b", LEVEL_SECRET);
	ended("a/c", LEVEL_SECRET);
	assert_int_equal(forget("a/c", false, NULL), 0);
	pass(1);
	fake.wall += 1000 * DAY * 1000000;
	for (unsigned s = 0; s < NP_CLOCK_STEADY_S; s += 60)
		pass(60);
	assert_true(on_record("a/b"));
	assert_int_equal(store_levels_count(fake.store), 1);
	fake.wall -= 1000 * DAY * 1000000; /* and back */
	for (unsigned s = 0; s < 2 * NP_CLOCK_STEADY_S; s += 60)
		pass(60);
	assert_true(on_record("a/b"));
	assert_int_equal(store_levels_count(fake.store), 1);
	/* The control: it stays there. */
	fake.wall += 1000 * DAY * 1000000;
	for (unsigned s = 0; s <= NP_CLOCK_STEADY_S + 120; s += 60)
		pass(60);
	assert_false(on_record("a/b"));
}

static void test_count(void **state)
{
	char name[16];

	(void)state;
	fake.lifetime = (struct lifetime){ .keep_count = 3 };
	service_lifetime_set(fake.service, &fake.lifetime);
	for (int i = 0; i < 6; i++) {
		snprintf(name, sizeof(name), "a/%d", i);
		fake.wall += 1000;
		ended(name, i % 2 ? LEVEL_CONFIDENTIAL : LEVEL_PUBLIC);
	}
	assert_int_equal(escalate("a/open", LEVEL_PUBLIC, NULL, NULL), 0);
	service_sweep(fake.service);
	assert_false(on_record("a/0") || on_record("a/1") || on_record("a/2"));
	assert_true(on_record("a/3") && on_record("a/4") && on_record("a/5") && on_record("a/open"));
	assert_int_equal(store_levels_count(fake.store), 1);
}

/* By the policy's word, and never while there are files of it. */
static void test_levels_expire(void **state)
{
	(void)state;
	fake.lifetime = (struct lifetime){ .remember_s = 10 * DAY };
	service_lifetime_set(fake.service, &fake.lifetime);
	fake.wall = 1000 * DAY * 1000000;
	ended("a/gone", LEVEL_SECRET);
	ended("a/files", LEVEL_SECRET);
	ended("a/back", LEVEL_SECRET);
	assert_int_equal(forget("a/gone", false, NULL), 0);
	assert_int_equal(forget("a/files", false, NULL), 0);
	assert_int_equal(forget("a/back", false, NULL), 0);
	made("a/back");
	fake.workspace = "a/files";
	for (int i = 0; i < 9; i++)
		pass(DAY);
	assert_int_equal(store_levels_count(fake.store), 3);
	for (int i = 0; i < 3; i++)
		pass(DAY);
	assert_int_equal(store_levels_count(fake.store), 2);
	assert_int_equal(made("a/gone")->rung.mode, NP_FULL);
	assert_int_equal(made("a/files")->rung.mode, NP_NONE);
	assert_int_equal(made("a/back")->rung.mode, NP_NONE);
}

static void test_workspaces(void **state)
{
	(void)state;
	fake.lifetime = (struct lifetime){ .at_end = WORKSPACE_ARCHIVE };
	service_lifetime_set(fake.service, &fake.lifetime);
	made("a/b");
	fake_reset(0);
	assert_int_equal(service_session_end(fake.service, "a/b", "test", NULL), 0);
	assert_non_null(strstr(fake.log, "workspace of a/b: archive\n"));
	assert_false(stored("a/b").workspace_due);
	/* Its processes are still dying: not before they are gone. */
	made("a/c");
	fake.cgroups[fake.count - 1].populated = true;
	fake_reset(0);
	assert_int_equal(service_session_end(fake.service, "a/c", "test", NULL), 0);
	if (stored("a/c").workspace_due) {
		assert_null(strstr(fake.log, "workspace of"));
		fake.cgroups[fake.count - 1].populated = false;
		service_sweep(fake.service);
		service_sweep(fake.service);
	}
	assert_non_null(strstr(fake.log, "workspace of a/c: archive\n"));
	assert_false(stored("a/c").workspace_due);
}

/* What is left of a sandbox is connections: its files go at once, and nobody who comes back finds them. */
static void test_workspace_beside_what_lingers(void **state)
{
	(void)state;
	fake.lifetime = (struct lifetime){ .at_end = WORKSPACE_REMOVE };
	service_lifetime_set(fake.service, &fake.lifetime);
	made("a/b");
	fake.cgroups[fake.count - 1].orphans = true;
	fake_reset(0);
	assert_int_equal(service_session_end(fake.service, "a/b", "test", NULL), 0);
	assert_int_equal(stored_sandboxes(), 1); /* it lingers */
	made("a/b");
	assert_non_null(strstr(fake.log, "workspace of a/b: remove\n"));
	assert_false(stored("a/b").workspace_due);
	/* What is made then stays when the last one is over. */
	fake.cgroups[fake.count - 2].orphans = false;
	fake_reset(0);
	service_sweep(fake.service);
	assert_null(strstr(fake.log, "workspace of"));
}

/* Processes that were killed and are not gone: the session may come back before them, to other files. By a raise alone, too. */
static void test_workspace_beside_what_dies(void **state)
{
	(void)state;
	for (int raised = 0; raised < 2; raised++) {
		fake_again();
		fake.lifetime = (struct lifetime){ .at_end = WORKSPACE_ARCHIVE };
		service_lifetime_set(fake.service, &fake.lifetime);
		made("a/b");
		fake.cgroups[fake.count - 1].populated = fake.cgroups[fake.count - 1].busy = true;
		fake_reset(0);
		assert_int_equal(service_session_end(fake.service, "a/b", "test", NULL), 0);
		assert_null(strstr(fake.log, "workspace of"));
		assert_true(stored("a/b").workspace_due);
		if (raised)
			assert_int_equal(escalate("a/b", LEVEL_SECRET, "d", NULL), 0);
		else
			made("a/b");
		assert_non_null(strstr(fake.log, "workspace of a/b: archive\n"));
		assert_false(stored("a/b").workspace_due);
	}
}

/* Files that cannot be moved away: the raise is on record, no sandbox is let in to them, and the next try does it. */
static void test_workspace_that_does_not_go(void **state)
{
	const struct sandbox_info *sandbox;

	(void)state;
	fake.lifetime = (struct lifetime){ .at_end = WORKSPACE_REMOVE };
	service_lifetime_set(fake.service, &fake.lifetime);
	made("a/b");
	fake.workspace_fails = true;
	assert_int_equal(service_session_end(fake.service, "a/b", "test", NULL), 0);
	assert_int_equal(escalate("a/b", LEVEL_INTERNAL, "d", NULL), 0);
	assert_false(stored("a/b").ended);
	assert_true(stored("a/b").workspace_due);
	assert_int_equal(service_sandbox_make(fake.service, "a/b", "test", &sandbox, &fake.failure), -EIO);
	assert_int_equal(fake.failure.reason, NP_R_FAILED);
	assert_int_equal(service_sandboxes_count(fake.service), 0);
	fake_stop(); /* and the next daemon knows */
	fake_start();
	assert_int_equal(service_sandbox_make(fake.service, "a/b", "test", &sandbox, &fake.failure), -EIO);
	fake.workspace_fails = false;
	made("a/b");
	assert_non_null(strstr(fake.log, "workspace of a/b: remove\n"));
	assert_false(stored("a/b").workspace_due);
	fake_reset(0);
	service_sweep(fake.service);
	assert_null(strstr(fake.log, "workspace of"));
}

/* The daemon dies between the end and the workspace: the next one sees to it, and who comes back first finds it done. */
static void test_workspace_after_a_crash(void **state)
{
	(void)state;
	for (int back = 0; back < 2; back++) {
		fake_again();
		fake.lifetime = (struct lifetime){ .at_end = WORKSPACE_REMOVE };
		fake_stop();
		fake_start();
		ended("a/b", LEVEL_PUBLIC);
		assert_int_equal(
			sqlite3_exec(fake.store->db, "UPDATE sessions SET workspace_due = 1", NULL, NULL, NULL), 0);
		fake_stop();
		fake_start();
		if (back)
			made("a/b");
		else
			service_sweep(fake.service);
		assert_non_null(strstr(fake.log, "workspace of a/b: remove\n"));
		assert_false(stored("a/b").workspace_due);
	}
}

/* A node with as many sessions as there can be goes on: the first that ended make room. */
static void test_full_node_makes_room(void **state)
{
	struct session_row row;

	(void)state;
	ended("a/first", LEVEL_SECRET);
	fake.wall++;
	ended("a/second", LEVEL_PUBLIC);
	fake.store->sessions = NP_SESSIONS_MAX;
	assert_int_equal(
		service_session_create(fake.service, "a/new", LEVEL_PUBLIC, false, "test", &row, &fake.failure), 0);
	assert_false(on_record("a/first"));
	assert_int_equal(store_levels_count(fake.store), 1);
	/* None has ended: then it says what to do. */
	fake.store->sessions = NP_SESSIONS_MAX;
	assert_int_equal(
		service_session_create(fake.service, "a/more", LEVEL_PUBLIC, false, "test", &row, &fake.failure),
		-E2BIG);
	assert_non_null(strstr(fake.failure.text, "forget"));
}

/* Who is kept off the last places has none where another still has, unless one that ended makes room. */
static void test_reserve(void **state)
{
	struct session_row row;

	(void)state;
	made("a/open");
	fake.store->sessions = NP_SESSIONS_MAX - 10;
	service_sessions_reserve(fake.service, 10);
	assert_int_equal(
		service_session_create(fake.service, "a/new", LEVEL_PUBLIC, false, "test", &row, &fake.failure),
		-E2BIG);
	assert_int_equal(fake.failure.reason, NP_R_TOO_MANY);
	assert_false(on_record("a/new"));
	assert_int_equal(
		service_session_create(fake.service, "a/open", LEVEL_SECRET, false, "test", &row, &fake.failure), 0);
	service_sessions_reserve(fake.service, 0);
	assert_int_equal(
		service_session_create(fake.service, "a/new", LEVEL_PUBLIC, false, "test", &row, &fake.failure), 0);
	ended("a/ended", LEVEL_PUBLIC);
	fake.store->sessions = NP_SESSIONS_MAX - 10;
	service_sessions_reserve(fake.service, 10);
	assert_int_equal(
		service_session_create(fake.service, "a/last", LEVEL_PUBLIC, false, "test", &row, &fake.failure), 0);
	assert_false(on_record("a/ended"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fake_test(test_forget),
		fake_test(test_forget_the_level_later),
		fake_test(test_forget_may_fail_at_any_step),
		fake_test(test_temporary),
		fake_test(test_temporary_names),
		fake_test(test_temporary_that_nobody_ends),
		fake_test(test_temporary_that_nobody_enters),
		fake_test(test_age),
		fake_test(test_clock_jumps),
		fake_test(test_count),
		fake_test(test_levels_expire),
		fake_test(test_workspaces),
		fake_test(test_workspace_beside_what_lingers),
		fake_test(test_workspace_beside_what_dies),
		fake_test(test_workspace_that_does_not_go),
		fake_test(test_workspace_after_a_crash),
		fake_test(test_full_node_makes_room),
		fake_test(test_reserve),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
