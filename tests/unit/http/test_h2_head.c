/* SPDX-License-Identifier: MIT */
/* Heads as strangers write them: those that are accepted mean one thing, the others cost their stream and no more. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants the four above first */
#include <cmocka.h>

#include "http/h2_head.c"

#include "h2_raw.h"
#include "vocab/limits.h"

static struct raw r;
static uint32_t next_id;

static void start(enum h2_role role)
{
	raw_start(&r, role);
	r.answers = role == H2_SERVER;
	next_id = 1;
}

/* The connection is as good as before. */
static void assert_alive(void)
{
	size_t heads = r.heads;

	raw_head(&r, next_id, END_STREAM, GET);
	next_id += 2;
	assert_int_equal(raw_say(&r), 0);
	assert_int_equal(r.heads, heads + 1);
	assert_string_equal(r.head, "GET https example.com /");
}

static void assert_accepted(const char *const *fields, const char *expected)
{
	size_t heads = r.heads;

	raw_head(&r, next_id, END_STREAM, fields);
	next_id += 2;
	assert_int_equal(raw_say(&r), 0);
	if (r.heads != heads + 1)
		fail_msg("%s refused: %s", expected, h2_problem(r.h2));
	assert_string_equal(r.head, expected);
	assert_int_equal(r.resets, 0);
}

static void assert_refused(const char *const *fields, const char *problem)
{
	size_t heads = r.heads, resets = r.resets, refused = r.refused;

	raw_head(&r, next_id, END_STREAM, fields);
	assert_int_equal(raw_say(&r), 0);
	if (r.heads != heads)
		fail_msg("accepted: %s", r.head);
	assert_int_equal(r.refused, refused + 1);
	assert_int_equal(r.resets, resets + 1);
	assert_int_equal(r.reset, next_id);
	assert_int_equal(r.reset_code, H2_PROTOCOL_ERROR);
	if (problem)
		assert_string_equal(h2_problem(r.h2), problem);
	assert_true(*h2_problem(r.h2));
	assert_int_equal(r.closed, r.heads); /* there is no stream of it */
	next_id += 2;
	assert_alive();
}

#define REQUEST(...) HEAD(":method", "GET", ":scheme", "https", ":authority", "example.com", ":path", "/", __VA_ARGS__)

static void test_authority(void **state)
{
	static const char differ[] = "host and :authority differ";

	(void)state;
	start(H2_SERVER);
	assert_accepted(GET, "GET https example.com /");
	assert_accepted(REQUEST("host", "example.com"), "GET https example.com /");
	assert_accepted(REQUEST("host", "EXAMPLE.com"), "GET https example.com /");
	assert_accepted(HEAD(":method", "GET", ":scheme", "http", ":path", "/", "host", "b.example:8080"),
			"GET http b.example:8080 /");
	assert_refused(REQUEST("host", "other.example"), differ);
	assert_refused(REQUEST("host", "example.com:443"), differ);
	assert_refused(REQUEST("host", "example.com."), differ);
	assert_refused(REQUEST("host", "example.co"), differ);
	assert_refused(REQUEST("host", ""), NULL);
	assert_refused(REQUEST("host", "example.com", "host", "example.com"), NULL);
	assert_refused(HEAD(":method", "GET", ":scheme", "https", ":path", "/"), NULL);
	assert_refused(HEAD(":method", "GET", ":scheme", "https", ":path", "/", "host", ""), NULL);
	assert_refused(HEAD(":method", "GET", ":scheme", "https", ":authority", "", ":path", "/"), NULL);
	assert_refused(HEAD(":method", "GET", ":scheme", "https", ":authority", "", ":path", "/", "host", "a"), NULL);
	assert_refused(HEAD(":method", "GET", ":scheme", "https", ":authority", "u@example.com", ":path", "/"),
		       "an authority with a user name");
	assert_refused(HEAD(":method", "GET", ":scheme", "https", ":path", "/", "host", "u@example.com"),
		       "an authority with a user name");
	raw_stop(&r);
}

static void test_target(void **state)
{
	static const char byte[] = "a path with a byte that does not belong there";
#define TARGET(method, scheme, path) HEAD(":method", method, ":scheme", scheme, ":authority", "a", ":path", path)

	(void)state;
	start(H2_SERVER);
	assert_accepted(TARGET("GET", "https", "/a/b?c=d%20&e"), "GET https a /a/b?c=d%20&e");
	assert_accepted(TARGET("OPTIONS", "https", "*"), "OPTIONS https a *");
	assert_accepted(HEAD(":method", "CONNECT", ":authority", "a:443"), "CONNECT - a:443 ");
	assert_accepted(TARGET("BREW", "https", "/"), "BREW https a /");
	assert_refused(TARGET("GET", "https", "*"), NULL);
	assert_refused(TARGET("GET", "https", "a"), NULL);
	assert_refused(TARGET("GET", "https", ""), NULL);
	assert_refused(TARGET("GET", "https", "https://a/"), NULL);
	assert_refused(TARGET("GET", "https", "/a#b"), byte);
	assert_refused(TARGET("GET", "https", "/\xc3\xbc"), byte);
	assert_refused(TARGET("GET", "https", "/a b"), NULL);
	assert_refused(TARGET("GET", "https", "/a\tb"), NULL);
	assert_refused(TARGET("GET", "https", "/a\r\nb"), NULL);
	assert_refused(TARGET("GET", "ftp", "/"), "a scheme other than http and https");
	assert_refused(TARGET("GET", "HTTPS", "/"), "a scheme other than http and https");
	assert_refused(TARGET("GET", "ftp", "x"), "a scheme other than http and https");
	assert_refused(TARGET("", "https", "/"), NULL);
	assert_refused(TARGET("G T", "https", "/"), NULL);
	assert_refused(HEAD(":scheme", "https", ":authority", "a", ":path", "/"), NULL);
	assert_refused(HEAD(":method", "GET", ":authority", "a", ":path", "/"), NULL);
	assert_refused(HEAD(":method", "GET", ":scheme", "https", ":authority", "a"), NULL);
	assert_refused(HEAD(":method", "CONNECT"), NULL);
	assert_refused(TARGET("CONNECT", "https", "/"), NULL);
	/* Extended CONNECT was never offered. */
	assert_refused(HEAD(":method", "CONNECT", ":protocol", "websocket", ":scheme", "https", ":authority", "a",
			    ":path", "/"),
		       NULL);
	assert_refused(HEAD(":method", "GET", ":method", "GET", ":scheme", "https", ":authority", "a", ":path", "/"),
		       NULL);
	assert_refused(HEAD(":method", "GET", ":scheme", "https", ":authority", "a", ":path", "/", ":path", "/b"),
		       NULL);
	assert_refused(REQUEST(":status", "200"), NULL);
	assert_refused(REQUEST("x", "y", ":path", "/b"), NULL);
	assert_refused(REQUEST(":unknown", "1"), NULL);
	raw_stop(&r);
}

static void test_fields(void **state)
{
	static const char *const hop[] = { "connection", "keep-alive", "proxy-connection", "transfer-encoding",
					   "upgrade" };

	(void)state;
	start(H2_SERVER);
	assert_accepted(REQUEST("x-a", "1", "x-a", "2", "x-b", "a\tb c\xff"),
			"GET https example.com /|x-a=1|x-a=2|x-b=a\tb c\xff");
	assert_accepted(REQUEST("x-empty", ""), "GET https example.com /|x-empty=");
	assert_accepted(REQUEST("te", "trailers"), "GET https example.com /");
	assert_accepted(REQUEST("http2-settings", "x"), "GET https example.com /");
	assert_accepted(REQUEST("content-length", "0"), "GET https example.com /");
	for (size_t i = 0; i < sizeof(hop) / sizeof(*hop); i++)
		assert_refused(REQUEST(hop[i], "close"), NULL);
	assert_refused(REQUEST("te", "gzip"), NULL);
	assert_refused(REQUEST("te", "trailers, gzip"), NULL);
	assert_refused(REQUEST("X-Upper", "1"), NULL);
	assert_refused(REQUEST("x a", "1"), NULL);
	assert_refused(REQUEST("x:", "1"), NULL);
	assert_refused(REQUEST("", "1"), NULL);
	assert_refused(REQUEST("x-a", "1\r\nx-b: 2"), NULL);
	assert_refused(REQUEST("x-a", "1\x01"), NULL);
	assert_refused(REQUEST("x-a", "1\x7f"), NULL);
	assert_refused(REQUEST("x-a", " 1"), NULL);
	assert_refused(REQUEST("x-a", "1\t"), NULL);
	assert_refused(REQUEST("content-length", "1"), NULL);
	assert_refused(REQUEST("content-length", "-1"), NULL);
	assert_refused(REQUEST("content-length", "0x0"), NULL);
	assert_refused(REQUEST("content-length", "0", "content-length", "0"), NULL);
	assert_refused(REQUEST("content-length", "99999999999999999999"), NULL);
	assert_refused(REQUEST("expect", "200-ok"), "an expectation other than 100-continue");
	raw_stop(&r);
}

static void test_cookies(void **state)
{
	(void)state;
	start(H2_SERVER);
	assert_accepted(REQUEST("cookie", "a=1", "x", "y", "cookie", "b=2", "cookie", "c=3; d=4"),
			"GET https example.com /|x=y|cookie=a=1; b=2; c=3; d=4");
	assert_accepted(REQUEST("cookie", "", "cookie", "b=2", "cookie", ""), "GET https example.com /|cookie=b=2");
	assert_accepted(REQUEST("cookie", ""), "GET https example.com /");
	raw_stop(&r);
}

static void test_trailers(void **state)
{
	(void)state;
	start(H2_SERVER);
	raw_head(&r, 1, 0, GET);
	raw_head(&r, 1, END_STREAM,
		 HEAD("x-a", "1", "host", "other", "expect", "x", "te", "trailers", "cookie", "a", "cookie", "b"));
	raw_head(&r, 3, 0, GET);
	raw_frame(&r, DATA, END_STREAM, 3, NULL, 0);
	next_id = 5;
	assert_int_equal(raw_say(&r), 0);
	assert_int_equal(r.ends, 2);
	assert_string_equal(r.trailers, "");
	raw_head(&r, next_id, 0, GET);
	raw_head(&r, next_id, END_STREAM,
		 HEAD("x-a", "1", "host", "other", "expect", "x", "te", "trailers", "cookie", "a", "cookie", "b"));
	next_id += 2;
	assert_int_equal(raw_say(&r), 0);
	assert_string_equal(r.trailers, "|x-a=1"); /* cookies are for heads */
	assert_string_equal(r.head, "GET https example.com /");
	/* Not trailers: pseudo headers, fields of the connection, no end. */
	for (size_t i = 0; i < 3; i++) {
		raw_head(&r, next_id, 0, GET);
		raw_head(&r, next_id, i == 2 ? 0 : END_STREAM,
			 i == 0 ? HEAD(":path", "/b") : HEAD(i == 1 ? "connection" : "x", "close"));
		assert_int_equal(raw_say(&r), 0);
		assert_int_equal(r.reset, next_id);
		assert_int_equal(r.error, H2_PROTOCOL_ERROR);
		next_id += 2;
	}
	assert_int_equal(r.ends, 3);
	assert_alive();
	raw_stop(&r);
}

/* Over a bound: the stream goes, and its owner hears only that; the connection stays. */
static void assert_too_big(const struct buf *block)
{
	size_t heads = r.heads, refused = r.refused;

	raw_block(&r, next_id, END_STREAM, block);
	assert_int_equal(raw_say(&r), 0);
	assert_int_equal(r.heads, heads);
	assert_int_equal(r.refused, refused + 1);
	assert_int_equal(r.reset, next_id);
	assert_int_equal(r.reset_code, H2_ENHANCE_YOUR_CALM);
	assert_string_equal(h2_problem(r.h2), "a head of more than 65536 bytes or 128 fields");
	next_id += 2;
	assert_alive();
}

static void block_start(struct buf *block)
{
	const char *const *get = GET;

	buf_clear(block);
	for (; get[0]; get += 2)
		hpack_field(block, get[0], get[1]);
}

static void test_bounds(void **state)
{
	struct buf block = BUF_INIT(1 << 20);
	static char value[8000];

	(void)state;
	memset(value, 'v', sizeof(value) - 1);
	start(H2_SERVER);
	/* As many fields as are allowed, and one more. */
	block_start(&block);
	for (int i = 0; i < NP_HEAD_FIELDS; i++)
		hpack_field(&block, "x", "y");
	raw_block(&r, next_id, END_STREAM, &block);
	next_id += 2;
	assert_int_equal(raw_say(&r), 0);
	assert_int_equal(r.heads, 1);
	hpack_field(&block, "x", "y");
	assert_too_big(&block);
	/* As many bytes. */
	block_start(&block);
	for (int i = 0; i < 8; i++)
		hpack_field(&block, "x", value);
	raw_block(&r, next_id, END_STREAM, &block);
	next_id += 2;
	assert_int_equal(raw_say(&r), 0);
	assert_int_equal(r.resets, 1);
	hpack_field(&block, "x", value);
	assert_too_big(&block);
	/* In crumbs. */
	block_start(&block);
	for (int i = 0; i < 9; i++)
		hpack_field(&block, "cookie", value);
	assert_too_big(&block);
	block_start(&block);
	for (int i = 0; i < 25000; i++)
		buf_append(&block, "\x60\x01x", 3); /* cookie (name 32 of the static table, incrementally indexed) */
	assert_too_big(&block);
	/* One entry of the dynamic table, 4 KB, a thousand times: a bomb. */
	block_start(&block);
	buf_append(&block, "\x40\x01y", 3);
	hpack_text(&block, value, 4000);
	for (int i = 0; i < 1000; i++)
		buf_append(&block, "\xbe", 1);
	assert_too_big(&block);
	/* Trailers have the same bounds; their stream is known already. */
	raw_head(&r, next_id, 0, GET);
	buf_clear(&block);
	for (int i = 0; i < 9; i++)
		hpack_field(&block, "x", value);
	raw_block(&r, next_id, END_STREAM, &block);
	assert_int_equal(raw_say(&r), 0);
	assert_int_equal(r.reset, next_id);
	assert_int_equal(r.error, H2_ENHANCE_YOUR_CALM);
	next_id += 2;
	assert_alive();
	buf_free(&block);
	raw_stop(&r);
}

static void assert_answer(const char *const *fields, const char *expected)
{
	size_t heads = r.heads, closed = r.closed;

	raw_ask(&r);
	raw_head(&r, next_id, END_STREAM, fields);
	next_id += 2;
	assert_int_equal(raw_say(&r), 0);
	assert_int_equal(r.closed, closed + 1);
	if (expected) {
		assert_int_equal(r.heads, heads + 1);
		assert_string_equal(r.head, expected);
		assert_int_equal(r.error, 0);
	} else {
		assert_int_equal(r.heads, heads);
		assert_int_equal(r.error, H2_PROTOCOL_ERROR);
		assert_true(*h2_problem(r.h2));
		assert_string_not_equal(h2_problem(r.h2), "a body that does not fit its head");
	}
}

static void test_answers(void **state)
{
	(void)state;
	start(H2_CLIENT);
	assert_answer(HEAD(":status", "200", "set-cookie", "a=1", "set-cookie", "b=2"),
		      "200|set-cookie=a=1|set-cookie=b=2");
	assert_answer(HEAD(":status", "599", "cookie", "a", "cookie", "b"), "599|cookie=a|cookie=b");
	/* Many origins do this, and it means only one thing. */
	assert_answer(HEAD(":status", "200", "x", " y \t", "z", "  "), "200|x=y|z=");
	assert_answer(HEAD(":status", "200", "host", "x", "expect", "y", "te", "trailers"), "200");
	assert_answer(HEAD(":status", "200", "connection", "close"), NULL);
	assert_answer(HEAD(":status", "200", "x", "a\nb"), NULL);
	assert_answer(HEAD(":status", "101"), NULL);
	assert_answer(HEAD(":status", "100"), NULL); /* and nothing after it */
	assert_answer(HEAD(":status", "20"), NULL);
	assert_answer(HEAD(":status", "2x0"), NULL);
	assert_answer(HEAD(":status", "000"), NULL);
	assert_answer(HEAD(":status", "200", ":status", "200"), NULL);
	assert_answer(HEAD("x", "y"), NULL);
	assert_answer(HEAD(":status", "200", ":path", "/"), NULL);
	assert_answer(HEAD(":status", "200", "content-length", "5"), NULL);
	raw_stop(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_authority), cmocka_unit_test(test_target),   cmocka_unit_test(test_fields),
		cmocka_unit_test(test_cookies),	  cmocka_unit_test(test_trailers), cmocka_unit_test(test_bounds),
		cmocka_unit_test(test_answers),
	};

	return cmocka_run_group_tests_name("h2_head", tests, NULL, NULL);
}
