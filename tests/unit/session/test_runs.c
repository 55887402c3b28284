/* SPDX-License-Identifier: MIT */
/* Runs and their sandboxes: the stricter of class and mode holds, and a class says nothing of the session. */
#include "fake.h"
#include "vocab/limits.h"

#include "session/runs.c"

static uint64_t asked(const char *session, enum run_class class)
{
	struct run_row run;

	const struct run_request what = { session, class, "[\"true\"]", "{}", false, fake.wall + 1000 };

	assert_int_equal(service_run_request(fake.service, &what, "test", &run, &fake.failure), 0);
	return run.id;
}

static const struct sandbox_info *started(const char *session, uint64_t id)
{
	const struct sandbox_info *sandbox = NULL;
	int r = service_run_start(fake.service, id, session, false, "test", &sandbox, &fake.failure);

	if (r)
		fail_msg("start: %s: %s", reason_token(fake.failure.reason), fake.failure.text);
	return sandbox;
}

static void refused(const char *session, uint64_t id, unsigned reason)
{
	size_t before = service_sandboxes_count(fake.service);
	const struct sandbox_info *sandbox;

	assert_true(service_run_start(fake.service, id, session, false, "test", &sandbox, &fake.failure) < 0);
	assert_int_equal(fake.failure.reason, reason);
	assert_int_equal(service_sandboxes_count(fake.service), before);
}

static void decided(uint64_t id, bool approved)
{
	struct run_row run;

	assert_int_equal(service_run_decide(fake.service, id, approved, "because", "boss", &run, &fake.failure), 0);
}

static struct run_row shown(uint64_t id)
{
	struct run_row run;

	assert_int_equal(service_run_show(fake.service, id, &run, &fake.failure), 0);
	return run;
}

static void test_stricter_wins(void **state)
{
	static const enum run_class classes[] = { CLASS_NONE, CLASS_READ_ONLY, CLASS_WRITE };
	static const enum level levels[] = { LEVEL_PUBLIC, LEVEL_CONFIDENTIAL, LEVEL_SECRET };
	static const enum np_mode want[3][3] = {
		{ NP_NONE, NP_NONE, NP_NONE },
		{ NP_PROXIED, NP_PROXIED, NP_NONE },
		{ NP_FULL, NP_PROXIED, NP_NONE },
	};

	(void)state;
	for (size_t l = 0; l < 3; l++) {
		assert_int_equal(escalate("a/b", levels[l], NULL, NULL), 0);
		for (size_t c = 0; c < 3; c++) {
			uint64_t id = asked("a/b", classes[c]);
			const struct sandbox_info *sandbox;

			if (classes[c] == CLASS_WRITE)
				decided(id, true);
			sandbox = started("a/b", id);
			assert_int_equal(sandbox->rung.mode, want[c][l]);
			assert_int_equal(sandbox->rung.flags, classes[c] == CLASS_READ_ONLY);
			assert_int_equal(stored("a/b").rung.mode, level_modes_default.of[levels[l]]);
		}
	}
}

/* Also when the session is raised later, and over a restart: the kernel's NONE of a class is not the session's. */
static void test_class_is_not_the_sessions(void **state)
{
	uint64_t none = asked("a/b", CLASS_NONE), read = asked("a/b", CLASS_READ_ONLY);
	uint64_t cgroup;

	(void)state;
	fake_by_id(started("a/b", none)->cgroup.id)->populated = true;
	cgroup = started("a/b", read)->cgroup.id;
	fake_by_id(cgroup)->populated = true;
	assert_int_equal(made("a/b")->rung.mode, NP_FULL);
	fake_stop();
	fake_start();
	assert_int_equal(service_recover(fake.service, &fake.failure), 0);
	assert_int_equal(stored("a/b").rung.mode, NP_FULL);
	assert_int_equal(made("a/b")->rung.mode, NP_FULL);
	assert_int_equal(service_sandbox_by_cgroup(fake.service, cgroup)->class, CLASS_READ_ONLY);
	assert_true(service_sandbox_by_cgroup(fake.service, cgroup)->rung.flags);
	assert_int_equal(escalate("a/b", LEVEL_CONFIDENTIAL, NULL, NULL), 0);
	assert_int_equal(stored("a/b").rung.mode, NP_PROXIED);
	assert_int_equal(escalate("a/b", LEVEL_SECRET, NULL, NULL), 0);
	assert_int_equal(service_sandbox_by_cgroup(fake.service, cgroup)->rung.mode, NP_NONE);
}

/* It has no connection, but other sandboxes of its session, which are gone, may have left something with the inspectors. */
static void test_class_waits_for_inspectors(void **state)
{
	(void)state;
	assert_int_equal(escalate("a/b", LEVEL_CONFIDENTIAL, NULL, NULL), 0);
	fake_by_id(started("a/b", asked("a/b", CLASS_NONE))->cgroup.id)->populated = true;
	fake_reset(0);
	fake.shows_inspectors = true;
	assert_int_equal(escalate("a/b", LEVEL_SECRET, NULL, NULL), 0);
	assert_non_null(strstr(fake.log, "tighten 101 NONE 3\nsync begins\nsync\n"));
	assert_true(strstr(fake.log, "sync\n") < strstr(fake.log, "event raised"));
}

/* The kernel lost its entry, as when the pins were removed: the record knows the class. */
static void test_class_comes_back(void **state)
{
	uint64_t cgroup = started("a/b", asked("a/b", CLASS_NONE))->cgroup.id;

	(void)state;
	fake_by_id(cgroup)->populated = true;
	fake_by_id(cgroup)->held = false;
	fake_stop();
	fake_start();
	assert_int_equal(service_recover(fake.service, &fake.failure), 0);
	assert_int_equal(service_sandbox_by_cgroup(fake.service, cgroup)->rung.mode, NP_NONE);
	assert_int_equal(stored("a/b").rung.mode, NP_FULL);
}

static void test_write_waits(void **state)
{
	uint64_t id = asked("a/b", CLASS_WRITE), other = asked("a/b", CLASS_WRITE);
	struct run_row run;

	(void)state;
	refused("a/b", id, NP_R_NOT_APPROVED);
	decided(other, true);
	refused("a/b", id, NP_R_NOT_APPROVED);
	refused("x/y", other, NP_R_NO_SUCH_RUN); /* of another session */
	refused("a/b", 999, NP_R_NO_SUCH_RUN);
	fake_stop();
	fake_start();
	refused("a/b", id, NP_R_NOT_APPROVED);
	decided(id, false);
	refused("a/b", id, NP_R_RUN_OVER);
	assert_true(service_run_decide(fake.service, id, true, "", "boss", &run, &fake.failure) < 0);
	assert_int_equal(fake.failure.reason, NP_R_RUN_OVER);
	started("a/b", other);
	refused("a/b", other, NP_R_RUN_OVER); /* once */
}

static void test_time_is_over(void **state)
{
	uint64_t id = asked("a/b", CLASS_WRITE), late = asked("a/b", CLASS_WRITE);
	struct run_row run;

	(void)state;
	decided(late, true);
	fake.wall += 1000;
	assert_true(service_run_decide(fake.service, id, true, "", "boss", &run, &fake.failure) < 0);
	assert_int_equal(fake.failure.reason, NP_R_RUN_OVER);
	refused("a/b", id, NP_R_RUN_OVER);
	service_sweep(fake.service);
	assert_int_equal(shown(id).state, RUN_REJECTED);
	assert_string_equal(shown(id).decider, "daemon");
	assert_int_equal(shown(late).state, RUN_PENDING); /* has a minute to start */
	fake.wall += NP_RUN_START_S * 1000000ull;
	refused("a/b", late, NP_R_RUN_OVER);
	service_sweep(fake.service);
	assert_int_equal(shown(late).state, RUN_REJECTED);
}

/* The wall's clock is set; nobody's time passes. */
static void clock_set(int64_t seconds)
{
	fake.wall += (uint64_t)(seconds * 1000000);
	fake.set_us += (uint64_t)(seconds * 1000000);
}

/* A clock that is set, forth or back, ends no run that waits, and none waits longer. */
static void test_time_is_over_by_a_clock_that_jumps(void **state)
{
	(void)state;
	clock_set(10 * 86400);
	for (int way = -1; way <= 1; way += 2) {
		uint64_t id = asked("a/b", CLASS_WRITE), other = asked("a/b", CLASS_WRITE),
			 never = asked("a/b", CLASS_WRITE);

		clock_set(way * 86400);
		runs_sweep(fake.service);
		assert_int_equal(shown(id).state, RUN_PENDING);
		decided(id, true);
		decided(other, true);
		clock_set(way * 86400);
		runs_sweep(fake.service);
		assert_int_equal(shown(other).state, RUN_PENDING);
		started("a/b", id);
		fake.wall += 1000; /* that is for how long it was asked */
		runs_sweep(fake.service);
		assert_int_equal(shown(never).state, RUN_REJECTED);
		assert_int_equal(shown(other).state, RUN_PENDING);
		fake.wall += NP_RUN_START_S * 1000000ull;
		refused("a/b", other, NP_R_RUN_OVER);
		runs_sweep(fake.service);
		assert_int_equal(shown(other).state, RUN_REJECTED);
		runs_sweep(fake.service);
		fake.wall += NP_RUN_LOST_S * 1000000ull; /* nobody was in the one that was started */
		runs_sweep(fake.service);
		runs_sweep(fake.service);
		assert_int_equal(fake.service->n_run_times, 0);
		clock_set(-way * 2 * 86400);
	}
	/* A daemon that starts has the wall's clock alone. */
	decided(asked("a/b", CLASS_WRITE), true);
	clock_set(-86400);
	fake_stop();
	fake_start();
	runs_sweep(fake.service);
	assert_int_equal(shown(7).state, RUN_REJECTED);
}

/* Whoever starts a run, and whoever reports its end, has the time for it. */
static void test_running_by_a_clock_that_jumps(void **state)
{
	uint64_t id = asked("a/b", CLASS_NONE);
	const struct sandbox_info *sandbox = started("a/b", id);

	(void)state;
	clock_set(86400);
	runs_sweep(fake.service);
	assert_ptr_equal(service_sandbox_by_id(fake.service, shown(id).sandbox), sandbox); /* a process will come */
	assert_int_equal(try_remove(sandbox), 0);
	runs_sweep(fake.service);
	clock_set(86400);
	runs_sweep(fake.service);
	assert_int_equal(shown(id).state, RUN_RUNNING);
	clock_set(-5 * 86400);
	runs_sweep(fake.service);
	assert_int_equal(shown(id).state, RUN_RUNNING);
	fake.wall += NP_RUN_LOST_S * 1000000ull;
	runs_sweep(fake.service);
	assert_int_equal(shown(id).state, RUN_FAILED);
}

static void test_lost(void **state)
{
	uint64_t id = asked("a/b", CLASS_NONE), published = asked("a/b", CLASS_NONE);
	struct run_row run;

	(void)state;
	assert_int_equal(try_remove(started("a/b", id)), 0);
	assert_int_equal(try_remove(started("a/b", published)), 0);
	service_sweep(fake.service);
	assert_int_equal(shown(id).state, RUN_RUNNING);
	assert_int_equal(service_run_end(fake.service, published, RUN_COMPLETED, "{\"exit_code\":0}", "test", &run,
					 &fake.failure),
			 0);
	fake.wall += (NP_RUN_LOST_S + 1) * 1000000ull;
	service_sweep(fake.service);
	assert_int_equal(shown(id).state, RUN_FAILED);
	assert_int_equal(shown(published).state, RUN_COMPLETED);
}

/* While no daemon is there nobody can tell how it ended: the time to do so begins with the next one. */
static void test_lost_before_a_restart(void **state)
{
	uint64_t id = asked("a/b", CLASS_NONE);

	(void)state;
	assert_int_equal(try_remove(started("a/b", id)), 0);
	service_sweep(fake.service);
	fake_stop();
	fake.wall += (NP_RUN_LOST_S + 1) * 1000000ull;
	fake_start();
	service_runs_recover(fake.service);
	service_sweep(fake.service);
	assert_int_equal(shown(id).state, RUN_RUNNING);
	fake.wall += (NP_RUN_LOST_S + 1) * 1000000ull;
	service_sweep(fake.service);
	assert_int_equal(shown(id).state, RUN_FAILED);
}

/* Whoever started it died before a process was there. */
static void test_deserted(void **state)
{
	uint64_t id = asked("a/b", CLASS_NONE), other = asked("a/b", CLASS_NONE);
	char sandbox[NP_SANDBOX_ID_MAX + 1];

	(void)state;
	strcpy(sandbox, started("a/b", id)->id);
	fake_by_id(started("a/b", other)->cgroup.id)->populated = true; /* the control */
	fake.wall += NP_RUN_START_S * 1000000ull;
	runs_sweep(fake.service);
	assert_non_null(service_sandbox_by_id(fake.service, sandbox));
	fake.wall++;
	runs_sweep(fake.service);
	assert_null(service_sandbox_by_id(fake.service, sandbox));
	runs_sweep(fake.service);
	fake.wall += NP_RUN_LOST_S * 1000000ull + 1;
	runs_sweep(fake.service);
	assert_int_equal(shown(id).state, RUN_FAILED);
	assert_int_equal(shown(other).state, RUN_RUNNING);
	assert_non_null(service_sandbox_by_id(fake.service, shown(other).sandbox));
}

static void test_a_session_that_ends(void **state)
{
	uint64_t id = asked("a/b", CLASS_WRITE), approved = asked("a/b", CLASS_WRITE),
		 other = asked("x/y", CLASS_WRITE);

	(void)state;
	decided(approved, true);
	assert_int_equal(service_session_end(fake.service, "a/b", "test", &fake.failure), 0);
	assert_int_equal(shown(id).state, RUN_REJECTED);
	assert_int_equal(shown(approved).state, RUN_REJECTED);
	assert_int_equal(shown(other).state, RUN_PENDING);
	refused("a/b", approved, NP_R_RUN_OVER);
}

/* Given up while it waits, or when it was approved already; not when it runs. */
static void test_given_up(void **state)
{
	uint64_t waits = asked("a/b", CLASS_WRITE), approved = asked("a/b", CLASS_WRITE),
		 runs = asked("a/b", CLASS_NONE);
	struct run_row run;

	(void)state;
	decided(approved, true);
	started("a/b", runs);
	assert_int_equal(service_run_withdraw(fake.service, waits, "no more", "test", &run, &fake.failure), 0);
	assert_int_equal(run.state, RUN_REJECTED);
	assert_string_equal(run.reason, "no more");
	assert_string_equal(run.decider, "test");
	assert_int_equal(service_run_withdraw(fake.service, approved, "no more", "test", &run, &fake.failure), 0);
	assert_int_equal(run.state, RUN_REJECTED);
	assert_string_equal(run.decider, "boss"); /* a decision stays what it was */
	refused("a/b", approved, NP_R_RUN_OVER);
	assert_true(service_run_withdraw(fake.service, runs, "no more", "test", &run, &fake.failure) < 0);
	assert_int_equal(fake.failure.reason, NP_R_RUN_OVER);
	assert_int_equal(shown(runs).state, RUN_RUNNING);
}

/* Of a daemon before: whoever waits by himself goes on, whom the daemon was to start does not. */
static void test_launchers_of_before(void **state)
{
	const struct run_request what = { "a/b", CLASS_WRITE, "[\"true\"]", "{}", true, fake.wall + 1000 };
	uint64_t own = asked("a/b", CLASS_WRITE);
	struct run_row run;

	(void)state;
	assert_int_equal(service_run_request(fake.service, &what, "test", &run, &fake.failure), 0);
	fake_stop();
	fake_start();
	assert_int_equal(service_recover(fake.service, &fake.failure), 0);
	service_runs_recover(fake.service);
	assert_int_equal(shown(run.id).state, RUN_REJECTED);
	assert_int_equal(shown(own).state, RUN_PENDING);
}

static void events_have_names_of_variables_only(void **state)
{
	static const char *const cases[][2] = {
		{ "{}", "{}" },
		{ "{\"env\":[\"A=b\"],\"keep\":true}", "{\"env\":[\"A\"],\"keep\":true}" },
		{ "{\"env\":[\"A=b\\\"]=\",\"C\",\"D=\"],\"x\":\"y=z\"}",
		  "{\"env\":[\"A\",\"C\",\"D\"],\"x\":\"y=z\"}" },
		{ "{\"chdir\":\"\\\"env\\\":[\",\"env\":[\"K=s]\"]}", "{\"chdir\":\"\\\"env\\\":[\",\"env\":[\"K\"]}" },
		{ "{\"env\":[]}", "{\"env\":[]}" },
	};
	char text[256];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		snprintf(text, sizeof(text), "%s", cases[i][0]);
		options_redact(text);
		assert_string_equal(text, cases[i][1]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fake_test(test_stricter_wins),
		fake_test(test_class_is_not_the_sessions),
		fake_test(test_class_waits_for_inspectors),
		fake_test(test_class_comes_back),
		fake_test(test_write_waits),
		fake_test(test_time_is_over),
		fake_test(test_time_is_over_by_a_clock_that_jumps),
		fake_test(test_running_by_a_clock_that_jumps),
		fake_test(test_lost),
		fake_test(test_lost_before_a_restart),
		fake_test(test_deserted),
		fake_test(test_a_session_that_ends),
		fake_test(test_launchers_of_before),
		cmocka_unit_test(events_have_names_of_variables_only),
		fake_test(test_given_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
