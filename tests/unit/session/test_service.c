/* SPDX-License-Identifier: MIT */
/* The verbs on sessions. */
#include "fake.h"
#include "vocab/limits.h"

#include "session/service.c"

static void test_escalate_creates(void **state)
{
	struct escalation done;

	(void)state;
	assert_int_equal(escalate("a/b", LEVEL_SECRET, "d", &done), 0);
	assert_log("commit\ncommit\nevent session_created\nevent raised cut=0 dataset=d\n");
	assert_true(done.raised);
	assert_int_equal(done.rung.generation, 2);
	fake_reset(0);
	assert_int_equal(escalate("c/d", LEVEL_PUBLIC, NULL, &done), 0);
	assert_log("commit\nevent session_created\nevent stands\n");
	assert_false(done.raised);
	assert_int_equal(fake.service->sessions.count, 0); /* nothing lives, nothing is kept in memory */
}

static void test_bad_arguments_happen_before_anything(void **state)
{
	char long_name[NP_DATASET_MAX + 2], long_text[NP_REASON_TEXT_MAX + 2];
	struct escalation done;

	(void)state;
	made("a/b");
	fake_reset(0);
	memset(long_name, 'x', sizeof(long_name) - 1);
	long_name[sizeof(long_name) - 1] = '\0';
	memset(long_text, 'x', sizeof(long_text) - 1);
	long_text[sizeof(long_text) - 1] = '\0';
	assert_int_equal(escalate("a", LEVEL_SECRET, NULL, NULL), -EINVAL);
	assert_int_equal(fake.failure.reason, NP_R_BAD_NAME);
	assert_int_equal(escalate("a/b", LEVEL_COUNT, NULL, NULL), -EINVAL);
	assert_int_equal(fake.failure.reason, NP_R_BAD_LEVEL);
	assert_int_equal(escalate("a/b", (enum level) - 1, NULL, NULL), -EINVAL);
	assert_int_equal(fake.failure.reason, NP_R_BAD_LEVEL);
	assert_int_equal(escalate("a/b", LEVEL_SECRET, "", NULL), -EINVAL);
	assert_int_equal(fake.failure.reason, NP_R_BAD_NAME);
	assert_int_equal(escalate("a/b", LEVEL_SECRET, long_name, NULL), -EINVAL);
	assert_int_equal(fake.failure.reason, NP_R_BAD_NAME);
	assert_int_equal(
		service_escalate(fake.service, "a/b", LEVEL_SECRET, NULL, long_text, false, NULL, &done, &fake.failure),
		-EINVAL);
	assert_int_equal(fake.failure.reason, NP_R_BAD_FIELD);
	assert_log("");
	/* At the bound, an empty reason, and a caller who wants no failure. */
	long_name[NP_DATASET_MAX] = '\0';
	assert_int_equal(service_escalate(fake.service, "a/b", LEVEL_SECRET, long_name, "", false, NULL, &done, NULL),
			 0);
	assert_int_equal(service_escalate(fake.service, "a", LEVEL_SECRET, NULL, NULL, false, NULL, &done, NULL),
			 -EINVAL);
}

static void test_policy_may_change_the_modes(void **state)
{
	struct escalation done;
	struct session_row row;

	(void)state;
	made("a/b");
	assert_int_equal(escalate("c/d", LEVEL_SECRET, NULL, NULL), 0);
	fake_stop();
	fake.modes.of[LEVEL_PUBLIC] = NP_PROXIED;
	fake.modes.of[LEVEL_SECRET] = NP_FULL; /* says less: that changes nothing for a session that was NONE */
	fake_start();
	assert_int_equal(service_session_show(fake.service, "a/b", &row, NULL), 0);
	assert_int_equal(row.rung.mode, NP_PROXIED);
	assert_int_equal(escalate("c/d", LEVEL_SECRET, NULL, &done), 0);
	assert_int_equal(done.rung.mode, NP_NONE);
	assert_false(done.raised);
	assert_int_equal(made("c/d")->rung.mode, NP_NONE);
	/* A new sandbox of an old session gets the stricter mode, and it is recorded. */
	assert_int_equal(made("a/b")->rung.mode, NP_PROXIED);
	assert_int_equal(stored("a/b").rung.mode, NP_PROXIED);
	assert_int_equal(stored("a/b").rung.generation, 2);
}

static void test_create_show_end_revive(void **state)
{
	struct session_row row;

	(void)state;
	assert_int_equal(service_session_show(fake.service, "a/b", &row, &fake.failure), -ENOENT);
	assert_int_equal(fake.failure.reason, NP_R_NO_SUCH_SESSION);
	assert_int_equal(service_session_show(fake.service, "a b", &row, &fake.failure), -EINVAL);
	assert_int_equal(fake.failure.reason, NP_R_BAD_NAME);
	assert_int_equal(service_session_end(fake.service, "a/b", "test", &fake.failure), -ENOENT);
	assert_int_equal(fake.failure.reason, NP_R_NO_SUCH_SESSION);
	assert_log("");

	assert_int_equal(service_session_create(fake.service, "a/b", LEVEL_CONFIDENTIAL, false, "test", &row, NULL), 0);
	assert_log("commit\nevent session_created\n");
	assert_int_equal(row.rung.level, LEVEL_CONFIDENTIAL);
	assert_int_equal(row.rung.mode, NP_PROXIED);
	assert_int_equal(row.rung.generation, 1);
	assert_int_equal(row.created_us, fake.wall);
	fake_reset(0);
	assert_int_equal(service_session_create(fake.service, "a/b", LEVEL_PUBLIC, false, "test", &row, NULL), 0);
	assert_log(""); /* it exists, and never goes down */
	assert_int_equal(row.rung.level, LEVEL_CONFIDENTIAL);
	assert_int_equal(service_session_create(fake.service, "a/b", LEVEL_SECRET, false, "test", &row, NULL), 0);
	assert_log("commit\nevent raised cut=0\n");
	assert_int_equal(row.rung.generation, 2);

	made("a/b");
	fake_by_id(101)->populated = true;
	fake_reset(0);
	assert_int_equal(service_session_end(fake.service, "a/b", "test", NULL), 0);
	assert_log("remove 101\nevent sandbox_removed\nretire 101\ncommit\ncommit\nevent "
		   "session_ended\n");
	assert_int_equal(service_session_show(fake.service, "a/b", &row, NULL), 0);
	assert_true(row.ended);
	assert_int_equal(service_session_end(fake.service, "a/b", "test", NULL), 0); /* again is fine */
	fake_reset(0);
	assert_int_equal(service_session_create(fake.service, "a/b", LEVEL_PUBLIC, false, "test", &row, NULL), 0);
	assert_log("commit\nevent session_created\n");
	assert_false(row.ended);
	assert_int_equal(row.rung.level, LEVEL_SECRET); /* for ever */
	assert_int_equal(fake.service->sessions.count, 0);
}

static void test_end_waits_for_adopted_and_touches_nothing(void **state)
{
	(void)state;
	made("a/b");
	fake_add("/cg/agent")->populated = true;
	adopted("a/b", "/cg/agent");
	fake_reset(0);
	assert_int_equal(service_session_end(fake.service, "a/b", "test", &fake.failure), -EBUSY);
	assert_int_equal(fake.failure.reason, NP_R_SANDBOX_BUSY);
	assert_non_null(strstr(fake.failure.text, "/cg/agent"));
	assert_log("");
	fake_by_id(102)->populated = false;
	assert_int_equal(service_session_end(fake.service, "a/b", "test", &fake.failure), 0);
	assert_true(stored("a/b").ended);
	assert_int_equal(stored_sandboxes(), 0);
}

static void test_end_may_fail_at_any_step(void **state)
{
	int n = 1;

	(void)state;
	for (;; n++) {
		int r;

		fake_again();
		fake_add("/cg/agent");
		adopted("a/b", "/cg/agent");
		made("a/b");
		assert_int_equal(escalate("a/b", LEVEL_SECRET, NULL, NULL), 0);
		fake_reset(n);
		r = service_session_end(fake.service, "a/b", "test", &fake.failure);
		if (!fake.failed)
			break;
		if (!r)
			assert_true(stored("a/b").ended);
		fake_reset(0);
		assert_int_equal(service_session_end(fake.service, "a/b", "test", &fake.failure), 0);
		service_sweep(fake.service); /* what bookkeeping was left */
		assert_true(stored("a/b").ended);
		assert_int_equal(stored("a/b").rung.level, LEVEL_SECRET);
		assert_int_equal(stored_sandboxes(), 0);
		assert_int_equal(service_sandboxes_count(fake.service), 0);
		assert_int_equal(fake.service->sessions.count, 0);
	}
	assert_true(n > 6);
}

static void test_session_bound(void **state)
{
	struct session_row row;

	(void)state;
	assert_int_equal(service_session_create(fake.service, "a/b", LEVEL_PUBLIC, false, "test", &row, NULL), 0);
	fake.store->sessions = NP_SESSIONS_MAX;
	assert_int_equal(escalate("c/d", LEVEL_SECRET, NULL, NULL), -E2BIG);
	assert_int_equal(fake.failure.reason, NP_R_TOO_MANY);
	assert_int_equal(escalate("a/b", LEVEL_SECRET, NULL, NULL), 0); /* those that exist are raised */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fake_test(test_escalate_creates),
		fake_test(test_bad_arguments_happen_before_anything),
		fake_test(test_policy_may_change_the_modes),
		fake_test(test_create_show_end_revive),
		fake_test(test_end_waits_for_adopted_and_touches_nothing),
		fake_test(test_end_may_fail_at_any_step),
		fake_test(test_session_bound),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
