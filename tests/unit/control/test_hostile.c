/* SPDX-License-Identifier: MIT */
/* Clients that do not play by the rules. Whatever they do, the next one is served. */
#include "fixture.h"

#include <sys/resource.h>

#define HEAD "POST /v1/sessions HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"

static void garbage(void **state)
{
#define B(text) text, sizeof(text) - 1
	static const struct {
		const char *data;
		size_t len;
	} starts[] = {
		{ B("\0\0\0\0") },
		{ B("\x16\x03\x01\x02") },
		{ B("GET") },
		{ B("\r\n\r\n\r\n") },
		{ B("   ") },
		{ B("GET / HTTP/9.9\r\n\r\n") },
		{ B("GET /v1/health\r\n\r\n") },
		{ B("GET /v1/sessions/a/b\0c HTTP/1.1\r\n\r\n") },
		{ B("GET /v1/events?session=a/b\0c HTTP/1.1\r\n\r\n") },
		{ B("GET /v1/health HTTP/1.1\r\nX\0Y: \0\r\n\r\n") },
		{ B("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n") },
	};
	unsigned char noise[8192];
	unsigned seed = 1;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(starts); i++) {
		int fd = dial();

		send_some(fd, starts[i].data, starts[i].len);
		shutdown(fd, SHUT_WR);
		finish(fd);
	}
	for (unsigned round = 0; round < 200; round++) {
		int fd = dial();

		for (size_t i = 0; i < sizeof(noise); i++)
			noise[i] = (unsigned char)(rand_r(&seed) >> 7);
		send_some(fd, noise, sizeof(noise));
		shutdown(fd, SHUT_WR);
		finish(fd);
	}
	still_serves();
}

static void long_url_and_headers(void **state)
{
	static char text[200000];
	int fd;

	(void)state;
	memset(text, 'a', sizeof(text));
	memcpy(text, "GET /v1/", 8);
	fd = dial();
	send_some(fd, text, sizeof(text));
	assert_int_equal(finish(fd), 414);

	memcpy(text, "GET /v1/health HTTP/1.1\r\nX: ", 28);
	fd = dial();
	send_some(fd, text, sizeof(text));
	assert_int_equal(finish(fd), 431);

	fd = dial();
	send_text(fd, "GET /v1/health HTTP/1.1\r\n");
	for (unsigned i = 0; i < 20000; i++)
		if (send_some(fd, "a: b\r\n", 6) < 6)
			break;
	assert_int_equal(finish(fd), 431);
	still_serves();
}

static void bodies_too_large(void **state)
{
	static char body[10 << 20];
	int fd;

	(void)state;
	memset(body, ' ', sizeof(body));
	assert_int_equal(ask_n("POST", "/v1/sessions", body, sizeof(body)), 413);
	expect_error("too_large", "65536");
	/* The largest that is taken, and one byte more. */
	memcpy(body, "{\"session\":\"a/b\"}", 17);
	assert_int_equal(ask_n("POST", "/v1/sessions", body, NP_BODY_MAX), 201);
	assert_int_equal(ask_n("POST", "/v1/sessions", body, NP_BODY_MAX + 1), 413);

	/* The answer comes from the headers alone. */
	fd = dial();
	send_text(fd, HEAD "Content-Length: 10485760\r\n\r\n");
	assert_int_equal(finish(fd), 413);
	fd = dial();
	send_text(fd, HEAD "Expect: 100-continue\r\nContent-Length: 10485760\r\n\r\n");
	assert_int_equal(finish(fd), 413);
	fd = dial();
	send_text(fd, HEAD "Content-Length: 99999999999999999999999\r\n\r\n");
	assert_int_equal(finish(fd), 413);
	still_serves();
}

static void chunked_bodies(void **state)
{
	static char chunk[32768];
	unsigned sent;
	int fd;

	(void)state;
	fd = dial();
	send_text(fd, HEAD "Transfer-Encoding: chunked\r\n\r\n8\r\n{\"sessio\r\n9\r\nn\":\"a/b\"}\r\n0\r\n\r\n");
	assert_int_equal(finish(fd), 201);

	memset(chunk, ' ', sizeof(chunk));
	fd = dial();
	send_text(fd, HEAD "Transfer-Encoding: chunked\r\n\r\n");
	for (sent = 0; sent < 4; sent++) {
		send_text(fd, "8000\r\n");
		assert_int_equal(send_some(fd, chunk, sizeof(chunk)), sizeof(chunk));
		send_text(fd, "\r\n");
	}
	send_text(fd, "0\r\n\r\n");
	assert_int_equal(finish(fd), 413);
	expect_error("too_large", NULL);

	/* One that never ends is cut off. */
	fd = dial();
	send_text(fd, HEAD "Transfer-Encoding: chunked\r\n\r\n7fffffff\r\n");
	for (sent = 0; sent < 10000; sent++)
		if (send_some(fd, chunk, sizeof(chunk)) < sizeof(chunk))
			break;
	assert_true(sent < 10000);
	close(fd);
	still_serves();
}

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

static void pipelined(void **state)
{
	static const char one[] = "GET /v1/health HTTP/1.1\r\nHost: x\r\n\r\n";
	unsigned answers = 0;
	int fd = dial();

	(void)state;
	for (unsigned i = 0; i < 500; i++)
		send_text(fd, one);
	send_text(fd, "GET /v1/health HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
	finish(fd);
	for (const char *p = received; (p = strstr(p, "HTTP/1.1 200 OK")); p++)
		answers++;
	assert_int_equal(answers, 501);
}

/* More halves of requests than a process has room for: the oldest make room, and are told so. */
static void many_at_once(void **state)
{
	int fds[300];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(fds); i++) {
		fds[i] = dial();
		send_some(fds[i], "GET /v1/health HTTP/1.1\r\nHost: x\r\n", 34);
	}
	still_serves(); /* accepted behind them all, and in the place of one more */
	for (size_t i = 0; i < ARRAY_SIZE(fds); i++) {
		bool stays = i > ARRAY_SIZE(fds) - NP_CLIENTS_PER_PROCESS;

		send_some(fds[i], "Connection: close\r\n\r\n", 21);
		assert_int_equal(finish(fds[i]), stays ? 200 : 429);
		if (!stays)
			expect_error("too_many", "made room");
	}
}

/* Those who wait for an answer make room as well, when nobody else is there. */
static void crowd_of_readers(void **state)
{
	int fds[NP_CLIENTS_PER_PROCESS];

	(void)state;
	world.flood = 2000;
	still_serves();
	for (size_t i = 0; i < ARRAY_SIZE(fds); i++) {
		fds[i] = dial();
		send_text(fds[i], "GET /v1/events?limit=1000 HTTP/1.1\r\nHost: x\r\n\r\n");
	}
	assert_int_equal(ask("POST", "/v1/sessions", "{\"session\":\"a/b\"}"), 201);
	for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
		close(fds[i]);
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

static void long_client_address(void **state)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX }, server = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	(void)state;
	memset(addr.sun_path + 1, 'a', sizeof(addr.sun_path) - 1);
	assert_int_equal(bind(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	strcpy(server.sun_path, world.socket);
	assert_int_equal(connect(fd, (struct sockaddr *)&server, sizeof(server)), 0);
	send_text(fd, "GET /v1/health HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
	assert_int_equal(finish(fd), 200);
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

static void reader_of_nothing(void **state)
{
	int fd = dial();
	unsigned sent;

	(void)state;
	/* Asks and asks and never reads an answer. */
	for (sent = 0; sent < 100000; sent++)
		if (send(fd, "GET /v1/health HTTP/1.1\r\n\r\n", 27, MSG_NOSIGNAL | MSG_DONTWAIT) != 27)
			break;
	assert_true(sent < 100000);
	still_serves();
	close(fd);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, world_new, world_free)
	const struct CMUnitTest tests[] = {
		TEST(garbage),
		TEST(long_url_and_headers),
		TEST(bodies_too_large),
		TEST(chunked_bodies),
		TEST(chunk_header_without_end),
		TEST(lies_about_the_length),
		TEST(half_a_request_then_silence),
		TEST(trickle),
		TEST(pipelined),
		TEST(many_at_once),
		TEST(crowd_of_readers),
		TEST(silent_crowd),
		TEST(long_client_address),
		TEST(follower_that_never_reads),
		TEST(reader_of_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
