/* SPDX-License-Identifier: MIT */
#include "policy/problem.c"

#include <setjmp.h>
#include <cmocka.h>

#include "vocab/limits.h"

static struct problems problems;
static char line[PROBLEM_LINE_SIZE];

static int reset(void **state)
{
	(void)state;
	problems_clear(&problems);
	return 0;
}

static const char *format(const struct problem *problem)
{
	assert_non_null(problem);
	problem_format(problem, line);
	return line;
}

static void formats(void **state)
{
	(void)state;
	assert_string_equal(format(problem_add(&problems, false, "a.yaml", 12, 5, "unknown key %s", "\"x\"")),
			    "a.yaml:12:5: error: unknown key \"x\"");
	assert_string_equal(format(problem_add(&problems, true, "a.yaml", 12, 0, "odd")), "a.yaml:12: warning: odd");
	assert_string_equal(format(problem_add(&problems, false, "a.yaml", 0, 0, "gone")), "a.yaml: error: gone");
	assert_int_equal(problems.errors, 2);
	assert_int_equal(problems.warnings, 1);
	assert_int_equal(problems.count, 3);
	assert_int_equal(problems.items[0].other_line, 0);
	assert_string_equal(problems.items[0].other_file, "");
}

static void first(void **state)
{
	(void)state;
	problems_first(&problems, line);
	assert_string_equal(line, "");
	problem_add(&problems, true, "a", 1, 1, "one");
	problem_add(&problems, true, "a", 2, 1, "two");
	problems_first(&problems, line);
	assert_string_equal(line, "a:1:1: warning: one");
	problem_add(&problems, false, "a", 3, 1, "three");
	problem_add(&problems, false, "a", 4, 1, "four");
	problem_add(&problems, true, "a", 5, 1, "five");
	problems_first(&problems, line);
	assert_string_equal(line, "a:3:1: error: three");
}

static void keeps_so_many_of_each_kind(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 3 * NP_POLICY_PROBLEMS; i++) {
		struct problem *kept = problem_add(&problems, false, "a", i + 1, 1, "e%u", i);

		assert_int_equal(kept != NULL, i < NP_POLICY_PROBLEMS);
	}
	assert_int_equal(problems.count, NP_POLICY_PROBLEMS);
	assert_int_equal(problems.errors, 3 * NP_POLICY_PROBLEMS);
	for (unsigned i = 0; i < 2 * NP_POLICY_PROBLEMS; i++)
		assert_int_equal(problem_add(&problems, true, "a", 1, 1, "w") != NULL, i < NP_POLICY_PROBLEMS);
	assert_int_equal(problems.count, 2 * NP_POLICY_PROBLEMS);
	assert_int_equal(problems.warnings, 2 * NP_POLICY_PROBLEMS);
	for (unsigned i = 0; i < NP_POLICY_PROBLEMS; i++)
		assert_int_equal(problems.items[i].line, i + 1);
	problems_clear(&problems);
	assert_null(problems.items);
	assert_int_equal(problems.count + problems.errors + problems.warnings, 0);
}

static void nothing_hidden_gets_through(void **state)
{
	struct problem *problem;

	(void)state;
	problem = problem_add(&problems, false, "a\x1b.yaml", 1, 1, "%s", "x\ny\x9b\xe2\x80\xaez\xff");
	assert_string_equal(problem->file, "a?.yaml");
	assert_string_equal(problem->text, "x?y??z?");
}

static void long_ones_are_cut(void **state)
{
	char text[4 * PROBLEM_TEXT_SIZE], name[4 * PROBLEM_FILE_SIZE];
	struct problem *problem;
	size_t len;

	(void)state;
	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	memset(name, 'd', sizeof(name) - 1);
	strcpy(name + sizeof(name) - sizeof("/policy.yaml"), "/policy.yaml");
	problem = problem_add(&problems, false, name, UINT32_MAX, UINT32_MAX, "%s", text);
	assert_int_equal(strlen(problem->text), PROBLEM_TEXT_SIZE - 1);
	assert_string_equal(problem->text + PROBLEM_TEXT_SIZE - 4, "...");
	len = strlen(problem->file);
	assert_int_equal(len, PROBLEM_FILE_SIZE - 1);
	assert_memory_equal(problem->file, "...d", 4);
	assert_string_equal(problem->file + len - 12, "/policy.yaml");
	format(problem);
	assert_string_equal(line + strlen(line) - 4, "x...");
	/* A long text of wide characters is not cut inside of one. */
	for (size_t i = 0; i + 3 < sizeof(text); i += 3)
		memcpy(text + i, "\xe2\x82\xac", 3);
	problem = problem_add(&problems, false, "a", 1, 1, "%s", text);
	assert_null(strchr(problem->text, '?'));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(formats, reset),
		cmocka_unit_test_teardown(first, reset),
		cmocka_unit_test_teardown(keeps_so_many_of_each_kind, reset),
		cmocka_unit_test_teardown(nothing_hidden_gets_through, reset),
		cmocka_unit_test_teardown(long_ones_are_cut, reset),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
