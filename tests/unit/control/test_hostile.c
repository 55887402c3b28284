/* SPDX-License-Identifier: MIT */
/* Clients that do not play by the rules. Whatever they do, the next one is served. */
#include "fixture.h"
#include "vocab/limits.h"

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

static void pipelined(void **state)
{
	static const char one[] = "GET /v1/health HTTP/1.1\r\nHost: x\r\n\r\n",
			  last[] = "GET /v1/health HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
	_buf_ struct buf all = BUF_INIT(64u << 10);
	unsigned answers = 0;
	int fd = dial();

	(void)state;
	for (unsigned i = 0; i < 500; i++)
		buf_append(&all, one, strlen(one));
	buf_append(&all, last, strlen(last));
	/* At once: a client that stops in the middle, for want of a CPU, is one that the server may give up. */
	assert_int_equal(send_some(fd, all.data, all.len), all.len);
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
		TEST(garbage),		 TEST(long_url_and_headers), TEST(bodies_too_large), TEST(chunked_bodies),
		TEST(pipelined),	 TEST(many_at_once),	     TEST(crowd_of_readers), TEST(long_client_address),
		TEST(reader_of_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
