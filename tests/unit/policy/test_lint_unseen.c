/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants the four above first */
#include <cmocka.h>

#include <stdio.h>

#include "policy/lint_unseen.c"

#include "make.h"

/* "" or what is said of line 4, which has line 3 above it: "refused", "inspected". */
static void assert_pair(const char *first, const char *second, const char *expected)
{
	_problems_ struct problems problems = { 0 }, own = { 0 };
	_policy_ struct policy *policy = NULL;
	char yaml[512], word[64] = "";

	snprintf(yaml, sizeof(yaml), "rules:\n- {%s}\n- {%s}\n", first, second);
	policy = policy_warned(yaml, &problems);
	policy_check_unseen(policy, &own);
	assert_int_equal(own.errors, 0);
	if (own.count) {
		assert_int_equal(own.items[0].line, 4);
		assert_int_equal(own.items[0].other_line, 3);
		assert_true(own.items[0].warning);
		assert_non_null(strstr(own.items[0].text, "p.yaml:3"));
		sscanf(strstr(own.items[0].text, " are "), " are %63[a-z]", word);
	}
	if (own.count > 1 || strcmp(word, expected) != 0)
		fail_msg("\"%s\", not \"%s\", for:\n%s", word, expected, yaml);
}

static void test_ports_that_nobody_sees(void **state)
{
	(void)state;
	assert_pair("deny: a.example, methods: POST", "allow: 'a.example:8080'", "refused");
	assert_pair("deny: a.example, paths: /x", "ask: 'a.example:79-81'", "refused");
	assert_pair("deny: a.example, headers: x", "allow: 'a.example:80'", "");
	assert_pair("deny: a.example, methods: POST", "allow: a.example", "");
	assert_pair("deny: 'a.example:443', methods: POST", "allow: 'a.example:8080'", "");
	assert_pair("deny: a.example", "allow: 'a.example:8080'", "");
	assert_pair("allow: a.example, methods: POST", "allow: 'a.example:8080'", "");
	assert_pair("deny: a.example, methods: POST", "deny: 'a.example:8080'", "");
	assert_pair("deny: a.example, methods: POST, for: INTERNAL", "allow: 'a.example:8080', for: CONFIDENTIAL", "");
	assert_pair("deny: 192.0.2.0/24, methods: POST", "allow: '192.0.2.7:22'", "refused");
	assert_pair("deny: 192.0.2.0/24, methods: POST", "allow: '192.0.2.7:443/udp'", "refused");
	assert_pair("deny: 192.0.2.7, methods: POST", "allow: '192.0.0.0/16:22'", "refused");
	assert_pair("deny: 192.0.2.7, methods: POST", "allow: '192.0.3.0/24:22'", "");
	assert_pair("deny: '2001:db8::/32', methods: POST", "allow: '0.0.0.0/0:22'", "");
	/* A name may lead there; an address is no name. */
	assert_pair("deny: 192.0.2.7, methods: POST", "allow: 'a.example:22'", "refused");
	assert_pair("deny: a.example, methods: POST", "allow: '192.0.2.7:22'", "");
}

static void test_what_is_not_to_be_seen(void **state)
{
	(void)state;
	assert_pair("deny: a.example, methods: POST", "allow: a.example, inspect: false", "inspected");
	assert_pair("deny: 192.0.2.7, methods: POST", "allow: a.example, inspect: false", "inspected");
	assert_pair("deny: 192.0.2.0/24, methods: POST", "allow: 192.0.2.7, inspect: false", "inspected");
	assert_pair("deny: b.example, methods: POST", "allow: a.example, inspect: false", "");
	assert_pair("deny: 'a.example:80', methods: POST", "allow: 'a.example:443', inspect: false", "");
	assert_pair("deny: 'a.example:443', methods: POST", "allow: 'a.example:443', inspect: false", "inspected");
}

static void test_names(void **state)
{
	(void)state;
	assert_true(names_meet("a.example", "a.example"));
	assert_false(names_meet("a.example", "b.example"));
	assert_false(names_meet("a.example", "example"));
	assert_false(names_meet("xa.example", "a.example"));
	assert_true(names_meet("*.example", "a.example"));
	assert_false(names_meet("*.example", "a.b.example"));
	assert_true(names_meet("**.example", "a.b.example"));
	assert_true(names_meet("a.b.example", "**.example"));
	assert_false(names_meet("**.example", "example"));
	assert_true(names_meet("**", "a"));
	assert_true(names_meet(".a.org", "a.org"));
	assert_true(names_meet("x.a.org", ".a.org"));
	assert_true(names_meet(".a.org", "*.a.org"));
	assert_true(names_meet(".org", ".a.org"));
	assert_false(names_meet(".a.org", "org"));
	assert_false(names_meet(".a.org", "b.org"));
	assert_false(names_meet("xa.org", ".a.org"));
	assert_true(names_meet("a.*.example", "*.b.example"));
	assert_false(names_meet("a.*.example", "b.*.example"));
	assert_true(names_meet("**.b.example", "**.example"));
}

/* As many rules as a policy has: it ends, and soon. */
static void test_many_rules(void **state)
{
	const unsigned n = 20000;
	char *yaml = malloc(n * 80 + 100), *at = yaml;
	_problems_ struct problems problems = { 0 };
	_policy_ struct policy *policy = NULL;

	(void)state;
	assert_non_null(yaml);
	at += sprintf(at, "rules:\n");
	for (unsigned i = 0; i < n; i++)
		at += i % 2 ? sprintf(at, "- allow: 'n%u.example:1-65535'\n", i)
			    : sprintf(at, "- {deny: 'n%u.example', methods: POST}\n", i);
	policy = policy_warned(yaml, &problems);
	free(yaml);
	assert_int_equal(policy->n_rules, n);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ports_that_nobody_sees),
		cmocka_unit_test(test_what_is_not_to_be_seen),
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_many_rules),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
