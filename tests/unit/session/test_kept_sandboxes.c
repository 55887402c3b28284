/* SPDX-License-Identifier: MIT */
/* Sandboxes that stay: one for each session, until nobody uses it. */
#include "fake.h"
#include "vocab/limits.h"

#include "session/kept_sandboxes.c"

#define SECOND UINT64_C(1000000)

static int kept_setup(void **state)
{
	if (fake_setup(state))
		return -1;
	fake_stop();
	snprintf(fake.kept, sizeof(fake.kept), "%s/kept", fake.dir);
	fake.idle_us = 10 * SECOND;
	fake_start();
	return 0;
}

static int kept_teardown(void **state)
{
	rmdir(fake.kept);
	return fake_teardown(state);
}

static const struct sandbox_info *keep(const char *session, bool want_made)
{
	const struct sandbox_info *sandbox = NULL;
	bool made_now;

	assert_int_equal(service_sandbox_keep(fake.service, session, "test", &sandbox, &made_now, &fake.failure), 0);
	assert_int_equal(made_now, want_made);
	assert_true(sandbox->kept);
	return sandbox;
}

static bool has_directory(const char *id)
{
	return kept_is(fake.service, id);
}

/* As a run in it does. */
static int hold(const char *id)
{
	char path[FS_PATH_SIZE];
	int fd;

	assert_int_equal(fs_path(path, "%s/%s/" NP_KEPT_MADE, fake.kept, id), 0);
	fd = open(path, O_RDWR | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(flock(fd, LOCK_SH), 0);
	return fd;
}

/* When that much time has gone by. */
static void sweep_at(uint64_t wall)
{
	fake.later_ns += (wall - fake.wall) * 1000;
	fake.wall = wall;
	service_sweep(fake.service);
}

static void test_one_for_each_session(void **state)
{
	const struct sandbox_info *one = keep("a/b", true), *other = keep("a/c", true);
	char id[NP_SANDBOX_ID_MAX + 1];

	(void)state;
	assert_ptr_equal(keep("a/b", false), one);
	assert_ptr_not_equal(one, other);
	assert_false(made("a/b")->kept);
	assert_ptr_equal(keep("a/b", false), one);
	strcpy(id, one->id);
	assert_true(has_directory(id));
	assert_int_equal(service_session_end(fake.service, "a/b", "test", &fake.failure), 0);
	assert_int_equal(service_session_end(fake.service, "a/c", "test", &fake.failure), 0);
	assert_false(has_directory(id));
	assert_int_equal(service_sandboxes_count(fake.service), 0);
}

static void test_without_a_place_there_are_none(void **state)
{
	const struct sandbox_info *sandbox;
	bool made_now;

	(void)state;
	fake_stop();
	fake.kept[0] = '\0';
	fake_start();
	assert_true(service_sandbox_keep(fake.service, "a/b", "test", &sandbox, &made_now, &fake.failure) < 0);
	assert_int_equal(service_sandboxes_count(fake.service), 0);
}

static void test_idle(void **state)
{
	const uint64_t start = fake.wall;
	char id[NP_SANDBOX_ID_MAX + 1];
	int lock;

	(void)state;
	strcpy(id, keep("a/b", true)->id);
	fake_by_id(101)->populated = true;
	sweep_at(start + 9 * SECOND);
	keep("a/b", false); /* which uses it */
	sweep_at(start + 18 * SECOND);
	lock = hold(id);
	sweep_at(start + 100 * SECOND);
	assert_int_equal(service_sandbox_by_id(fake.service, id)->active_us, start + 100 * SECOND);
	close(lock);
	sweep_at(start + 109 * SECOND);
	service_sandbox_active(fake.service, 101); /* a request was judged */
	sweep_at(start + 118 * SECOND);
	assert_non_null(service_sandbox_by_id(fake.service, id));
	fake_reset(0);
	sweep_at(start + 119 * SECOND);
	assert_null(service_sandbox_by_id(fake.service, id));
	assert_string_equal(fake.log, "event sandbox_idle\nremove 101\nevent sandbox_removed\nretire 101\ncommit\n");
	assert_false(has_directory(id));
}

static void test_never_idle(void **state)
{
	(void)state;
	service_idle_set(fake.service, 0);
	keep("a/b", true);
	fake_by_id(101)->populated = true;
	sweep_at(fake.wall + 1000000 * SECOND);
	keep("a/b", false);
	service_idle_set(fake.service, SECOND);
	service_sweep(fake.service);
	keep("a/b", false);
	assert_int_equal(service_session_end(fake.service, "a/b", "test", &fake.failure), 0);
}

/* It counts what time went by, not what the clock was set to. */
static void test_clock_is_set(void **state)
{
	const uint64_t start = fake.wall;
	char id[NP_SANDBOX_ID_MAX + 1];

	(void)state;
	strcpy(id, keep("a/b", true)->id);
	fake_by_id(101)->populated = true;
	fake.wall = start + 100000 * SECOND; /* forward */
	service_sweep(fake.service);
	assert_non_null(service_sandbox_by_id(fake.service, id));
	sweep_at(fake.wall + 9 * SECOND);
	assert_non_null(service_sandbox_by_id(fake.service, id));
	fake.wall = 5; /* and back */
	service_sweep(fake.service);
	assert_non_null(service_sandbox_by_id(fake.service, id));
	sweep_at(fake.wall + SECOND);
	assert_null(service_sandbox_by_id(fake.service, id));
}

/* One clean-up that fails, whichever step it is, keeps no other from its end, and comes to its own. */
static void test_a_failing_clean_up(void **state)
{
	(void)state;
	for (int n = 1; n <= 3; n++) {
		keep("a/b", true);
		keep("a/c", true);
		keep("a/d", true);
		for (size_t i = 0; i < fake.count; i++)
			fake.cgroups[i].populated = fake.cgroups[i].exists;
		fake_reset(n);
		sweep_at(fake.wall + 20 * SECOND);
		assert_true(fake.failed);
		assert_true(service_sandboxes_count(fake.service) <= 1);
		fake_reset(0);
		service_sweep(fake.service);
		assert_int_equal(service_sandboxes_count(fake.service), 0);
		assert_int_equal(rmdir(fake.kept), 0); /* nothing is in it */
	}
}

static void test_a_directory_that_stays(void **state)
{
	char id[NP_SANDBOX_ID_MAX + 1], path[FS_PATH_SIZE];
	FILE *file;

	(void)state;
	strcpy(id, keep("a/b", true)->id);
	assert_int_equal(fs_path(path, "%s/%s/strange", fake.kept, id), 0);
	file = fopen(path, "w");
	assert_non_null(file);
	fclose(file);
	fake_by_id(101)->populated = true;
	sweep_at(fake.wall + 20 * SECOND);
	assert_null(service_sandbox_by_id(fake.service, id)); /* gone for everybody */
	keep("a/b", true);
	assert_int_equal(unlink(path), 0);
	service_sweep(fake.service);
	assert_false(has_directory(id));
	assert_int_equal(service_session_end(fake.service, "a/b", "test", &fake.failure), 0);
}

static void test_groups_of_ours_only(void **state)
{
	char strange[128], ours[256], note[FS_PATH_SIZE];
	const char *id = keep("a/b", true)->id;
	FILE *file;

	(void)state;
	snprintf(strange, sizeof(strange), "%s/strange", fake.dir);
	snprintf(ours, sizeof(ours), "%s/netpawl.slice.%s", fake.dir, id);
	assert_int_equal(mkdir(strange, 0700) | mkdir(ours, 0700), 0);
	assert_int_equal(fs_path(note, "%s/%s/" NP_KEPT_MADE, fake.kept, id), 0);
	file = fopen(note, "w");
	fprintf(file, "group=%s\ngroup=%s\ngroup=\ngroup\nx\n", strange, ours);
	fclose(file);
	assert_int_equal(service_session_end(fake.service, "a/b", "test", &fake.failure), 0);
	assert_int_equal(access(ours, F_OK), -1);
	assert_int_equal(rmdir(strange), 0);
}

static void test_restart(void **state)
{
	char id[NP_SANDBOX_ID_MAX + 1], stray[FS_PATH_SIZE];

	(void)state;
	strcpy(id, keep("a/b", true)->id);
	keep("a/c", true);
	fake_by_id(101)->populated = true;
	fake_by_id(102)->exists = false;
	assert_int_equal(fs_path(stray, "%s/x.y.00000000", fake.kept), 0);
	assert_int_equal(mkdir(stray, 0700), 0);
	fake_stop();
	fake.wall += 1000 * SECOND;
	fake_start();
	assert_int_equal(service_recover(fake.service, &fake.failure), 0);
	assert_string_equal(keep("a/b", false)->id, id);
	assert_int_equal(service_sandboxes_count(fake.service), 1);
	assert_int_equal(rmdir(stray), -1); /* it is gone already */
	service_sweep(fake.service);
	keep("a/b", false); /* it was active when the daemon started */
	assert_int_equal(service_session_end(fake.service, "a/b", "test", &fake.failure), 0);
}

static void test_runs_in_it(void **state)
{
	const struct sandbox_info *sandbox = keep("a/b", true), *started;
	struct run_request what = {
		.session = "a/b", .command = "[\"x\"]", .options = "{}", .expires_us = fake.wall + SECOND
	};
	struct run_row run;
	int lock = hold(sandbox->id);

	(void)state;
	fake_by_id(101)->populated = true;
	what.class = CLASS_NONE;
	assert_int_equal(service_run_request(fake.service, &what, "test", &run, &fake.failure), 0);
	assert_int_equal(service_run_start(fake.service, run.id, "a/b", true, "test", &started, &fake.failure),
			 -EINVAL);
	what.class = CLASS_OPEN;
	assert_int_equal(service_run_request(fake.service, &what, "test", &run, &fake.failure), 0);
	assert_int_equal(service_run_start(fake.service, run.id, "a/b", true, "test", &started, &fake.failure), 0);
	assert_ptr_equal(started, sandbox);
	sweep_at(fake.wall + 20 * SECOND);
	assert_int_equal(service_run_show(fake.service, run.id, &run, &fake.failure), 0);
	assert_true(run.state == RUN_RUNNING && !run.lost_us);
	close(lock); /* who ran it is gone; the sandbox is not */
	service_sweep(fake.service);
	fake.wall += (NP_RUN_LOST_S + 1) * SECOND;
	service_idle_set(fake.service, 0);
	service_sweep(fake.service);
	assert_int_equal(service_run_show(fake.service, run.id, &run, &fake.failure), 0);
	assert_int_equal(run.state, RUN_FAILED);
	assert_int_equal(service_session_end(fake.service, "a/b", "test", &fake.failure), 0);
}

#define kept_test(fn) cmocka_unit_test_setup_teardown(fn, kept_setup, kept_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		kept_test(test_one_for_each_session),
		kept_test(test_without_a_place_there_are_none),
		kept_test(test_idle),
		kept_test(test_never_idle),
		kept_test(test_clock_is_set),
		kept_test(test_a_failing_clean_up),
		kept_test(test_a_directory_that_stays),
		kept_test(test_groups_of_ours_only),
		kept_test(test_restart),
		kept_test(test_runs_in_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
