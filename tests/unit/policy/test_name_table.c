/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants the four above first */
#include <cmocka.h>

#include "policy/name_table.c"
#include "policy/name_table_make.c"

#include "make.h"

/* Numbers of the rules whose patterns match, in ascending order: "0 2 3". */
struct matches {
	bool seen[64];
	unsigned runs, stop_after;
};

static bool matches_visit(void *ctx, const struct target *targets, size_t n)
{
	struct matches *m = ctx;

	assert_true(n > 0);
	for (size_t i = 0; i < n; i++) {
		assert_in_range(targets[i].rule, i ? targets[i - 1].rule : 0, 63);
		assert_false(m->seen[targets[i].rule]);
		m->seen[targets[i].rule] = true;
	}
	return ++m->runs != m->stop_after;
}

static void assert_matches(const struct policy *policy, const char *name, const char *expected)
{
	struct matches m = { 0 };
	char text[256] = "";

	name_table_visit(policy->names, name, matches_visit, &m);
	for (unsigned i = 0; i < 64; i++)
		if (m.seen[i])
			sprintf(text + strlen(text), "%s%u", *text ? " " : "", i);
	if (strcmp(text, expected) != 0)
		fail_msg("%s: %s, not %s", name, text, expected);
}

static void test_every_kind_of_pattern(void **state)
{
	_policy_ struct policy *policy = policy_of("rules:\n"
						   "- allow: example.com\n"	   /* 0 */
						   "- allow: '*.example.com'\n"	   /* 1 */
						   "- allow: '**.example.com'\n"   /* 2 */
						   "- allow: 'a.*.com'\n"	   /* 3 */
						   "- allow: '**'\n"		   /* 4 */
						   "- allow: '*'\n"		   /* 5 */
						   "- allow: '**.*.com'\n"	   /* 6 */
						   "- allow: a.example.com\n"	   /* 7 */
						   "- allow: [com, '*.*.com']\n"); /* 8 */

	(void)state;
	assert_matches(policy, "example.com", "0 4");
	assert_matches(policy, "a.example.com", "1 2 3 4 6 7 8");
	assert_matches(policy, "b.example.com", "1 2 4 6 8");
	assert_matches(policy, "a.b.example.com", "2 4 6");
	assert_matches(policy, "a.other.com", "3 4 6 8");
	assert_matches(policy, "com", "4 5 8");
	assert_matches(policy, "org", "4 5");
	assert_matches(policy, "xexample.com", "4");
	assert_matches(policy, "example.com.org", "4");
}

static void test_a_domain_and_all_below_it(void **state)
{
	_policy_ struct policy *policy = policy_of("rules:\n"
						   "- allow: .example.com\n"	 /* 0 */
						   "- allow: example.com\n"	 /* 1 */
						   "- allow: '**.example.com'\n" /* 2 */
						   "- allow: .a.example.com\n"	 /* 3 */
						   "- allow: .com\n");		 /* 4 */

	(void)state;
	assert_matches(policy, "example.com", "0 1 4");
	assert_matches(policy, "a.example.com", "0 2 3 4");
	assert_matches(policy, "b.a.example.com", "0 2 3 4");
	assert_matches(policy, "xexample.com", "4");
	assert_matches(policy, "com", "4");
	assert_matches(policy, "example.com.org", "");
}

/* What matches whatever a pattern matches: see name_table_visit(). */
static void test_patterns_that_hold_a_pattern(void **state)
{
	_policy_ struct policy *policy = policy_of("rules:\n"
						   "- allow: '**'\n"	    /* 0 */
						   "- allow: '*.com'\n"	    /* 1 */
						   "- allow: '**.com'\n"    /* 2 */
						   "- allow: '**.a.com'\n"  /* 3 */
						   "- allow: '*.a.com'\n"   /* 4 */
						   "- allow: 'a.com'\n"	    /* 5 */
						   "- allow: '**.*.com'\n"  /* 6 */
						   "- allow: 'x.*.com'\n"); /* 7 */

	(void)state;
	assert_matches(policy, "**", "0");
	assert_matches(policy, "*", "0");
	assert_matches(policy, "*.com", "0 1 2");
	assert_matches(policy, "**.com", "0 2");
	assert_matches(policy, "**.a.com", "0 2 3 6");
	assert_matches(policy, "*.a.com", "0 2 3 4 6");
	assert_matches(policy, "**.*.com", "0 2 6");
	assert_matches(policy, "x.a.com", "0 2 3 4 6 7");
	assert_matches(policy, "x.*.com", "0 2 6 7");
}

static void test_nothing_there(void **state)
{
	_policy_ struct policy *policy = policy_of("rules:\n- deny: 192.0.2.0/24\n");

	(void)state;
	assert_matches(policy, "example.com", "");
	assert_matches(policy, "**", "");
}

static void test_the_visitor_may_end_it(void **state)
{
	_policy_ struct policy *policy = policy_of("rules:\n- allow: ['**', '**.com', 'a.com']\n");
	struct matches m = { .stop_after = 1 };

	(void)state;
	name_table_visit(policy->names, "b.com", matches_visit, &m);
	assert_int_equal(m.runs, 1);
}

/* Labels that share all but one byte, of every length: none is taken for another. */
static void test_labels_of_every_length(void **state)
{
	_policy_ struct policy *policy = NULL;
	_problems_ struct problems problems = { 0 };
	char text[63 * 90 + 64] = "rules:\n", name[80];

	(void)state;
	for (int len = 1; len <= 63; len++)
		sprintf(text + strlen(text), "- allow: %.*sx.example\n", len - 1,
			"aaaaaaaaaabbbbbbbbbbaaaaaaaaaabbbbbbbbbbaaaaaaaaaabbbbbbbbbbccc");
	policy = policy_of(text);
	for (int len = 1; len <= 63; len++) {
		char expected[8];

		snprintf(name, sizeof(name), "%.*sx.example", len - 1,
			 "aaaaaaaaaabbbbbbbbbbaaaaaaaaaabbbbbbbbbbaaaaaaaaaabbbbbbbbbbccc");
		snprintf(expected, sizeof(expected), "%d", len - 1);
		assert_matches(policy, name, expected);
		for (int i = 0; i < len; i++) {
			char kept = name[i];

			name[i] = 'z';
			assert_matches(policy, name, "");
			name[i] = kept;
		}
	}
}

/* Each label may be itself or a star: as many nodes as there are can match, and no more are visited. */
static void test_many_stars(void **state)
{
	_policy_ struct policy *policy = NULL;
	char text[64 * 40] = "rules:\n";

	(void)state;
	for (unsigned i = 0; i < 64; i++)
		sprintf(text + strlen(text), "- allow: '%s.%s.%s.%s.%s.%s'\n", i & 1 ? "a" : "*", i & 2 ? "a" : "*",
			i & 4 ? "a" : "*", i & 8 ? "a" : "*", i & 16 ? "a" : "*", i & 32 ? "a" : "*");
	policy = policy_of(text);
	assert_matches(policy, "b.b.b.b.b.b", "0");
	assert_matches(policy, "a.b.b.b.b.a", "0 1 32 33");
	assert_matches(policy, "b.a.b", "");
	assert_matches(
		policy,
		"a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a."
		"a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a."
		"a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a",
		"");
}

/* Of the i-th of many: one in three is longer than half a line of the table, one in seven longer than a line. */
static void many_name(uint32_t i, char name[static 96])
{
	const char *more = i % 7 == 0	? "-longer-than-a-whole-line-of-the-table-has-room"
			   : i % 3 == 0 ? "-longer-than-half"
					: "";

	snprintf(name, 96, "h%u%s.d%u.example", i, more, i % 300);
}

/* More patterns than the first table has room for; each is found, by a walk that is not longer than it is deep. */
static void test_many_names(void **state)
{
	_policy_ struct policy *policy = NULL;
	static char text[20000 * 96];
	char *at = text + sprintf(text, "rules:\n"), name[96];
	size_t n = 0, taken = 0, longest = 0, probes = 0;

	(void)state;
	for (uint32_t i = 0; i < 20000; i++) {
		many_name(i, name);
		at += sprintf(at, "- allow: %s\n", name);
	}
	policy = policy_of(text);
	for (uint32_t i = 0; i < 20000; i++) {
		struct name_path path = { 0 };
		uint32_t node = 0;

		many_name(i, name);
		for (size_t rest = strlen(name); rest;) {
			struct name_label label = name_label_last(name, rest);

			path = name_path_down(path, &label, name + strlen(name));
			node = child_find(policy->names, node, path.hash, &label);
			assert_int_not_equal(node, 0);
			rest = name_label_rest(name, &label);
		}
		assert_int_equal(policy->names->nodes[node].has, NAME_EXACT);
		assert_int_equal(policy->names->nodes[node].only.rule, i);
	}
	for (uint32_t i = 2, slots; i < policy->names->mask + 3; i += slots) {
		slots = name_is_long(policy->names->nodes[i].len) ? 2 : 1;
		probes = policy->names->nodes[i].len ? probes + 1 : 0;
		longest = probes > longest ? probes : longest;
		n += policy->names->nodes[i].len != 0;
		taken += policy->names->nodes[i].len ? slots : 0;
	}
	assert_int_equal(n, 20000 + 300 + 1);
	assert_true(2 * taken <= policy->names->mask + 1);
	assert_true(longest < 64);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_kind_of_pattern),
		cmocka_unit_test(test_a_domain_and_all_below_it),
		cmocka_unit_test(test_patterns_that_hold_a_pattern),
		cmocka_unit_test(test_nothing_there),
		cmocka_unit_test(test_the_visitor_may_end_it),
		cmocka_unit_test(test_labels_of_every_length),
		cmocka_unit_test(test_many_stars),
		cmocka_unit_test(test_many_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
