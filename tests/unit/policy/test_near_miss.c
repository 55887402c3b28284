/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants the four above first */
#include <cmocka.h>

#include "policy/near_miss.c"

#include "make.h"

/* All of them as lines. */
static const char *near(const struct policy *policy, struct facts facts)
{
	static char lines[NEAR_MISSES_MAX * NEAR_TEXT_SIZE];
	struct near_miss list[NEAR_MISSES_MAX];
	size_t n = policy_near_misses(policy, &facts, true, list);

	lines[0] = '\0';
	for (size_t i = 0; i < n; i++) {
		char text[NEAR_TEXT_SIZE];

		near_miss_text(&list[i], facts.name, text);
		sprintf(lines + strlen(lines), "%s\n", text);
	}
	return lines;
}

static void test_domains(void **state)
{
	_policy_ struct policy *policy = policy_of("rules:\n"
						   "- allow: '*.a.example'\n"
						   "- allow: '**.b.example'\n"
						   "- allow: c.example\n"
						   "- deny: '*.d.example'\n"
						   "- {allow: '*.e.example', for: SECRET}\n"
						   "- {allow: '*.f.example', sessions: 'bob/*'}\n"
						   "- allow: '*.example:22'\n");

	(void)state;
	assert_string_equal(near(policy, to_name("a.example", 443)),
			    "\"*.a.example\" does not cover \"a.example\" itself; \".a.example\" does\n");
	assert_string_equal(near(policy, to_name("b.example", 443)),
			    "\"**.b.example\" does not cover \"b.example\" itself; \".b.example\" does\n");
	assert_string_equal(near(policy, to_name("x.c.example", 443)),
			    "it is for \"c.example\" alone; \".c.example\" covers what is below it, too\n");
	assert_string_equal(near(policy, to_name("x.y.a.example", 443)),
			    "\"*\" stands for one label; \".a.example\" covers everything below\n");
	/* It is allowed, or only another port is; a deny is none, nor what is for others; a top-level domain is not meant. */
	assert_string_equal(near(policy, to_name("x.a.example", 443)), "");
	assert_string_equal(near(policy, to_name("x.a.example", 22)), "");
	assert_string_equal(near(policy, to_name("d.example", 443)),
			    "\"c.example\" is written almost like \"d.example\"\n");
	assert_string_equal(near(policy, to_name("far-away.test", 443)), "");
	assert_string_equal(near(policy, to_name("e.example", 443)),
			    "\"c.example\" is written almost like \"e.example\"\n");
	assert_string_equal(near(policy, to_name("f.example", 443)),
			    "\"c.example\" is written almost like \"f.example\"\n");
	assert_string_equal(near(policy, to_name("not-f.longer.example", 443)), "");
	assert_string_equal(near(policy, to_addr("192.0.2.7", 443)), "");
	assert_string_equal(near(policy, at(NP_NONE, LEVEL_SECRET, to_name("a.example", 443))), "");
}

static void test_words(void **state)
{
	_policy_ struct policy *policy =
		policy_of("rules:\n- allow: [api.openai.com, api.anthropic.com, '*.openia.org']\n");

	(void)state;
	assert_string_equal(near(policy, to_name("api.openia.com", 443)),
			    "\"api.openai.com\" is written almost like \"api.openia.com\"\n");
	assert_string_equal(near(policy, to_name("www.openai.com", 443)), "");
}

/* No more than there is room for, each pattern once. */
static void test_many(void **state)
{
	_policy_ struct policy *policy =
		policy_of("rules:\n"
			  "- {allow: '*.a.b.c.d.e.example', methods: PUT}\n"
			  "- allow: ['*.a.b.c.d.e.example', a.b.c.d.e.example, b.c.d.e.example]\n"
			  "- allow: [c.d.e.example, d.e.example, e.example, '*.d.e.example']\n");
	struct near_miss list[NEAR_MISSES_MAX];
	struct facts facts = to_name("x.y.a.b.c.d.e.example", 443);

	(void)state;
	assert_int_equal(policy_near_misses(policy, &facts, true, list), NEAR_MISSES_MAX);
	for (size_t i = 0; i < NEAR_MISSES_MAX; i++)
		for (size_t k = 0; k < i; k++)
			assert_string_not_equal(list[i].pattern->name, list[k].pattern->name);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_domains),
		cmocka_unit_test(test_words),
		cmocka_unit_test(test_many),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
