/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants the four above first */
#include <cmocka.h>

#include "vocab/run_options.c"

/* What is printed is what an option takes, and means the same. */
static void test_limits_there_and_back(void **state)
{
	static const struct {
		const char *name, *written, *printed;
	} rows[] = {
		{ "memory", "64MiB", "64MiB" },	    { "memory", "1048577", "1048577" },
		{ "memory", "2048MiB", "2GiB" },    { "disk", "9223372036854775807", "9223372036854775807" },
		{ "output_limit", "1", "1" },	    { "output_limit", "10k", "10000" },
		{ "output_limit", "2KiB", "2KiB" }, { "cpus", "1.5", "1.5" },
		{ "cpus", "0.010", "0.01" },	    { "cpus", "10", "10" },
		{ "cpus", "2.050", "2.05" },	    { "pids", "4096", "4096" },
		{ "timeout", "300s", "5m" },	    { "timeout", "1500ms", "1500ms" },
		{ "timeout", "7s", "7s" },	    { "timeout", "999999999h", "999999999h" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct run_option *limit = run_option_find(rows[i].name, RUN_CLI);
		char text[LIMIT_TEXT_SIZE];
		uint64_t value = 0, again = 0;

		assert_non_null(limit);
		assert_null(limit_parse(rows[i].name, rows[i].written, &value));
		assert_string_equal(limit_format(limit, value, text), rows[i].printed);
		assert_null(limit_parse(rows[i].name, text, &again));
		assert_true(value == again);
	}
	assert_non_null(limit_parse("session", "1", &(uint64_t){ 0 }));
	assert_non_null(limit_parse("nonsense", "1", &(uint64_t){ 0 }));
}

static void test_names_of_variables(void **state)
{
	static const char *const good[] = { "A=", "A=b c", "a.b-c=1", "\xc3\xa9=1", "A==" };
	static const char *const bad[] = { "",	    "=",    "=x",	  "A B=x", " A=x",	 "A =x",
					   "A\t=x", "\n=x", "export A=x", "A",	   "NETPAWL_X=1" };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(good); i++)
		assert_null(env_check(good[i], false));
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_non_null(env_check(bad[i], false));
	assert_null(env_check("A", true));
	assert_non_null(env_check("A B", true));
	assert_non_null(env_check("", true));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_limits_there_and_back),
		cmocka_unit_test(test_names_of_variables),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
