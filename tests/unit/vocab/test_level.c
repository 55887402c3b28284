/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants the four above first */
#include <cmocka.h>

#include "vocab/level.c"

static void test_names(void **state)
{
	(void)state;
	assert_string_equal(level_name(LEVEL_PUBLIC), "PUBLIC");
	assert_string_equal(level_name(LEVEL_SECRET), "SECRET");
	assert_string_equal(level_name(LEVEL_COUNT), "?");
	assert_string_equal(level_name((unsigned)-1), "?");
}

static void test_parse(void **state)
{
	static const char *const bad[] = { "", "PUBLI", "PUBLICX", " PUBLIC", "SECRET ", "0", "?", "NONE" };
	enum level level;

	(void)state;
	for (unsigned i = 0; i < LEVEL_COUNT; i++) {
		level = LEVEL_COUNT;
		assert_int_equal(level_parse(level_name(i), &level), 0);
		assert_int_equal(level, i);
	}
	assert_int_equal(level_parse("confidential", &level), 0);
	assert_int_equal(level, LEVEL_CONFIDENTIAL);
	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_int_equal(level_parse(bad[i], &level), -EINVAL);
		assert_int_equal(level, LEVEL_CONFIDENTIAL);
	}
}

static void test_default_modes_tighten_with_the_level(void **state)
{
	(void)state;
	assert_int_equal(level_modes_default.of[LEVEL_PUBLIC], NP_FULL);
	assert_int_equal(level_modes_default.of[LEVEL_INTERNAL], NP_FULL);
	assert_int_equal(level_modes_default.of[LEVEL_CONFIDENTIAL], NP_PROXIED);
	assert_int_equal(level_modes_default.of[LEVEL_SECRET], NP_NONE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_parse),
		cmocka_unit_test(test_default_modes_tighten_with_the_level),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
