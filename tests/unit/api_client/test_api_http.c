/* SPDX-License-Identifier: MIT */
#include "api_client/api_http.c"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#include "server.h"
#include "vocab/limits.h"

static int call(struct client_answer *answer, const char *method, const char *body, const char *const *pieces)
{
	struct test_server server;
	int err;

	test_server_start(&server, pieces);
	err = client_call(server.path, method, "/v1/x?y=z", body, answer);
	test_server_stop(&server);
	return err;
}
#define PIECES(...) ((const char *const[]){ __VA_ARGS__, NULL })

static void answer_with_length(void **state)
{
	struct client_answer answer;

	(void)state;
	assert_int_equal(
		call(&answer, "GET", NULL, PIECES("HTTP/1.1 200 OK\r\ncontent-length: 7\r\n", "\r\n{\"a\"", ":1}")), 0);
	assert_int_equal(answer.status, 200);
	assert_string_equal(answer.body.data, "{\"a\":1}");
	client_answer_free(&answer);
}

static void answer_until_the_end(void **state)
{
	struct client_answer answer;

	(void)state;
	assert_int_equal(call(&answer, "GET", NULL, PIECES("HTTP/1.0 404 Not Found\r\n\r\n", "ab", "cd")), 0);
	assert_int_equal(answer.status, 404);
	assert_string_equal(answer.body.data, "abcd");
	client_answer_free(&answer);
	assert_int_equal(call(&answer, "GET", NULL, PIECES("HTTP/1.0 204 No Content\r\n\r\n")), 0);
	assert_string_equal(answer.body.data, "");
	client_answer_free(&answer);
}

static void request_as_sent(void **state)
{
	struct client_answer answer;

	(void)state;
	assert_int_equal(call(&answer, "POST", "{}", PIECES("HTTP/1.1 200 OK\r\n\r\n", "@")), 0);
	assert_string_equal(answer.body.data, "POST /v1/x?y=z HTTP/1.0\r\nHost: netpawl\r\n"
					      "Content-Type: application/json\r\nContent-Length: 2\r\n\r\n{}");
	client_answer_free(&answer);
	assert_int_equal(call(&answer, "GET", NULL, PIECES("HTTP/1.1 200 OK\r\n\r\n", "@")), 0);
	assert_string_equal(answer.body.data, "GET /v1/x?y=z HTTP/1.0\r\nHost: netpawl\r\n\r\n");
	client_answer_free(&answer);
}

static void broken_answers(void **state)
{
	struct client_answer answer;

	(void)state;
	assert_int_equal(call(&answer, "GET", NULL, PIECES("")), -ECONNRESET);
	assert_int_equal(call(&answer, "GET", NULL, PIECES("HTTP/1.1 200 OK\r\n")), -ECONNRESET);
	assert_int_equal(call(&answer, "GET", NULL, PIECES("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc")),
			 -ECONNRESET);
	assert_int_equal(call(&answer, "GET", NULL, PIECES("SSH-2.0-x\r\n\r\n")), -EPROTO);
	assert_int_equal(call(&answer, "GET", NULL, PIECES("HTTP/1.1 2x0 OK\r\n\r\n")), -EPROTO);
	assert_int_equal(call(&answer, "GET", NULL, PIECES("HTTP/1.1 200 OK\r\nContent-Length: 1x\r\n\r\na")), -EPROTO);
	assert_int_equal(
		call(&answer, "GET", NULL, PIECES("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n")),
		-EPROTO);
}

static void answers_are_bounded(void **state)
{
	struct client_answer answer;
	char *head = malloc(HEAD_MAX * 4), *body = malloc(NP_ANSWER_BYTES + 2);

	(void)state;
	memset(head, 'a', HEAD_MAX * 4);
	head[HEAD_MAX * 4 - 1] = '\0';
	memset(body, 'b', NP_ANSWER_BYTES + 1);
	body[NP_ANSWER_BYTES + 1] = '\0';
	assert_int_equal(call(&answer, "GET", NULL, PIECES("HTTP/1.1 200 OK\r\nX: ", head)), -EPROTO);
	assert_int_equal(call(&answer, "GET", NULL, PIECES("HTTP/1.1 200 OK\r\n\r\n", body)), -E2BIG);
	free(head);
	free(body);
}

static void nobody_there(void **state)
{
	struct client_answer answer;
	struct test_server server;
	char path[200];

	(void)state;
	assert_int_equal(client_call("/tmp/np-no-such-dir/s", "GET", "/", NULL, &answer), -ENOENT);
	memset(path, 'x', sizeof(path));
	path[sizeof(path) - 1] = '\0';
	assert_int_equal(client_call(path, "GET", "/", NULL, &answer), -ENAMETOOLONG);
	/* The file of a daemon that is gone. */
	test_server_start(&server, PIECES("HTTP/1.0 200 OK\r\n\r\n"));
	assert_int_equal(client_call(server.path, "GET", "/", NULL, &answer), 0);
	client_answer_free(&answer);
	waitpid(server.pid, NULL, 0);
	assert_int_equal(client_call(server.path, "GET", "/", NULL, &answer), -ECONNREFUSED);
	test_server_stop(&server);
}

struct lines {
	char text[256];
	int stop_at, count;
};

static int line_add(void *data, char *line)
{
	struct lines *lines = data;

	strcat(strcat(lines->text, line), "|");
	return ++lines->count == lines->stop_at ? 7 : 0;
}

static int stream(struct lines *lines, struct client_answer *answer, const char *const *pieces)
{
	struct test_server server;
	int err;

	test_server_start(&server, pieces);
	err = client_stream(server.path, "/v1/events", line_add, lines, answer);
	test_server_stop(&server);
	return err;
}

static void stream_gives_lines(void **state)
{
	struct lines lines = { 0 };
	struct client_answer answer = { 0 };

	(void)state;
	assert_int_equal(stream(&lines, &answer, PIECES("HTTP/1.1 200 OK\r\n\r\none\ntw", "o\n\n\nth", "ree\n", "\n")),
			 0);
	assert_string_equal(lines.text, "one|two|three|");
	assert_int_equal(answer.status, 200);
	lines = (struct lines){ 0 };
	assert_int_equal(stream(&lines, &answer, PIECES("HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\none\n", "two\n")),
			 0);
	assert_string_equal(lines.text, "one|two|");
}

static void stream_ends_early(void **state)
{
	struct lines lines = { .stop_at = 2 };
	struct client_answer answer = { 0 };

	(void)state;
	assert_int_equal(stream(&lines, &answer, PIECES("HTTP/1.1 200 OK\r\n\r\na\nb\nc\n")), 7);
	assert_string_equal(lines.text, "a|b|");
	lines = (struct lines){ 0 };
	assert_int_equal(stream(&lines, &answer, PIECES("HTTP/1.1 200 OK\r\n\r\na\nhal")), -ECONNRESET);
	assert_string_equal(lines.text, "a|");
	lines = (struct lines){ 0 };
	assert_int_equal(stream(&lines, &answer, PIECES("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\na\n")),
			 -ECONNRESET);
}

static void stream_refused(void **state)
{
	struct lines lines = { 0 };
	struct client_answer answer = { 0 };

	(void)state;
	assert_int_equal(stream(&lines, &answer, PIECES("HTTP/1.1 400 Bad\r\nContent-Length: 2\r\n\r\n{}")), 0);
	assert_int_equal(answer.status, 400);
	assert_string_equal(answer.body.data, "{}");
	assert_int_equal(lines.count, 0);
	client_answer_free(&answer);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(answer_with_length),  cmocka_unit_test(answer_until_the_end),
		cmocka_unit_test(request_as_sent),     cmocka_unit_test(broken_answers),
		cmocka_unit_test(answers_are_bounded), cmocka_unit_test(nobody_there),
		cmocka_unit_test(stream_gives_lines),  cmocka_unit_test(stream_ends_early),
		cmocka_unit_test(stream_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
