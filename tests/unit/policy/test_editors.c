/* SPDX-License-Identifier: MIT */
#include <stdio.h>

#include "base/cleanup.h"
#include "policy/editors.c"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <cmocka.h>

static const char before[] = "version: 1\n"
			     "approval: {hold: 10s, group: reviewers}\n"
			     "sandbox: {memory: 1G, binds: [/srv]}\n"
			     "credentials: {key: {source: {env: KEY}, for: a.example}}\n"
			     "rules:\n"
			     "  - allow: a.example\n"
			     "    credential: key\n"
			     "  - allow: b.example\n";

/* What is told of the one text with that in the place of what. */
static const char *told(const char *what, const char *that)
{
	static char after[2048];
	const char *at = strstr(before, what), *key = NULL;
	int n, r;

	assert_non_null(at);
	n = snprintf(after, sizeof(after), "%.*s%s%s", (int)(at - before), before, that, at + strlen(what));
	assert_true(n > 0 && (size_t)n < sizeof(after));
	r = editor_change_check(before, strlen(before), after, strlen(after), &key);
	assert_int_equal(r, key ? -EACCES : 0);
	return key ? key : "";
}

static void what_editors_change(void **state)
{
	(void)state;
	assert_string_equal(told("b.example", "c.example"), "");
	assert_string_equal(told("hold: 10s", "hold: 20s, timeout: 1h, remember: once"), "");
	assert_string_equal(told("memory: 1G", "memory: 2G, cpus: 2, pids: 9, timeout: 5m, idle: 1m"), "");
	assert_string_equal(told("rules:\n", "default: ask\nlists: {l: [x.example]}\nrules:\n  - deny: '@l'\n"), "");
	assert_string_equal(told("  - allow: a.example\n    credential: key\n", ""), ""); /* that it goes is no harm */
	assert_string_equal(told("version: 1", "# a remark\nversion: 1"), "");
}

static void what_operators_change(void **state)
{
	static const struct {
		const char *what, *that, *key;
	} cases[] = {
		{ "group: reviewers", "group: others", "group" },
		{ "group: reviewers", "notify: {command: [/bin/sh]}, group: reviewers", "notify" },
		{ ", group: reviewers", "", "group" },
		{ "binds: [/srv]", "binds: [/srv, /root]", "binds" },
		{ "binds: [/srv]", "binds: [/srv], devices: [/dev/sda]", "devices" },
		{ "sandbox: {memory: 1G, binds: [/srv]}\n", "", "binds" },
		{ "env: KEY", "env: OTHER", "credentials" },
		{ "for: a.example", "for: [a.example, b.example]", "credentials" },
		{ "credential: key\n  - allow: b.example", "credential: key\n  - allow: b.example\n    credential: key",
		  "credential" },
		{ "allow: a.example", "allow: [a.example, b.example]", "credential" },
		{ "version: 1\n", "version: 1\naccess: {operator: 'user:me'}\n", "access" },
		{ "version: 1\n", "version: 1\nlevels: {PUBLIC: none}\n", "levels" },
		{ "version: 1\n", "version: 1\nfull:\n  - allow: 169.254.169.254\n", "full" },
		{ "version: 1\n", "version: 1\nextra_roots: mine.pem\n", "extra_roots" },
		{ "version: 1\n", "version: 1\ninclude: b.yaml\n", "include" },
		{ "approval: {hold: 10s, group: reviewers}", "approval: text", "approval" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		assert_string_equal(told(cases[i].what, cases[i].that), cases[i].key);
}

static void what_is_no_yaml_is_nobodys(void **state)
{
	const char *key;

	(void)state;
	assert_int_equal(editor_change_check(before, strlen(before), "rules: [", 8, &key), -EINVAL);
	assert_int_equal(editor_change_check("a: 1\na: 2", 9, before, strlen(before), &key), -EINVAL);
	assert_int_equal(editor_change_check("", 0, "rules: []", 9, &key), 0);
	assert_int_equal(editor_change_check(before, strlen(before), "", 0, &key), -EACCES);
}

static const char *led(const char *uses, const char *list)
{
	_policy_ struct policy *old = NULL, *new = NULL;
	_problems_ struct problems problems = { 0 };
	const char *key;
	char text[512];

	snprintf(text, sizeof(text), "version: 1\nlists: {l: [192.0.2.1], o: [o.example]}\n%s", uses);
	assert_int_equal(policy_load_text("p", text, strlen(text), &old, &problems), 0);
	snprintf(text, sizeof(text), "version: 1\nlists: {l: %s, o: [p.example]}\n%s", list, uses);
	assert_int_equal(policy_load_text("p", text, strlen(text), &new, &problems), 0);
	key = editor_lists_check(old, new);
	return key ? key : "";
}

static void what_lists_lead_to(void **state)
{
	static const char full[] = "full:\n  - deny: '@l'\n  - allow: 192.0.2.7\n";
	static const char read_only[] = "rules:\n  - allow: 192.0.2.0/24:5432\nsandbox: {read_only: '@l'}\n";

	(void)state;
	assert_string_equal(led(full, "[192.0.2.2]"), "full");
	assert_string_equal(led(full, "['192.0.2.1:22']"), "full");
	assert_string_equal(led(full, "[192.0.2.1, 192.0.2.2]"), "full");
	assert_string_equal(led(full, "{hosts: [192.0.2.1], quiet: true}"), "full");
	assert_string_equal(led(full, "{hosts: [192.0.2.1]}"), ""); /* written in another way */
	assert_string_equal(led(full, "[192.0.2.1/32]"), "");
	assert_string_equal(led(read_only, "['192.0.2.1:5432']"), "read_only");
	assert_string_equal(led(read_only, "[192.0.2.1]"), "");
	assert_string_equal(led("rules:\n  - allow: '@l'\n", "[192.0.2.2]"), ""); /* the editors' own */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_editors_change),
		cmocka_unit_test(what_operators_change),
		cmocka_unit_test(what_is_no_yaml_is_nobodys),
		cmocka_unit_test(what_lists_lead_to),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
