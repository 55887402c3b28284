/* SPDX-License-Identifier: MIT */
/* netpawl policy show and reload, against a daemon that says what the test wants; and the list of commands. */
#include "cli/policy_daemon.c"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#include "../api_client/capture.h"
#include "../api_client/server.h"

struct seen {
	int code;
	struct capture out, err;
};

/* One command against a daemon that answers with `answer`, or against none. */
static void call(struct seen *seen, const char *answer, const char *const *words)
{
	struct test_server server;
	struct cli cli = { .socket = "/nonexistent/control.sock" };
	char *argv[8] = { (char *)"policy" };
	int argc = 1;

	while (*words)
		argv[argc++] = (char *)*words++;
	if (answer) {
		test_server_start(&server, (const char *const[]){ answer, NULL });
		cli.socket = server.path;
	}
	capture_begin(&seen->out, stdout);
	capture_begin(&seen->err, stderr);
	seen->code = command_policy(&cli, argc, argv);
	capture_end(&seen->err);
	capture_end(&seen->out);
	if (answer)
		test_server_stop(&server);
}
#define CALL(seen, answer, ...) call(seen, answer, (const char *const[]){ __VA_ARGS__, NULL })

static void assert_has(const char *text, const char *part)
{
	if (!strstr(text, part))
		fail_msg("\"%s\" is not in:\n%s", part, text);
}

#define OK_ "HTTP/1.1 200 OK\r\n\r\n"

static void show(void **state)
{
	static const char answer[] =
		OK_ "{\"file\":\"/etc/"
		    "p\\u001b[2J.yaml\",\"hash\":\"0123456789abcdef\",\"loaded\":\"2026-01-01T00:00:00.000000Z\","
		    "\"who\":\"root\",\"rules\":2,\"levels\":{\"PUBLIC\":\"FULL\",\"SECRET\":\"NONE\"},\"default\":"
		    "\"deny\","
		    "\"inspect_ports\":[80,443],\"host_loopback\":[],\"warnings\":[\"p.yaml:3:1: warning: never\"],"
		    "\"listing\":[{\"rule\":\"p.yaml:12\",\"text\":\"allow: @llm\",\"conditions\":\"methods: GET\"}],"
		    "\"full\":[{\"rule\":\"p.yaml:30\",\"text\":\"deny: 10.0.0.0/8\"}],\"truncated\":true}";
	struct seen seen;

	(void)state;
	CALL(&seen, answer, "show");
	assert_int_equal(seen.code, CLI_OK);
	assert_has(seen.out.text, "/etc/p?[2J.yaml");
	assert_null(strchr(seen.out.text, '\033'));
	assert_has(seen.out.text, "0123456789abcdef");
	assert_has(seen.out.text, "SECRET         NONE\n");
	assert_has(seen.out.text, "inspect_ports  80, 443\n");
	assert_has(seen.out.text, "host_loopback  none\n");
	assert_has(seen.out.text, "p.yaml:3:1: warning: never\n");
	assert_has(seen.out.text, "p.yaml:12  allow: @llm  methods: GET\n");
	assert_has(seen.out.text, "p.yaml:30  deny: 10.0.0.0/8  -\n");
	assert_has(seen.out.text, "more rules than are listed");
	CALL(&seen, answer, "--json", "show");
	assert_int_equal(seen.code, CLI_OK);
	assert_string_equal(seen.out.text[0] == '{' ? "{" : seen.out.text, "{");
	/* Whatever is missing or of another type, nothing breaks. */
	CALL(&seen, OK_ "{\"levels\":[],\"listing\":[1,{\"rule\":5}],\"warnings\":[null],\"inspect_ports\":[[]]}",
	     "show");
	assert_int_equal(seen.code, CLI_OK);
}

static void reload(void **state)
{
	struct seen seen;

	(void)state;
	CALL(&seen,
	     OK_ "{\"hash\":\"3f2a00112233445566\",\"previous\":\"aa\",\"changed\":true,\"rules\":12,\"cut\":2,"
		 "\"raised\":1,"
		 "\"warnings\":[\"p.yaml:3:1: warning: never\"]}",
	     "reload");
	assert_int_equal(seen.code, CLI_OK);
	assert_string_equal(seen.out.text,
			    "policy 3f2a00112233… is live: 12 rules, 2 connections cut, 1 session raised\n");
	assert_string_equal(seen.err.text, "p.yaml:3:1: warning: never\n");
	CALL(&seen, OK_ "{\"hash\":\"3f2a\",\"changed\":false,\"rules\":1,\"cut\":0,\"raised\":0}", "reload");
	assert_string_equal(seen.out.text,
			    "policy 3f2a is live, as before: 1 rule, 0 connections cut, 0 sessions raised\n");
}

static void reload_posts_an_object(void **state)
{
	struct test_server server;
	struct cli cli = { 0 };
	char *argv[] = { (char *)"policy", (char *)"reload" };
	struct capture out, err;

	(void)state;
	/* The request comes back as the text of an error. */
	test_server_start(&server, (const char *const[]){ "HTTP/1.1 200 OK\r\n\r\n", "@", NULL });
	cli.socket = server.path;
	cli.json = true;
	capture_begin(&out, stdout);
	capture_begin(&err, stderr);
	command_policy(&cli, 2, argv);
	capture_end(&err);
	capture_end(&out);
	test_server_stop(&server);
	assert_has(out.text, "POST /v1/policy/reload HTTP/");
	assert_has(out.text, "\r\n\r\n{}");
}

static void refusals(void **state)
{
	struct seen seen;

	(void)state;
	CALL(&seen,
	     "HTTP/1.1 422 No\r\n\r\n{\"error\":\"bad_policy\",\"message\":\"the policy has errors\","
	     "\"detail\":\"p.yaml:3:5: error: no\"}",
	     "reload");
	assert_int_equal(seen.code, CLI_REFUSED);
	assert_string_equal(seen.err.text, "netpawl: the policy has errors (bad_policy): p.yaml:3:5: error: no\n");
	assert_string_equal(seen.out.text, "");
	CALL(&seen, NULL, "show");
	assert_int_equal(seen.code, CLI_NO_DAEMON);
	CALL(&seen, NULL, "reload");
	assert_int_equal(seen.code, CLI_NO_DAEMON);
}

static void usage(void **state)
{
	static const char *const names[] = { "check", "test", "explain", "show", "reload" };
	struct seen seen;

	(void)state;
	CALL(&seen, NULL, "nonsense");
	assert_int_equal(seen.code, CLI_USAGE);
	assert_string_equal(seen.err.text,
			    "netpawl: policy: there is no command 'nonsense'; see netpawl policy --help\n");
	CALL(&seen, NULL, "show", "stray");
	assert_int_equal(seen.code, CLI_USAGE);
	assert_has(seen.err.text, "see netpawl policy show --help");
	CALL(&seen, NULL, "--help");
	assert_int_equal(seen.code, CLI_OK);
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		struct seen one;

		assert_has(seen.out.text, names[i]);
		CALL(&one, NULL, names[i], "--help");
		assert_int_equal(one.code, CLI_OK);
		assert_has(one.out.text, "Example");
		assert_has(one.out.text, "--json");
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(show),	    cmocka_unit_test(reload), cmocka_unit_test(reload_posts_an_object),
		cmocka_unit_test(refusals), cmocka_unit_test(usage),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
