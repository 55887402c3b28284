/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants the four above first */
#include <cmocka.h>

#include "policy/lint_hosts.c"

#include "found.h"

#define P "p.yaml:"

static void test_only_what_is_below(void **state)
{
	(void)state;
	tells("version: 1\nrules:\n- allow: '*.a.example'\n",
	      P "3:10: warning: \"*.a.example\" does not cover \"a.example\" itself, and no other rule speaks of that; "
		"\".a.example\" is both\n");
	tells("version: 1\nrules:\n- ask: '**.a.example:8443'\n",
	      P "3:8: warning: \"**.a.example\" does not cover \"a.example\" itself, and no other rule speaks of that; "
		"\".a.example\" is both\n");
	/* A list is told of once, whoever uses it. */
	tells("version: 1\nlists: {l: ['*.a.example']}\nrules:\n- allow: '@l'\n  methods: GET\n- allow: '@l'\n",
	      P "2:13: warning: \"*.a.example\" does not cover \"a.example\" itself, and no other rule speaks of that; "
		"\".a.example\" is both\n");
	/* Somebody has thought of it; or there is no such host; or it is no grant. */
	loads("version: 1\nrules:\n- allow: ['*.a.example', a.example]\n");
	loads("version: 1\nrules:\n- allow: '*.a.example'\n- deny: a.example\n");
	loads("version: 1\nrules:\n- allow: .a.example\n");
	loads("version: 1\nrules:\n- deny: '*.a.example'\n");
	loads("version: 1\nrules:\n- allow: '*.example'\n");
	loads("version: 1\nrules:\n- allow: ['**', '*', '*.*.a.example', x.*.example]\n");
}

static void test_this_host(void **state)
{
	(void)state;
	tells("version: 1\nrules:\n- allow: localhost:11434\n", P
	      "3:10: warning: \"localhost\" opens nothing: rules do not reach services of this host; \"host_loopback: "
	      "[11434]\" does\n");
	tells("version: 1\nrules:\n- allow: [.localhost, a.example]\n",
	      P "3:11: warning: \".localhost\" opens nothing: rules do not reach services of this host; "
		"\"host_loopback\" "
		"does\n");
	loads("version: 1\nrules:\n- deny: localhost\n");
	loads("version: 1\nrules:\n- allow: [localhost.example, mylocalhost]\n");
}

static void test_no_inspected_port(void **state)
{
	(void)state;
	tells("version: 1\ninspect_ports: []\nrules:\n- allow: [a.example, b.example:443]\n",
	      P "4:11: warning: it opens nothing: without a port it is about \"inspect_ports\", and there are none\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(test_only_what_is_below, found_clear),
		cmocka_unit_test_teardown(test_this_host, found_clear),
		cmocka_unit_test_teardown(test_no_inspected_port, found_clear),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
