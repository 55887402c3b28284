/* SPDX-License-Identifier: MIT */
#include "http/connect.c"

#include <setjmp.h>
#include <stdio.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

static struct connect *fresh(void)
{
	struct connect *connect = NULL;

	if (connect_new(&connect) < 0)
		abort();
	return connect;
}

static struct connect *asked(void)
{
	char out[CONNECT_REQUEST_SIZE];
	struct connect *connect = fresh();

	assert_true(connect_write(connect, "a.example:443", NULL, out) > 0);
	return connect;
}

static void test_the_request(void **state)
{
	char out[CONNECT_REQUEST_SIZE], long_one[NP_PROXY_LOGIN_SIZE + 1], longest[260];
	static const char plain[] = "CONNECT [2001:db8::1]:22 HTTP/1.1\r\nHost: [2001:db8::1]:22\r\n\r\n";
	static const char with[] = "CONNECT a.example:443 HTTP/1.1\r\nHost: a.example:443\r\n"
				   "proxy-authorization: Basic dXNlcjpwYTpzcw==\r\n\r\n";
	struct connect *connect = fresh();

	(void)state;
	assert_int_equal(connect_write(connect, "[2001:db8::1]:22", NULL, out), strlen(plain));
	assert_memory_equal(out, plain, strlen(plain));
	assert_true(connect_write(connect, "once.more:1", NULL, out) < 0);
	connect_free(connect);

	connect = fresh();
	assert_int_equal(connect_write(connect, "a.example:443", "user:pa:ss", out), strlen(with));
	assert_memory_equal(out, with, strlen(with));
	connect_free(connect);

	/* The longest of both fit. */
	memset(long_one, 'x', sizeof(long_one));
	long_one[NP_PROXY_LOGIN_SIZE] = '\0';
	memset(longest, 'n', sizeof(longest));
	memcpy(longest + 253, ":65535", 7);
	connect = fresh();
	assert_int_equal(connect_write(connect, longest, long_one, out), -E2BIG);
	long_one[NP_PROXY_LOGIN_SIZE - 1] = '\0';
	assert_true(connect_write(connect, longest, long_one, out) > 0);
	connect_free(connect);

	connect = fresh();
	assert_true(connect_write(connect, "a b:1\r\nX: y", NULL, out) < 0);
	connect_free(connect);
}

/* Not a byte behind the answer is taken, however it comes. */
static void test_an_open_tunnel(void **state)
{
	static const char *const heads[] = {
		"HTTP/1.1 200 Connection established\r\n\r\n",		 "HTTP/1.0 200 OK\r\nVia: x\r\n\r\n",
		"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n\r\n",	 "HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\n",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "HTTP/1.1 204 No\r\n\r\n",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(heads) / sizeof(heads[0]); i++)
		for (size_t step = 1; step <= 256; step *= 16) {
			struct connect *connect = asked();
			char text[256];
			size_t len = (size_t)snprintf(text, sizeof(text), "%s220 banner", heads[i]), at = 0;

			while (!connect_status(connect)) {
				size_t n = len - at < step ? len - at : step;
				ssize_t used = connect_read(connect, text + at, n);

				assert_true(used > 0);
				at += (size_t)used;
			}
			assert_true(connect_is_open(connect));
			assert_int_equal(at, strlen(heads[i]));
			connect_free(connect);
		}
}

static void test_no_tunnel(void **state)
{
	static const struct {
		const char *text;
		unsigned status; /* 0: it is not understood */
	} cases[] = {
		{ "HTTP/1.1 407 No\r\nContent-Length: 4\r\n\r\nbody", 407 },
		{ "HTTP/1.1 502 No\r\n\r\n<html>", 502 },
		{ "HTTP/1.1 503 No\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n0\r\n\r\n", 503 },
		{ "HTTP/1.1 301 No\r\nLocation: x\r\n\r\n", 301 },
		{ "HTTP/1.1 101 Switching\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n", 0 },
		{ "HTTP/2 200\r\n\r\n", 0 },
		{ "HTTP/1.1 2000 OK\r\n\r\n", 0 },
		{ "\r\nHTTP/1.1 200 OK\r\n\r\n", 0 },
		{ "HTTP/1.1 200 OK\r\nA b: c\r\n\r\n", 0 },
		{ "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", 0 },
		{ "SSH-2.0-x\r\n\r\n", 0 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct connect *connect = asked();
		ssize_t n = connect_read(connect, cases[i].text, strlen(cases[i].text));

		assert_false(connect_is_open(connect));
		assert_int_equal(connect_status(connect), cases[i].status);
		assert_true(cases[i].status ? n > 0 : n == -EPROTO);
		assert_true(cases[i].status || *connect_problem(connect));
		connect_free(connect);
	}
}

static void test_bounds(void **state)
{
	static const char interim[] = "HTTP/1.1 103 Early Hints\r\nlink: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\r\n\r\n";
	struct connect *connect = asked();
	char line[1024];
	ssize_t n;

	(void)state;
	memset(line, 'a', sizeof(line));
	memcpy(line, "x: ", 3);
	memcpy(line + sizeof(line) - 2, "\r\n", 2);
	n = connect_read(connect, "HTTP/1.1 200 OK\r\n", 17);
	for (int i = 0; i < 64 && n > 0; i++)
		n = connect_read(connect, line, sizeof(line));
	assert_int_equal(n, -E2BIG);
	assert_true(!connect_status(connect) && !connect_is_open(connect) && *connect_problem(connect));
	connect_free(connect);

	connect = asked();
	do
		n = connect_read(connect, interim, strlen(interim));
	while (n > 0);
	assert_true(n == -EPROTO || n == -E2BIG);
	connect_free(connect);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_request),
		cmocka_unit_test(test_an_open_tunnel),
		cmocka_unit_test(test_no_tunnel),
		cmocka_unit_test(test_bounds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
