/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants the four above first */
#include <cmocka.h>

#include "supervisor/readiness.h"

#define MS 1000000ull

static void an_ordinary_start_is_no_fault(void **state)
{
	struct readiness r = { 0 };

	(void)state;
	assert_null(readiness_problem(&r, 100000 * MS)); /* none is expected yet */
	readiness_lose(&r, 100000 * MS);
	assert_null(readiness_problem(&r, 100000 * MS + (UNREADY_SLOW_MS - 1) * MS));
	readiness_gain(&r);
	assert_null(readiness_problem(&r, 900000 * MS));
}

static void one_restart_is_no_fault(void **state)
{
	struct readiness r = { 0 };

	(void)state;
	readiness_lose(&r, 1 * MS);
	readiness_fail(&r, "it is gone");
	readiness_fail(&r, "it is gone");
	assert_null(readiness_problem(&r, (UNREADY_MS + 1000) * MS));
	readiness_gain(&r);
	/* One that is not the only one: nobody misses it. */
	for (unsigned i = 0; i < 10 * UNREADY_FAILURES; i++)
		readiness_fail(&r, "it is gone");
	assert_null(readiness_problem(&r, 900000 * MS));
}

static void several_failures_for_some_seconds_are_one(void **state)
{
	struct readiness r = { 0 };

	(void)state;
	readiness_lose(&r, 1 * MS);
	for (unsigned i = 0; i < 2 * UNREADY_FAILURES; i++)
		readiness_fail(&r, "it is gone");
	assert_null(readiness_problem(&r, UNREADY_MS * MS));
	readiness_lose(&r, 2 * MS); /* it is since then still */
	assert_string_equal(readiness_problem(&r, (1 + UNREADY_MS) * MS), "it is gone");
	readiness_fail(&r, "Broken pipe");
	assert_string_equal(readiness_problem(&r, (2 + UNREADY_MS) * MS), "it is gone");
	readiness_gain(&r);
	assert_null(readiness_problem(&r, 900000 * MS));
}

static void those_that_say_nothing(void **state)
{
	struct readiness r = { 0 };

	(void)state;
	readiness_lose(&r, 1 * MS);
	assert_string_equal(readiness_problem(&r, (1 + UNREADY_SLOW_MS) * MS), "nothing was heard of it");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_ordinary_start_is_no_fault),
		cmocka_unit_test(one_restart_is_no_fault),
		cmocka_unit_test(several_failures_for_some_seconds_are_one),
		cmocka_unit_test(those_that_say_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
