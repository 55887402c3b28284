/* SPDX-License-Identifier: MIT */
#include "api_client/api.c"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#include "capture.h"
#include "cli/output.h"
#include "server.h"

static void print(const json_t *answer)
{
	printf("level %s\n", member_text(answer, "level"));
}

/* One call against a daemon that answers with `answer`; what was printed goes to out and err. */
static int show(bool json, const char *answer, struct capture *out, struct capture *err)
{
	struct test_server server;
	struct cli cli = { .json = json };
	int code;

	test_server_start(&server, (const char *const[]){ answer, NULL });
	cli.socket = server.path;
	capture_begin(out, stdout);
	capture_begin(err, stderr);
	code = api_show(&cli, "alice/demo", "POST", "/v1/x", json_pack("{s:s}", "level", "SECRET"), print);
	capture_end(err);
	capture_end(out);
	test_server_stop(&server);
	return code;
}

static void success(void **state)
{
	struct capture out, err;

	(void)state;
	assert_int_equal(show(false, "HTTP/1.1 200 OK\r\n\r\n{\"level\":\"SECRET\"}", &out, &err), CLI_OK);
	assert_string_equal(out.text, "level SECRET\n");
	assert_string_equal(err.text, "");
	assert_int_equal(show(true, "HTTP/1.1 201 Created\r\n\r\n{ \"level\" :\"SECRET\"}", &out, &err), CLI_OK);
	assert_string_equal(out.text, "{ \"level\" :\"SECRET\"}\n");
}

static void refusal(void **state)
{
	static const char *const answer = "HTTP/1.1 400 Bad\r\n\r\n{\"error\":\"bad_level\",\"message\":\"no \\u001b "
					  "level\",\"detail\":\"it says X\"}";
	struct capture out, err;

	(void)state;
	assert_int_equal(show(false, answer, &out, &err), CLI_REFUSED);
	assert_string_equal(err.text, "netpawl: alice/demo: no ? level (bad_level): it says X\n");
	assert_string_equal(out.text, "");
	assert_int_equal(show(true, answer, &out, &err), CLI_REFUSED);
	assert_non_null(strstr(out.text, "\"error\":\"bad_level\""));
	assert_int_equal(show(false, "HTTP/1.1 500 Oops\r\n\r\n<html>", &out, &err), CLI_REFUSED);
	assert_non_null(strstr(err.text, "HTTP 500"));
	assert_int_equal(show(false, "HTTP/1.1 200 OK\r\n\r\n[1]", &out, &err), CLI_REFUSED);
	assert_non_null(strstr(err.text, "not a JSON object"));
}

static void no_daemon(void **state)
{
	struct cli cli = { .socket = "/tmp/np-no-such-dir/s" };
	struct api_answer answer;
	struct capture err;
	int code;

	(void)state;
	capture_begin(&err, stderr);
	code = api_call(cli.socket, NULL, "GET", "/v1/health", NULL, &answer);
	static const char said[] = "netpawl: netpawld does not answer on its control socket (no_daemon): "
				   "/tmp/np-no-such-dir/s: No such file or directory\nnetpawl: start it";

	assert_memory_equal(capture_end(&err), said, strlen(said));
	assert_int_equal(code, CLI_NO_DAEMON);
	capture_begin(&err, stderr);
	code = api_unreachable(cli.socket, "x", -EACCES);
	const char *refused = capture_end(&err);

	assert_non_null(strstr(refused, "netpawl: x: that needs root (not_permitted)"));
	assert_non_null(strstr(refused, "or a role (access: in the policy)"));
	assert_int_equal(code, CLI_REFUSED);
}

static void paths(void **state)
{
	static const char *const wrong[] = { "", "alice", "/x", "x/", "a/b/c", "/" };
	struct capture err;
	char *path = api_session_path("alice/demo", "/datasets");

	(void)state;
	assert_string_equal(path, "/v1/sessions/alice/demo/datasets");
	free(path);
	path = api_session_path("a b/c?d%\r\n", "");
	assert_string_equal(path, "/v1/sessions/a%20b/c%3Fd%25%0D%0A");
	free(path);
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		capture_begin(&err, stderr);
		path = api_session_path(wrong[i], "");
		assert_non_null(strstr(capture_end(&err), "(bad_name)"));
		assert_null(path);
	}
}

static void text_that_is_not_utf8(void **state)
{
	struct capture err;
	json_t *body = NULL;
	int code;

	(void)state;
	capture_begin(&err, stderr);
	code = api_body("a/b", json_pack("{s:s}", "dataset", "\xff"), &body);
	assert_non_null(strstr(capture_end(&err), "(bad_field)"));
	assert_int_equal(code, CLI_REFUSED);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(success),
		cmocka_unit_test(refusal),
		cmocka_unit_test(no_daemon),
		cmocka_unit_test(paths),
		cmocka_unit_test(text_that_is_not_utf8),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
