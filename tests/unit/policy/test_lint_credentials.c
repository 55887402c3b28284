/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants the four above first */
#include <cmocka.h>

#include "policy/lint_credentials.c"

#include "found.h"

#define P	"p.yaml:"
#define HEAD	"version: 1\ncredentials:\n  a:\n    source: {env: A}\n"
#define ALLOW	"rules:\n- allow: [a.example, .b.example, pastebin.com]\n"
#define OF_A(x) "warning: credential \"a\" for \"" x "\": "

static void test_hosts(void **state)
{
	(void)state;
	loads(HEAD "    for: [a.example, x.b.example]\n" ALLOW);
	tells(HEAD "    for: [a.example, .b.example]\n" ALLOW,
	      P "5:22: " OF_A(".b.example") "it goes to whoever runs a host of such a name; write whole names\n");
	tells(HEAD "    for: a.example:80\n" ALLOW,
	      P "5:10: " OF_A("a.example") "at port 80 HTTP goes without TLS as a rule, and then it is never put in\n");
	tells(HEAD "    for: a.example:8443\n" ALLOW,
	      P "5:10: " OF_A("a.example") "the port is not one of inspect_ports, so nobody puts it in\n");
	tells(HEAD "    for: pastebin.com\n" ALLOW,
	      P "5:10: " OF_A("pastebin.com") "the host takes uploads from anyone, and shows them to others\n");
	tells(HEAD "    for: other.example\n" ALLOW,
	      P "5:10: " OF_A(
		      "other.example") "at none of its levels is the mode PROXIED and the host allowed by a rule\n");
	tells(HEAD "    for: a.example\n    levels: PUBLIC\n" ALLOW, P
	      "5:10: " OF_A("a.example") "at none of its levels is the mode PROXIED and the host allowed by a rule\n");
}

/* A host that takes uploads, and that no rule allows, is told of twice. */
static void test_all_of_it(void **state)
{
	(void)state;
	tells(HEAD "    for: paste.ee\n" ALLOW,
	      P "5:10: " OF_A("paste.ee") "the host takes uploads from anyone, and shows them to others\n" P
					  "5:10: " OF_A(
						  "paste.ee") "at none of its levels is the mode PROXIED and the host "
							      "allowed by a rule\n");
}

/* A rule that names it binds it as "for" does. */
static void test_rules(void **state)
{
	(void)state;
	loads(HEAD "rules:\n- allow: [a.example, x.b.example]\n  credential: a\n");
	tells(HEAD "rules:\n- allow: [a.example, .b.example]\n  credential: a\n",
	      P "6:22: " OF_A(".b.example") "it goes to whoever runs a host of such a name; write whole names\n");
	tells(HEAD "rules:\n- allow: \"a.example:80\"\n  credential: a\n",
	      P "6:10: " OF_A("a.example") "at port 80 HTTP goes without TLS as a rule, and then it is never put in\n");
	tells(HEAD "rules:\n- allow: x.s3.amazonaws.com\n  credential: a\n",
	      P "6:10: " OF_A("x.s3.amazonaws.com") "the host takes uploads from anyone, and shows them to others\n");
}

static void test_nobody(void **state)
{
	(void)state;
	tells(HEAD ALLOW,
	      P "3:3: warning: nothing gets the credential \"a\": it has no \"for\", and no rule names it\n");
	loads(HEAD "rules:\n- allow: a.example\n  credential: a\n");
}

static void test_capture(void **state)
{
	(void)state;
	loads(HEAD "    for: a.example\n    capture: {json: t, paths: /token, for: x.b.example}\n" ALLOW);
	loads(HEAD "    for: a.example\n    paths: /token\n    capture: {json: t}\n" ALLOW);
	loads(HEAD "    for: a.example\n    capture: {cookies: t}\n" ALLOW);
	tells(HEAD "    for: a.example\n    capture: {json: t}\n" ALLOW,
	      P "3:3: warning: credential \"a\": its hosts can answer with nothing but JSON, so that no token is "
		"missed; say by "
		"\"paths\" of \"capture\" which of their responses have tokens\n");
	tells(HEAD "    for: a.example\n    capture: {cookies: t, for: .b.example}\n" ALLOW,
	      P "6:32: " OF_A(".b.example") "it goes to whoever runs a host of such a name; write whole names\n");
}

static void test_wrong_captures(void **state)
{
	static const char *const texts[][2] = {
		{ "{}", "needs \"json\" or \"cookies\"" },
		{ "json", "mapping" },
		{ "{json: []}", "empty" },
		{ "{json: [a b]}", "a name has up to" },
		{ "{json: t, for: 192.0.2.1}", "is for names" },
		{ "{json: t, as: cookie}", "none of what it may be" },
		{ "{json: t, as: {sigv4: {service: a, region: b}}}", "no token signs requests" },
		{ "{json: t, path: /}", "unknown key" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		char text[512];

		snprintf(text, sizeof(text), HEAD "    for: a.example\n    capture: %s\n" ALLOW, texts[i][0]);
		load_n(text, strlen(text));
		assert_null(policy);
		assert_non_null(strstr(found_join(), texts[i][1]));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_hosts),   cmocka_unit_test(test_all_of_it),
					    cmocka_unit_test(test_rules),   cmocka_unit_test(test_nobody),
					    cmocka_unit_test(test_capture), cmocka_unit_test(test_wrong_captures) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
