/* SPDX-License-Identifier: MIT */
#include "base/descriptors.c"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

static struct rlimit now(void)
{
	struct rlimit limit;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	return limit;
}

static int start(void **state)
{
	const struct rlimit limit = { 64, 256 };

	(void)state;
	inherited = raised = 0;
	return setrlimit(RLIMIT_NOFILE, &limit);
}

static void test_never_less(void **state)
{
	(void)state;
	descriptors_raise(64);
	descriptors_lower();
	assert_int_equal(now().rlim_cur, 64);
	descriptors_raise_again();
	assert_int_equal(now().rlim_cur, 64);
}

static void test_up_and_down(void **state)
{
	(void)state;
	descriptors_raise(128);
	assert_int_equal(now().rlim_cur, 128);
	descriptors_lower();
	assert_int_equal(now().rlim_cur, 64);
	descriptors_raise_again();
	assert_int_equal(now().rlim_cur, 128);
	assert_int_equal(now().rlim_max, 256);
}

static void test_as_far_as_it_goes(void **state)
{
	(void)state;
	descriptors_raise(1000);
	assert_int_equal(now().rlim_cur, 256);
}

static void test_left(void **state)
{
	(void)state;
	assert_true(descriptors_left(0, 63));
	assert_false(descriptors_left(0, 64));
	assert_true(descriptors_left(63, 0));
	assert_false(descriptors_left(63, 1));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_left, start),
		cmocka_unit_test_setup(test_never_less, start),
		cmocka_unit_test_setup(test_up_and_down, start),
		cmocka_unit_test_setup(test_as_far_as_it_goes, start),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
