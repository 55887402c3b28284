/* SPDX-License-Identifier: MIT */
#include "policy/read_lifetime.c"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "make.h"

static void test_defaults(void **state)
{
	_policy_ struct policy *policy = policy_of("");

	(void)state;
	assert_int_equal(policy->lifetime.keep_s, 90 * 86400);
	assert_int_equal(policy->lifetime.keep_count, NP_SESSIONS_KEPT);
	assert_int_equal(policy->lifetime.remember_s, 0); /* for ever */
	assert_int_equal(policy->lifetime.at_end, WORKSPACE_KEEP);
	assert_true(policy->lifetime.archive_max == NP_ARCHIVE_BYTES);
}

static void test_everything(void **state)
{
	_policy_ struct policy *policy = policy_of("sessions: {keep: forever, count: 7, remember: 730d}\n"
						   "workspaces: {at_end: remove, archive_max: 2MiB}\n");
	_policy_ struct policy *some = policy_of("sessions: {keep: 36h}\nworkspaces: {at_end: archive}\n");

	(void)state;
	assert_int_equal(policy->lifetime.keep_s, 0);
	assert_int_equal(policy->lifetime.keep_count, 7);
	assert_int_equal(policy->lifetime.remember_s, 730 * 86400);
	assert_int_equal(policy->lifetime.at_end, WORKSPACE_REMOVE);
	assert_int_equal(policy->lifetime.archive_max, 2 << 20);
	assert_int_equal(some->lifetime.keep_s, 36 * 3600);
	assert_int_equal(some->lifetime.at_end, WORKSPACE_ARCHIVE);
}

static void test_mistakes(void **state)
{
	static const char *const wrong[] = {
		"sessions: {keep: 90}",		 "sessions: {keep: 0d}",
		"sessions: {keep: 5ms}",	 "sessions: {keep: d}",
		"sessions: {keep: 1d2h}",	 "sessions: {keep: 36501d}",
		"sessions: {keep: -1d}",	 "sessions: {keep: 9999999999d}",
		"sessions: {remember: Forever}", "sessions: {count: 0}",
		"sessions: {count: 1000001}",	 "sessions: {count: many}",
		"sessions: {keeps: 1d}",	 "sessions: 90d",
		"sessions: {keep: \"9\\0d\"}",	 "workspaces: {at_end: burn}",
		"workspaces: {at_end: [keep]}",	 "workspaces: {archive_max: 1k}",
		"workspaces: {archive_max: x}",	 "workspaces: keep",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		_problems_ struct problems problems = { 0 };
		struct policy *policy = NULL;
		char text[256];

		snprintf(text, sizeof(text), "version: 1\n%s\n", wrong[i]);
		if (policy_load_text("p", text, strlen(text), &policy, &problems) == 0)
			fail_msg("taken: %s", wrong[i]);
		assert_true(problems.errors > 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_defaults),
		cmocka_unit_test(test_everything),
		cmocka_unit_test(test_mistakes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
