/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "exporter/post_answer.c"

static int answer_of(const char *text, struct post_answer *ret)
{
	return post_answer_read(text, strlen(text), ret);
}

static void test_answers(void **state)
{
	static const struct {
		const char *text;
		int r;
		unsigned status, retry_after_ms;
	} cases[] = {
		{ "HTTP/1.1 200 OK\r\n\r\n", 1, 200, 0 },
		{ "HTTP/1.0 204\r\n\r\n", 1, 204, 0 },
		{ "HTTP/1.1 503 No\r\nRetry-After: 7\r\n\r\nx", 1, 503, 7000 },
		{ "HTTP/1.1 429 No\nretry-after:\t 12 \n\n", 1, 429, 12000 },
		{ "HTTP/1.1 503 No\r\nRetry-After: Fri, 31 Dec 1999 23:59:59 GMT\r\n\r\n", 1, 503, 0 },
		{ "HTTP/1.1 503 No\r\nRetry-After: -1\r\n\r\n", 1, 503, 0 },
		{ "HTTP/1.1 503 No\r\nRetry-After: 99999999999999999999\r\n\r\n", 1, 503, 0 },
		{ "HTTP/1.1 100 Continue\r\nRetry-After: 3\r\n\r\nHTTP/1.1 200 OK\r\n\r\n", 1, 200, 0 },
		{ "HTTP/1.1 200 OK\r\nX: y\r\n", 0, 0, 0 },
		{ "HTTP/1.1 20", 0, 0, 0 },
		{ "", 0, 0, 0 },
		{ "HTTP/2 200\r\n\r\n", -EPROTO, 0, 0 },
		{ "HTTP/1.1 2000 OK\r\n\r\n", -EPROTO, 0, 0 },
		{ "HTTP/1.1 099 OK\r\n\r\n", -EPROTO, 0, 0 },
		{ "HTTP/1.1 20x OK\r\n\r\n", -EPROTO, 0, 0 },
		{ "SSH-2.0-OpenSSH\r\n", -EPROTO, 0, 0 },
		{ "\r\n", -EPROTO, 0, 0 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct post_answer answer = { 0 };

		assert_int_equal(answer_of(cases[i].text, &answer), cases[i].r);
		assert_int_equal(answer.status, cases[i].status);
		assert_int_equal(answer.retry_after_ms, cases[i].retry_after_ms);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_answers) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
