/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "supervisor/breaker.h"

#define PAUSE_NS (NP_DECIDER_PAUSE_MS * 1000000ull)

static void test_failures_in_a_row_open_it_for_a_while(void **state)
{
	struct breaker breaker = { 0 };
	uint64_t now = 1;

	(void)state;
	for (unsigned i = 1; i < NP_DECIDER_FAILURES; i++)
		breaker_fail(&breaker, now);
	assert_false(breaker_is_open(&breaker, now));
	breaker_succeed(&breaker);
	for (unsigned i = 1; i < NP_DECIDER_FAILURES; i++)
		breaker_fail(&breaker, now);
	assert_false(breaker_is_open(&breaker, now));
	breaker_fail(&breaker, now);
	assert_true(breaker_is_open(&breaker, now + PAUSE_NS - 1));
	breaker_fail(&breaker, now + PAUSE_NS - 1); /* what was asked before does not make it longer */
	now += PAUSE_NS;
	assert_false(breaker_is_open(&breaker, now));
	breaker_fail(&breaker, now);
	assert_true(breaker_is_open(&breaker, now));
	assert_int_equal(breaker.trips, 2);
	now += PAUSE_NS;
	breaker_succeed(&breaker);
	breaker_fail(&breaker, now);
	assert_false(breaker_is_open(&breaker, now));
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_failures_in_a_row_open_it_for_a_while) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
