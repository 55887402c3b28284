/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/progress.c"

static char line[160];

static const char *shown(uint64_t done, uint64_t total, unsigned width)
{
	progress_format(&(struct progress){ .what = "cases", .done = done, .total = total }, width, line, sizeof(line));
	return line;
}

static void test_lines(void **state)
{
	(void)state;
	assert_string_equal(shown(1200, 0, 20), "cases 1200");
	assert_string_equal(shown(1250, 5000, 20), "cases 1250/5000 25% [#####...............]");
	assert_string_equal(shown(0, 5000, 20), "cases 0/5000 0% [....................]");
	assert_string_equal(shown(9999, 5000, 20), "cases 5000/5000 100% [####################]");
	assert_string_equal(shown(1250, 5000, 0), "cases 1250/5000 25%");
}

static void test_short_work_shows_nothing(void **state)
{
	struct progress p;

	(void)state;
	progress_start(&p, "cases", 100);
	progress_step(&p, 100);
	assert_false(p.drawn);
	progress_clear(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lines),
		cmocka_unit_test(test_short_work_shows_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
