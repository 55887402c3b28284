/* SPDX-License-Identifier: MIT */
#include "launch/run_perform.c"

#include <setjmp.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <cmocka.h>

#include "../api_client/capture.h"
#include "../api_client/server.h"
#include "cli/cli.h"
#include "vocab/limits.h"

static void names_that_fit(void **state)
{
	char longest[NP_NAME_MAX + 2];

	(void)state;
	memset(longest, 'a', sizeof(longest));
	longest[NP_NAME_MAX] = '\0';
	assert_true(name_is_fit(longest));
	longest[NP_NAME_MAX] = 'a';
	longest[NP_NAME_MAX + 1] = '\0';
	assert_false(name_is_fit(longest));
	assert_true(name_is_fit("alice.b_c-2"));
	assert_false(name_is_fit(NULL));
	assert_false(name_is_fit(""));
	assert_false(name_is_fit("-x"));
	assert_false(name_is_fit(".."));
	assert_false(name_is_fit("a/b"));
	assert_false(name_is_fit("a b"));
}

static void a_fresh_session(void **state)
{
	struct run one = { 0 }, two = { 0 };
	char prefix[64];

	(void)state;
	setenv("USER", "alice", 1);
	session_name_make(&one);
	session_name_make(&two);
	snprintf(prefix, sizeof(prefix), "alice/%s-%d-", geteuid() ? "run" : "temporary", getpid());
	assert_int_equal(strncmp(one.session, prefix, strlen(prefix)), 0);
	assert_string_not_equal(one.session, two.session);
	setenv("USER", "../x", 1);
	session_name_make(&one);
	assert_null(strstr(one.session, ".."));
}

static void another_network_namespace(void **state)
{
	char answer[256], *argv[] = { (char *)"run", (char *)"true", NULL };
	static struct run run;
	struct cli cli = { 0 };
	struct test_server server;
	struct capture err;
	struct stat st;
	int code;

	(void)state;
	if (geteuid() != 0)
		skip();
	assert_int_equal(stat("/proc/self/ns/net", &st), 0);
	snprintf(answer, sizeof(answer),
		 "HTTP/1.1 201 "
		 "Created\r\n\r\n{\"sandbox\":\"x\",\"cgroup\":\"/x\",\"uid\":5,\"launch\":{\"netns\":\"%llu\"}}",
		 (unsigned long long)st.st_ino + 1);
	test_server_start(&server, (const char *const[]){ answer, NULL }); /* it hears nothing of their removal */
	cli.socket = server.path;
	capture_begin(&err, stderr);
	code = command_run(&cli, 2, argv);
	capture_end(&err);
	test_server_stop(&server);
	assert_int_equal(code, LAUNCH_FAILED);
	if (!strstr(err.text, "(foreign_netns)"))
		fail_msg("%s", err.text);
	/* The same namespace passes this check. */
	snprintf(answer, sizeof(answer), "HTTP/1.1 200 OK\r\n\r\n{\"netns\":\"%llu\"}", (unsigned long long)st.st_ino);
	test_server_start(&server, (const char *const[]){ answer, NULL });
	cli.socket = server.path;
	run.socket = cli.socket;
	code = run_facts_get(&run);
	test_server_stop(&server);
	run_free(&run);
	assert_int_equal(code, CLI_OK);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_that_fit),
		cmocka_unit_test(a_fresh_session),
		cmocka_unit_test(another_network_namespace),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
