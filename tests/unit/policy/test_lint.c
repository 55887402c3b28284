/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants the four above first */
#include <cmocka.h>

#include "policy/lint.c"

#include <time.h>

#include "make.h"

/* Lines that are warned of as never used, and the lines that decide first: "4<2 5<3". */
static void covered_format(const struct problems *problems, char *text)
{
	*text = '\0';
	for (size_t i = 0; i < problems->count; i++)
		if (strncmp(problems->items[i].text, "never used: ", 12) == 0)
			text += sprintf(text, "%s%u<%u", i ? " " : "", problems->items[i].line,
					problems->items[i].other_line);
}

static void assert_covered(const char *yaml, const char *expected)
{
	_problems_ struct problems problems = { 0 }, own = { 0 };
	_policy_ struct policy *policy = policy_warned(yaml, &problems);
	char text[1024];

	/* Alone: the reader has warnings of other kinds. */
	policy_check_cover(policy, &own);
	covered_format(&own, text);
	if (strcmp(text, expected) != 0)
		fail_msg("\"%s\", not \"%s\", for:\n%s", text, expected, yaml);
	assert_int_equal(own.errors, 0);
}

/* Line 3 is the first rule, line 4 the second. */
static void assert_pair(const char *first, const char *second, bool covers)
{
	char yaml[512];

	snprintf(yaml, sizeof(yaml), "rules:\n- {%s}\n- {%s}\n", first, second);
	assert_covered(yaml, covers ? "4<3" : "");
}

static void test_the_warning(void **state)
{
	_problems_ struct problems problems = { 0 };
	_policy_ struct policy *policy = policy_warned("rules:\n"
						       "- deny: '**.example.com'\n"
						       "- deny: b.org\n"
						       "- allow: a.example.com\n"
						       "- allow: [a.example.com, b.org]\n",
						       &problems);

	(void)state;
	problems_clear(&problems);
	policy_check_cover(policy, &problems);
	assert_int_equal(problems.count, 2);
	assert_true(problems.items[0].warning);
	assert_string_equal(problems.items[0].file, "p.yaml");
	assert_int_equal(problems.items[0].line, 5);
	assert_string_equal(problems.items[0].text, "never used: p.yaml:3 (deny: '**.example.com') decides first");
	assert_string_equal(problems.items[0].other_file, "p.yaml");
	assert_int_equal(problems.items[0].other_line, 3);
	assert_string_equal(problems.items[1].text,
			    "never used: p.yaml:3 (deny: '**.example.com') and others decide first");
}

static void test_names(void **state)
{
	(void)state;
	assert_pair("deny: a.com", "allow: a.com", true);
	assert_pair("deny: a.com", "allow: b.com", false);
	assert_pair("deny: '*.com'", "allow: b.com", true);
	assert_pair("deny: '*.com'", "allow: '*.com'", true);
	assert_pair("deny: '*.com'", "allow: '**.com'", false);
	assert_pair("deny: '**.com'", "allow: '*.com'", true);
	assert_pair("deny: '**.com'", "allow: 'com'", false);
	assert_pair("deny: '**'", "allow: 'com'", true);
	assert_pair("deny: '**'", "allow: '**.a.*.com'", true);
	assert_pair("deny: '*.a.com'", "allow: '**.a.com'", false);
	assert_pair("deny: a.com", "allow: [a.com, b.com]", false);
	assert_pair("deny: [a.com, b.com, c.com]", "allow: [c.com, a.com]", true);
	assert_pair("deny: '**'", "allow: 192.0.2.1", false);
	assert_covered("rules:\n- deny: a.com\n- deny: b.com\n- allow: [b.com, a.com]\n- allow: b.com\n", "5<4 6<4");
	/* One warning a rule, and the first rule that decides is named. */
	assert_covered("rules:\n- deny: '*.com'\n- deny: a.com\n- allow: a.com\n", "4<3 5<3");
}

static void test_levels_ports_and_protocols(void **state)
{
	(void)state;
	assert_pair("deny: a.com, for: SECRET", "allow: a.com", false);
	assert_pair("deny: a.com", "allow: a.com, for: SECRET", true);
	assert_pair("deny: a.com, for: [PUBLIC, SECRET]", "allow: a.com, for: SECRET", true);
	assert_pair("allow: a.com", "deny: a.com", true); /* on the ports that its author thinks of */
	assert_pair("allow: a.com", "deny: 'a.com:443/tcp'", true);
	assert_pair("allow: a.com", "deny: 'a.com:443'", true); /* no name is reached over UDP */
	assert_pair("allow: a.com", "deny: 'a.com:443/udp'", false);
	assert_pair("allow: a.com", "deny: 'a.com:443', methods: POST", true);
	assert_pair("allow: a.com, methods: GET", "deny: 'a.com:443', methods: POST", false);
	assert_pair("allow: a.com", "deny: 'a.com:8443'", false);
	assert_pair("allow: 192.0.2.1", "deny: '192.0.2.1:443', methods: POST", false); /* holds for names, too */
	assert_pair("allow: a.com", "deny: 'a.com:443-444/tcp'", false);
	assert_pair("deny: 'a.com:443/tcp'", "allow: a.com", false);
	assert_pair("deny: 'a.com:80-443/tcp'", "allow: a.com", true);
	assert_pair("deny: 'a.com:1-1000'", "allow: 'a.com:1000/udp'", true);
	assert_pair("deny: 'a.com:1-1000/tcp'", "allow: 'a.com:1000/udp'", false);
	assert_pair("deny: 'a.com:1-1000'", "allow: 'a.com:1000-1001'", false);
	/* Port 53 is no rule's to open. */
	assert_pair("allow: 'a.com:50-60'", "deny: 'a.com:50-60/tcp'", false);
	assert_pair("allow: 'a.com:50-60'", "allow: 'a.com:50-60'", true);
	assert_pair("allow: 'a.com:60-70'", "deny: 'a.com:60-70/tcp'", true);
}

static void test_conditions(void **state)
{
	(void)state;
	assert_pair("deny: a.com", "allow: a.com, methods: GET", true);
	assert_pair("deny: a.com, methods: GET", "allow: a.com", false);
	assert_pair("deny: a.com, methods: [GET, PUT]", "allow: a.com, methods: PUT", true);
	assert_pair("deny: a.com, methods: GET", "allow: a.com, methods: [PUT, GET]", false);
	assert_pair("deny: a.com, paths: /x", "allow: a.com, paths: /x", true);
	assert_pair("deny: a.com, paths: /x", "allow: a.com, paths: [/x, /y]", false);
	assert_pair("deny: a.com, paths: /x/**", "allow: a.com, paths: [/x/y, '/x/*/z', /x/]", true);
	assert_pair("deny: a.com, paths: /x/**", "allow: a.com, paths: /x", false);
	assert_pair("deny: a.com, paths: /x/*", "allow: a.com, paths: /x/y", false); /* not seen: only a warning */
	assert_pair("deny: a.com, paths: /x**/y", "allow: a.com, paths: /xz", false);
	assert_pair("deny: a.com, paths: /x", "allow: a.com", false);
	assert_pair("deny: a.com, headers: x", "allow: a.com, headers: [y, x]", true);
	assert_pair("deny: a.com, headers: [x, y]", "allow: a.com, headers: x", false);
	assert_pair("deny: a.com, headers: x", "allow: a.com", false);
	/* What it grants does not matter, for it is never asked. */
	assert_pair("allow: a.com", "allow: a.com, websocket: true, max_body: 1", true);
}

static void test_addresses(void **state)
{
	(void)state;
	assert_pair("deny: 10.0.0.0/8", "allow: 10.1.0.0/16", true);
	assert_pair("deny: 10.1.0.0/16", "allow: 10.0.0.0/8", false);
	assert_pair("deny: 10.0.0.0/8", "allow: 11.0.0.0", false);
	assert_pair("deny: '0.0.0.0/0'", "allow: '2001:db8::/32'", false);
	assert_pair("deny: '::/0'", "allow: '2001:db8::/32'", true);
	assert_pair("allow: 10.0.0.0/8", "allow: 10.0.0.0/8", true);
	assert_pair("allow: 10.0.0.0/8", "allow: 10.0.0.0/8:22", false);
	/* A deny is for names that lead there, too; an allow is not. */
	assert_pair("allow: '10.0.0.0/8:*'", "deny: '10.1.0.0/16:80/tcp'", false);
	assert_pair("deny: 10.0.0.0/8", "deny: 10.1.0.0/16", true);
	/* A wide allow does not open metadata addresses. */
	assert_pair("allow: 0.0.0.0/0", "allow: 169.254.169.254", false);
	assert_pair("allow: 169.254.0.0/16", "allow: 169.254.169.254", true);
	assert_pair("deny: 0.0.0.0/0", "allow: 169.254.169.254", true);
	/* Narrower ranges inside do not hide it. */
	assert_covered("rules:\n- deny: 10.0.0.0/30\n- deny: 10.0.0.0/8\n- allow: 10.0.0.0/16\n", "5<4");
}

static void test_full(void **state)
{
	(void)state;
	assert_covered("rules:\n- deny: 10.0.0.0/8\nfull:\n- deny: 10.0.0.0/8\n", "");
	assert_covered("full:\n- allow: 10.0.0.0/8\n- deny: 10.1.0.0/16:53\n- deny: 0.0.0.0/0\n", "4<3");
}

/* 100,000 rules, and 20,000 on one name. The bound is generous: a quadratic loop would take minutes. */
static void test_many_rules(void **state)
{
	_problems_ struct problems problems = { 0 };
	_policy_ struct policy *policy = NULL;
	char *text = malloc(100000 * 48), *at = text;
	struct timespec start, end;

	(void)state;
	assert_non_null(text);
	at += sprintf(at, "rules:\n");
	for (int i = 0; i < 80000; i++)
		at += sprintf(at, "- allow: h%d.example.com\n", i);
	for (int i = 0; i < 20000; i++)
		at += sprintf(at, "- {allow: a.com, paths: /p%d}\n", i);
	sprintf(at, "- allow: h79999.example.com\n");
	policy = policy_of(text);
	free(text);
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &start);
	policy_check_cover(policy, &problems);
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &end);
	assert_int_equal(problems.warnings, 1);
	assert_int_equal(problems.items[0].other_line, 3 + 79999);
	assert_true(end.tv_sec - start.tv_sec < 30); /* of CPU: what is quadratic takes minutes */
}

static void test_a_list_for_reading(void **state)
{
	(void)state;
	assert_covered("rules:\n- allow: 10.0.0.0/8:5432\nsandbox: {read_only: ['10.1.0.0/16:5432/tcp']}\n", "");
	assert_covered("rules:\n- allow: 10.1.2.3:5432\nsandbox: {read_only: [10.1.0.0/16]}\n", "");
	assert_covered("rules:\n- allow: 10.1.2.3\n  inspect: false\nsandbox: {read_only: ['10.1.0.0/16:443']}\n", "");
	assert_covered("rules:\n- allow: 10.1.2.3:5432\nsandbox: {read_only: [10.2.0.0/16]}\n", "4<0");
	assert_covered("rules:\n- allow: 10.1.2.3:5432\nsandbox: {read_only: ['10.1.0.0/16:5433']}\n", "4<0");
	assert_covered("rules:\n- allow: 10.1.2.3:5432/tcp\nsandbox: {read_only: ['10.1.0.0/16:5432/udp']}\n", "4<0");
	assert_covered("rules:\n- allow: 10.1.2.3\nsandbox: {read_only: [10.1.2.3]}\n", "4<0"); /* it is inspected */
	assert_covered("rules:\n- deny: 10.1.2.3\nsandbox: {read_only: [10.1.2.3]}\n", "4<0");
	assert_covered("rules:\n- allow: '[2001:db8::/32]:9'\nsandbox: {read_only: [0.0.0.0/0]}\n", "4<0");
}

static void test_lookups(void **state)
{
	(void)state;
	assert_pair("allow: a.example", "allow: a.example, dns: MX", false);
	assert_pair("allow: '**.example'", "allow: a.example, dns: MX", false);
	assert_pair("allow: a.example, dns: [MX, TXT]", "allow: a.example, dns: MX", true);
	assert_pair("allow: a.example, dns: TXT", "allow: a.example, dns: [MX, TXT]", false);
	assert_pair("allow: a.example, dns: TXT", "allow: a.example", true);
	assert_pair("deny: a.example", "allow: a.example, dns: MX", true);
	assert_pair("deny: 'a.example:443'", "allow: 'a.example:443', dns: MX", false);
}

/* A domain is covered when both are, the name and what is below it. */
static void test_domains(void **state)
{
	(void)state;
	assert_pair("deny: .a.org", "allow: .a.org", true);
	assert_pair("deny: .org", "allow: .a.org", true);
	assert_pair("deny: .a.org", "allow: a.org", true);
	assert_pair("deny: .a.org", "allow: '**.a.org'", true);
	assert_pair("deny: a.org", "allow: .a.org", false);
	assert_pair("deny: '**.a.org'", "allow: .a.org", false);
	assert_pair("deny: '*.a.org'", "allow: .a.org", false);
	assert_pair("deny: '**'", "allow: .a.org", true);
	assert_covered("rules:\n- deny: a.org\n- deny: '**.a.org'\n- allow: .a.org\n", "5<4");
	/* A rule for some sessions leaves the others. */
	assert_pair("deny: a.org, sessions: 'a/*'", "allow: a.org", false);
	assert_pair("deny: a.org", "allow: a.org, sessions: 'a/*'", true);
	assert_pair("deny: a.org, sessions: ['a/*', 'b/*']", "allow: a.org, sessions: 'a/*'", true);
	assert_pair("deny: a.org, sessions: 'a/*'", "allow: a.org, sessions: 'b/*'", false);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_warning),
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_levels_ports_and_protocols),
		cmocka_unit_test(test_conditions),
		cmocka_unit_test(test_addresses),
		cmocka_unit_test(test_full),
		cmocka_unit_test(test_many_rules),
		cmocka_unit_test(test_a_list_for_reading),
		cmocka_unit_test(test_lookups),
		cmocka_unit_test(test_domains),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
