/* SPDX-License-Identifier: MIT */
/* Peers that flood, and peers that do not speak HTTP/2: the connection ends, with words for it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants the four above first */
#include <cmocka.h>

#include "http/h2_session.c"

#include "h2_raw.h"
#include "vocab/limits.h"

static struct raw r;

typedef void say_fn(uint32_t n);

static void say_ping(uint32_t n)
{
	(void)n;
	raw_frame(&r, PING, 0, 0, "12345678", 8);
}

static void say_ping_ack(uint32_t n)
{
	(void)n;
	raw_frame(&r, PING, ACK, 0, "12345678", 8);
}

static void say_settings(uint32_t n)
{
	(void)n;
	raw_frame(&r, SETTINGS, 0, 0, "\0\4\0\0\xff\xff", 6); /* initial window size */
}

static void say_priority(uint32_t n)
{
	(void)n;
	raw_frame(&r, PRIORITY, 0, 2 * n + 1, "\0\0\0\0\x10", 5);
}

static void say_window_update(uint32_t n)
{
	(void)n;
	raw_number(&r, WINDOW_UPDATE, 0, 1);
}

static void say_unknown(uint32_t n)
{
	raw_frame(&r, 0x0a + n % 0xf0, 0, 0, "x", 1);
}

/* On a request that was opened before. */
static void say_empty_data(uint32_t n)
{
	(void)n;
	raw_frame(&r, DATA, 0, 1, NULL, 0);
}

static void say_padding(uint32_t n)
{
	(void)n;
	raw_frame(&r, DATA, PADDED, 1, "\3\0\0\0", 4);
}

static void say_reset(uint32_t n)
{
	raw_head(&r, 2 * n + 3, END_STREAM, GET);
	raw_number(&r, RST_STREAM, 2 * n + 3, H2_CANCEL);
}

/* The one by which we are made to reset: a window of more than 2^31. */
static void say_overflow(uint32_t n)
{
	raw_head(&r, 2 * n + 3, END_STREAM, GET);
	raw_number(&r, WINDOW_UPDATE, 2 * n + 3, 0x7fffffff);
}

static void say_malformed(uint32_t n)
{
	raw_head(&r, 2 * n + 3, END_STREAM, HEAD(":method", "GET"));
}

static void say_refused_head(uint32_t n)
{
	raw_head(&r, 2 * n + 3, END_STREAM,
		 HEAD(":method", "GET", ":scheme", "https", ":authority", "a", ":path", "/#"));
}

static void say_odd_length(uint32_t n)
{
	raw_head(&r, 2 * n + 3, 0,
		 HEAD(":method", "PUT", ":scheme", "https", ":authority", "a", ":path", "/", "content-length", "1"));
	raw_frame(&r, DATA, END_STREAM, 2 * n + 3, "12", 2);
}

/* How many it takes until the connection breaks; batch go in one piece. */
static uint32_t flood(say_fn *say, uint32_t batch, uint32_t max)
{
	uint32_t n = 0;
	int e = 0;

	raw_start(&r, H2_SERVER);
	raw_head(&r, 1, 0, GET);
	assert_int_equal(raw_say(&r), 0);
	while (!e && n < max) {
		for (uint32_t i = 0; i < batch; i++)
			say(n++);
		e = raw_say(&r);
	}
	assert_int_equal(e, -EPROTO);
	assert_non_null(strstr(h2_problem(r.h2), "flood"));
	/* It stays broken, and says nothing new. */
	assert_int_equal(raw_say(&r), -EPROTO);
	raw_stop(&r);
	assert_int_equal(r.closed, r.heads);
	return n;
}

static void test_floods(void **state)
{
	static say_fn *const frames[] = { say_ping,    say_ping_ack,   say_priority, say_window_update,
					  say_unknown, say_empty_data, say_padding };
	static say_fn *const streams[] = { say_reset, say_overflow, say_malformed, say_refused_head, say_odd_length };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(frames); i++) {
		uint32_t n = flood(frames[i], 50, 2 * NP_H2_NOISE);

		assert_true(n > NP_H2_NOISE / 2 && n <= NP_H2_NOISE + 50);
		assert_int_equal(r.goaway_code, H2_ENHANCE_YOUR_CALM);
	}
	assert_in_range(flood(say_settings, 50, NP_H2_NOISE), 500, 1050);
	for (size_t i = 0; i < ARRAY_SIZE(streams); i++) {
		uint32_t n = flood(streams[i], 50, NP_H2_NOISE);

		assert_in_range(n, 300, 1000);
		assert_int_equal(r.goaways, 1);
	}
}

/* All at once, nothing written in between: what waits to be sent is bounded too. */
static void test_floods_unread(void **state)
{
	(void)state;
	flood(say_ping, 3000, 3000);
	flood(say_settings, 3000, 3000);
	flood(say_reset, 3000, 3000);
	assert_true(r.heads < 1000);
	/* Streams that are refused, and cannot be told, are still open. */
	raw_start(&r, H2_SERVER);
	for (uint32_t i = 0; i < 3000; i++)
		say_malformed(i);
	assert_int_equal(raw_say(&r), -EPROTO);
	assert_true(r.resets <= NP_H2_STREAMS);
	raw_stop(&r);
}

/* A client that never takes our settings, and so is not bound by them, is refused stream by stream. */
static void test_streams_without_settings(void **state)
{
	int e = 0;

	(void)state;
	raw_new(&r, H2_SERVER);
	buf_puts(&r.in, MAGIC);
	raw_frame(&r, SETTINGS, 0, 0, NULL, 0);
	for (uint32_t i = 0; i < 2 * NP_H2_STREAMS; i++)
		raw_head(&r, 2 * i + 1, END_STREAM, GET);
	assert_int_equal(raw_say(&r), 0);
	assert_int_equal(r.heads, NP_H2_STREAMS);
	assert_int_equal(r.resets, NP_H2_STREAMS);
	assert_int_equal(r.reset_code, H2_REFUSED_STREAM);
	for (uint32_t i = 2 * NP_H2_STREAMS; !e && i < 2000; i++) {
		raw_head(&r, 2 * i + 1, END_STREAM, GET);
		e = raw_say(&r);
	}
	assert_int_equal(e, -EPROTO);
	assert_int_equal(r.heads, NP_H2_STREAMS);
	raw_stop(&r);
}

static void test_continuations(void **state)
{
	(void)state;
	raw_start(&r, H2_SERVER);
	raw_frame(&r, HEADERS, 0, 1, NULL, 0);
	for (int i = 0; i < 20; i++)
		raw_frame(&r, CONTINUATION, 0, 1, NULL, 0);
	assert_int_equal(raw_say(&r), -EPROTO);
	assert_string_equal(h2_problem(r.h2), "a flood of CONTINUATION");
	raw_stop(&r);
}

/* Much of everything, but for the sake of something: no flood. */
static void test_busy(void **state)
{
	static char data[1000];

	(void)state;
	raw_start(&r, H2_SERVER);
	r.answers = true;
	for (uint32_t i = 0; i < 5000; i++) {
		raw_head(&r, 4 * i + 1, 0, GET);
		for (int k = 0; k < 4; k++)
			raw_frame(&r, DATA, 0, 4 * i + 1, data, sizeof(data));
		raw_frame(&r, DATA, END_STREAM, 4 * i + 1, NULL, 0);
		say_ping(0);
		raw_number(&r, WINDOW_UPDATE, 0, 1);
		raw_number(&r, WINDOW_UPDATE, 4 * i + 1, 1);
		/* Some are given up; nghttp2 by itself says goodbye after a thousand in a row. */
		raw_head(&r, 4 * i + 3, END_STREAM, GET);
		if (i % 6 == 0)
			raw_number(&r, RST_STREAM, 4 * i + 3, H2_CANCEL);
		assert_int_equal(raw_say(&r), 0);
	}
	assert_int_equal(r.heads, 10000);
	assert_int_equal(r.bytes, 5000 * 4 * sizeof(data));
	raw_stop(&r);
}

static void assert_broken(const char *problem, uint32_t code)
{
	int e = raw_say(&r);

	assert_int_equal(e, -EPROTO);
	assert_string_equal(h2_problem(r.h2), problem);
	assert_int_equal(r.goaways, code ? 1 : 0);
	assert_int_equal(r.goaway_code, code);
	assert_true(h2_is_done(r.h2));
	raw_stop(&r);
}

static void test_broken(void **state)
{
	(void)state;
	raw_new(&r, H2_SERVER);
	buf_puts(&r.in, "GET / HTTP/1.1\r\nhost: a\r\n\r\n");
	assert_broken("it does not begin as HTTP/2 does", 0);

	raw_start(&r, H2_SERVER);
	raw_frame(&r, PING, 0, 0, "1", 1);
	assert_broken("broken HTTP/2: FRAME_SIZE_ERROR", 6);

	raw_start(&r, H2_SERVER);
	buf_append(&r.in, "\xff\xff\xff\0\0\0\0\0\1", 9);
	assert_broken("broken HTTP/2: too large frame size", 6);

	raw_start(&r, H2_SERVER);
	raw_frame(&r, DATA, 0, 0, "1", 1);
	assert_broken("broken HTTP/2: DATA: stream_id == 0", 1);

	raw_start(&r, H2_SERVER);
	raw_frame(&r, HEADERS, END_HEADERS, 2, "", 0);
	assert_broken("broken HTTP/2: request HEADERS: invalid stream_id", 1);

	raw_start(&r, H2_SERVER);
	raw_frame(&r, HEADERS, END_HEADERS, 1, "\xff\xff\xff\xff\xff\xff\xff", 7);
	assert_broken("broken HTTP/2: COMPRESSION_ERROR", 9);

	raw_start(&r, H2_SERVER);
	raw_frame(&r, HEADERS, 0, 1, "\x82", 1);
	raw_frame(&r, PING, 0, 0, "12345678", 8);
	assert_broken("broken HTTP/2: unexpected non-CONTINUATION frame or stream_id is invalid", 1);

	raw_start(&r, H2_SERVER);
	for (uint32_t i = 0; i <= NP_H2_STREAMS; i++)
		raw_head(&r, 2 * i + 1, END_STREAM, GET);
	assert_broken("broken HTTP/2: request HEADERS: max concurrent streams exceeded", 1);

	raw_start(&r, H2_CLIENT);
	raw_head(&r, 2, END_STREAM, HEAD(":status", "200"));
	assert_broken("broken HTTP/2: request HEADERS: client received request", 1);
}

/* A client that goes on with what it has ended, in each way that there is; and one whose streams we ended, who may not know
 * yet. */
static void test_frames_on_ended_streams(void **state)
{
	(void)state;
	for (int kind = 0; kind < 4; kind++) {
		raw_start(&r, H2_SERVER);
		r.answers = true;
		raw_head(&r, 1, END_STREAM, GET);
		assert_int_equal(raw_say(&r), 0); /* answered: it is closed */
		if (kind >= 2) {
			r.answers = false;
			raw_head(&r, 3, 0, GET);
			raw_number(&r, RST_STREAM, 3, H2_CANCEL);
			assert_int_equal(raw_say(&r), 0);
		}
		if (kind % 2)
			raw_frame(&r, DATA, END_STREAM, kind >= 2 ? 3 : 1, "1", 1);
		else
			raw_head(&r, kind >= 2 ? 3 : 1, END_STREAM, GET);
		assert_int_equal(raw_say(&r), -EPROTO);
		assert_int_equal(r.goaway_code, 5);
		raw_stop(&r);
	}
	raw_start(&r, H2_SERVER);
	raw_head(&r, 1, 0, GET);
	assert_int_equal(raw_say(&r), 0);
	h2_reset(r.stream, H2_CANCEL);
	assert_int_equal(raw_say(&r), 0);
	raw_frame(&r, DATA, END_STREAM, 1, "1", 1);
	raw_head(&r, 3, END_STREAM, GET);
	assert_int_equal(raw_say(&r), 0);
	assert_int_equal(r.heads, 2);
	raw_stop(&r);
}

static void test_streams_that_depend_on_themselves(void **state)
{
	(void)state;
	raw_start(&r, H2_SERVER);
	raw_frame(&r, PRIORITY, 0, 3, "\0\0\0\3\x10", 5);
	assert_int_equal(raw_say(&r), -EPROTO);
	assert_int_equal(r.goaway_code, 1);
	raw_stop(&r);
	raw_start(&r, H2_SERVER);
	raw_frame(&r, HEADERS, END_HEADERS | END_STREAM | 0x20, 1, "\0\0\0\1\x10\x82\x87\x84\x41\1a", 11);
	assert_int_equal(raw_say(&r), -EPROTO);
	assert_int_equal(r.goaway_code, 1);
	raw_stop(&r);
	assert_int_equal(r.heads, 0);
	raw_start(&r, H2_SERVER);
	raw_frame(&r, HEADERS, END_HEADERS | END_STREAM | 0x20, 1, "\0\0\0\0\x10\x82\x87\x84\x41\1a", 11);
	assert_int_equal(raw_say(&r), 0);
	assert_int_equal(r.heads, 1);
	raw_stop(&r);
}

/* Beyond the window that we gave. */
static void test_overrun(void **state)
{
	static char data[16384];

	(void)state;
	raw_start(&r, H2_SERVER);
	raw_head(&r, 1, 0, GET);
	assert_int_equal(raw_say(&r), 0);
	for (int i = 0; i < 100; i++)
		raw_frame(&r, DATA, 0, 1, data, sizeof(data));
	/* It is consumed at once, but we have not said so: the updates are still in our hands. */
	assert_int_equal(raw_say(&r), -EPROTO);
	assert_int_equal(r.goaway_code, 3);
	assert_true(r.bytes <= NP_H2_CONNECTION);
	raw_stop(&r);
}

/* How many streams we open is the origin's to say, up to our own bound. */
static void test_room(void **state)
{
	(void)state;
	raw_start(&r, H2_CLIENT);
	assert_int_equal(h2_room(r.h2), NP_H2_STREAMS);
	raw_frame(&r, SETTINGS, 0, 0, "\0\3\0\0\xff\xff", 6);
	assert_int_equal(raw_say(&r), 0);
	assert_int_equal(h2_room(r.h2), NP_H2_STREAMS);
	raw_frame(&r, SETTINGS, 0, 0, "\0\3\0\0\0\3", 6);
	assert_int_equal(raw_say(&r), 0);
	assert_int_equal(h2_room(r.h2), 3);
	raw_frame(&r, SETTINGS, 0, 0, "\0\3\0\0\0\0", 6);
	assert_int_equal(raw_say(&r), 0);
	assert_int_equal(h2_room(r.h2), 0);
	raw_stop(&r);
}

/* An origin that pushes. */
static void test_push(void **state)
{
	struct buf block = BUF_INIT(1024);

	(void)state;
	for (int acked = 0; acked < 2; acked++) {
		if (acked) {
			raw_start(&r, H2_CLIENT);
		} else {
			raw_new(&r, H2_CLIENT);
			raw_frame(&r, SETTINGS, 0, 0, NULL, 0);
		}
		raw_ask(&r);
		buf_clear(&block);
		buf_append(&block, "\0\0\0\2", 4);
		for (const char *const *f = GET; f[0]; f += 2)
			hpack_field(&block, f[0], f[1]);
		raw_frame(&r, PUSH_PROMISE, END_HEADERS, 1, block.data, block.len);
		/* Before it has seen our settings it may not know better. */
		assert_int_equal(raw_say(&r), acked ? -EPROTO : 0);
		assert_int_equal(r.resets, acked ? 0 : 1);
		assert_int_equal(r.heads, 0);
		raw_stop(&r);
		assert_int_equal(r.closed, 1);
	}
	buf_free(&block);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_floods),
		cmocka_unit_test(test_floods_unread),
		cmocka_unit_test(test_streams_without_settings),
		cmocka_unit_test(test_continuations),
		cmocka_unit_test(test_busy),
		cmocka_unit_test(test_broken),
		cmocka_unit_test(test_frames_on_ended_streams),
		cmocka_unit_test(test_streams_that_depend_on_themselves),
		cmocka_unit_test(test_overrun),
		cmocka_unit_test(test_room),
		cmocka_unit_test(test_push),
	};

	return cmocka_run_group_tests_name("h2_session", tests, NULL, NULL);
}
