/* SPDX-License-Identifier: MIT */
/* A new policy: who is raised, who is cut, and what happens when that fails. */
#include "fake.h"

#include "session/reload.c"

static const struct level_modes usual = { { NP_FULL, NP_FULL, NP_PROXIED, NP_NONE } };
static const struct level_modes strict = { { NP_PROXIED, NP_NONE, NP_NONE, NP_NONE } };
static const struct level_modes loose = { { NP_FULL, NP_FULL, NP_FULL, NP_FULL } };

static int change(const struct level_modes *modes, struct policy_effect *ret)
{
	int r, cut;

	*ret = (struct policy_effect){ 0 };
	r = service_policy_raise(fake.service, modes, "tester", ret, &fake.failure);
	cut = service_policy_cut(fake.service, ret, &fake.failure);
	return r ? r : cut;
}

static void test_same_modes_only_cut(void **state)
{
	struct policy_effect effect;

	(void)state;
	made("a/b");
	made("c/d");
	made("e/f");
	assert_int_equal(escalate("c/d", LEVEL_CONFIDENTIAL, NULL, NULL), 0);
	assert_int_equal(escalate("e/f", LEVEL_SECRET, NULL, NULL), 0);
	fake_reset(0);
	fake.cut = 2;
	assert_int_equal(change(&usual, &effect), 0);
	assert_log("recut 101 102\n"); /* all at once, and not the one in NONE */
	assert_int_equal(effect.cut, 2);
	assert_int_equal(effect.raised, 0);
}

static void test_stricter_modes_raise(void **state)
{
	struct policy_effect effect;

	(void)state;
	made("a/b");
	fake_reset(0);
	fake.cut = 1;
	assert_int_equal(change(&strict, &effect), 0);
	assert_log("raise 101 PROXIED 2\ncut 101\ncommit\nevent raised cut=1\nevent cut cut=1\nrecut 101\n");
	assert_int_equal(effect.raised, 1);
	assert_int_equal(stored("a/b").rung.mode, NP_PROXIED);
	assert_int_equal(stored("a/b").rung.level, LEVEL_PUBLIC);
}

static void test_looser_modes_change_nothing_that_stands(void **state)
{
	struct policy_effect effect;

	(void)state;
	made("a/b");
	assert_int_equal(escalate("a/b", LEVEL_SECRET, NULL, NULL), 0);
	fake_reset(0);
	assert_int_equal(change(&loose, &effect), 0);
	assert_log("");
	assert_int_equal(stored("a/b").rung.mode, NP_NONE);
	assert_int_equal(fake_by_id(101)->rung.mode, NP_NONE);
	made("a/b"); /* another sandbox of the session is as closed */
	assert_int_equal(fake_by_id(102)->rung.mode, NP_NONE);
	made("new/one");
	assert_int_equal(escalate("new/one", LEVEL_SECRET, NULL, NULL), 0);
	assert_int_equal(stored("new/one").rung.mode, NP_FULL);
}

static void test_a_cut_that_failed_is_made_up_for(void **state)
{
	struct policy_effect effect;

	(void)state;
	made("a/b");
	fake_reset(1);
	assert_int_equal(change(&usual, &effect), -EIO);
	assert_int_equal(fake.failure.reason, NP_R_NOT_APPLIED);
	assert_true(fake.failed);
	fake_reset(0);
	service_sweep(fake.service);
	assert_non_null(strstr(fake.log, "cut 101\n"));
	fake_reset(0);
	service_sweep(fake.service);
	assert_null(strstr(fake.log, "cut"));
}

/* One session's failure does not keep the others from being raised and cut. */
static void test_one_failure_does_not_stop_the_others(void **state)
{
	struct policy_effect effect;

	(void)state;
	made("a/b");
	made("c/d");
	fake_by_id(101)->refuse_raise = true;
	fake_reset(0);
	assert_true(change(&strict, &effect) < 0);
	assert_int_equal(fake_by_id(102)->rung.mode, NP_PROXIED);
	assert_int_equal(stored("c/d").rung.mode, NP_PROXIED);
	assert_true(!fake_by_id(101)->exists ||
		    fake_by_id(101)->rung.mode == NP_PROXIED); /* it was killed: last resort */
	assert_non_null(strstr(fake.log, "recut"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fake_test(test_same_modes_only_cut),
		fake_test(test_stricter_modes_raise),
		fake_test(test_looser_modes_change_nothing_that_stands),
		fake_test(test_a_cut_that_failed_is_made_up_for),
		fake_test(test_one_failure_does_not_stop_the_others),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
