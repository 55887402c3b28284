/* SPDX-License-Identifier: MIT */
/* Clients that take their time, or never come to an end. Whatever they do, the next one is served. A file of its own because
 * it waits for their time to be over. */
#include "fixture.h"
#include "vocab/limits.h"

#define HEAD "POST /v1/sessions HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"

/* MHD waits for the end of the chunk's header with a full buffer, and calls that work to do. It must not become ours. */
static void chunk_header_without_end(void **state)
{
	static char text[100000];
	int fd = dial();

	(void)state;
	memset(text, 'a', sizeof(text));
	text[0] = '1';
	text[1] = ';';
	send_text(fd, HEAD "Transfer-Encoding: chunked\r\n\r\n");
	send_some(fd, text, sizeof(text));
	still_serves(); /* while the server waits for the end of that header */
	finish(fd);
	still_serves();
}

static void lies_about_the_length(void **state)
{
	static const char *const lengths[] = { "-1", "0x10", "1 1", "", "17, 17", "+17" };
	char text[256];
	int fd;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(lengths); i++) {
		fd = dial();
		snprintf(text, sizeof(text), HEAD "Content-Length: %s\r\n\r\n{\"session\":\"a/b\"}", lengths[i]);
		send_text(fd, text);
		assert_int_not_equal(finish(fd), 201);
	}
	/* Shorter than what is sent: the rest is not part of the body. */
	fd = dial();
	send_text(fd, HEAD "Content-Length: 5\r\n\r\n{\"session\":\"a/b\"}");
	assert_int_equal(finish(fd), 400);
	expect_error("bad_json", NULL);
	/* Longer, and then gone: nothing was asked. */
	fd = dial();
	send_text(fd, HEAD "Content-Length: 500\r\n\r\n{\"session\":\"a/b\"}");
	shutdown(fd, SHUT_WR);
	assert_int_not_equal(finish(fd), 201);
	assert_int_equal(ask("GET", "/v1/sessions", NULL), 200);
	assert_string_equal(body_of(received), "{\"sessions\":[]}");
}

static void half_a_request_then_silence(void **state)
{
	static const char *const halves[] = { "", "GET /v1/he", "GET /v1/health HTTP/1.1\r\nHost: x\r\n",
					      HEAD "Content-Length: 17\r\n\r\n{\"session\"" };
	int fds[ARRAY_SIZE(halves)];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(halves); i++) {
		fds[i] = dial();
		send_text(fds[i], halves[i]);
	}
	still_serves();
	for (size_t i = 0; i < ARRAY_SIZE(halves); i++)
		assert_int_equal(finish(fds[i]), -1);
}

/* Never silent for long, never done. */
static void trickle(void **state)
{
	int fd = dial();
	unsigned sent = 0;

	(void)state;
	send_text(fd, "GET /v1/health HTTP/1.1\r\nX: ");
	while (sent < 200 && send_some(fd, "a", 1) == 1) {
		usleep(100000);
		sent++;
	}
	close(fd);
	assert_true(sent < 200);
	still_serves();
}

/* Room that silent ones take comes back. */
static void silent_crowd(void **state)
{
	int fds[NP_CLIENTS_MAX];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
		fds[i] = dial();
	still_serves();
	for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
		close(fds[i]);
}

/* Its feed is bounded; what did not fit is counted and said. It is neither dropped nor does it hold up others. */
static void follower_that_never_reads(void **state)
{
	int fd = dial();

	(void)state;
	send_text(fd, "GET /v1/events?follow=1 HTTP/1.1\r\nHost: x\r\n\r\n");
	assert_true(receive_until(fd, "\r\n\r\n"));
	for (unsigned i = 0; i < 10; i++) {
		world.flood = 5000;
		still_serves();
	}
	sleep(NP_CLIENT_TIMEOUT_S + NP_REQUEST_S);
	/* 50000 events are many MiB. This is the feed, a buffer of MHD's and what the socket holds. */
	assert_true(receive_until(fd, "\"reason\":\"lost\""));
	assert_true(received_len < (1 << 20));
	/* It may go on skipping until it was read to its end, which is when there is time for a heartbeat. */
	assert_true(receive_until(fd, "\r\n1\r\n\n\r\n"));
	assert_int_equal(ask("POST", "/v1/sessions", "{\"session\":\"after/all\"}"), 201);
	assert_true(receive_until(fd, "after/all"));
	close(fd);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, world_new, world_free)
	const struct CMUnitTest tests[] = {
		TEST(chunk_header_without_end),
		TEST(lies_about_the_length),
		TEST(half_a_request_then_silence),
		TEST(trickle),
		TEST(silent_crowd),
		TEST(follower_that_never_reads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
