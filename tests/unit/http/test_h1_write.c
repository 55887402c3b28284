/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants the four above first */
#include <cmocka.h>

#include "http/h1_write.c"

#include "h1_tape.h"

struct pair {
	struct h1 *h1;
	struct tape tape;
	struct buf out;
	struct head head;
};

static void pair_open(struct pair *p, enum h1_role role)
{
	tape_init(&p->tape);
	p->out = BUF_INIT(1u << 20);
	head_init(&p->head);
	assert_int_equal(h1_new(role, &tape_events, &p->tape, &p->h1), 0);
	if (role == H1_CLIENT) {
		p->head.method = "GET";
		p->head.authority = "a.example";
		p->head.target = "/";
	}
}

/* A server that has read this. */
static void pair_serve(struct pair *p, const char *request)
{
	pair_open(p, H1_SERVER);
	assert_int_equal(h1_read(p->h1, request, strlen(request)), strlen(request));
}

static void pair_close(struct pair *p)
{
	h1_free(p->h1);
	tape_free(&p->tape);
	buf_free(&p->out);
	head_free(&p->head);
}

static const char *written(struct pair *p)
{
	buf_append(&p->out, "", 0);
	return p->out.data;
}

#define GET "GET / HTTP/1.1\r\nHost: a\r\n\r\n"

static void test_request(void **state)
{
	struct pair p;

	(void)state;
	pair_open(&p, H1_CLIENT);
	p.head.target = "/x?y";
	assert_int_equal(fields_add(&p.head.fields, "accept", 6, "*/*", 3), 0);
	assert_int_equal(fields_add(&p.head.fields, "x-empty", 7, "", 0), 0);
	assert_int_equal(h1_write_head(p.h1, &p.head, false, &p.out), 0);
	assert_int_equal(h1_write_body(p.h1, "", 0, &p.out), 0);
	assert_int_equal(h1_write_body(p.h1, "x", 1, &p.out), -EMSGSIZE);
	assert_int_equal(h1_write_end(p.h1, NULL, &p.out), 0);
	assert_string_equal(written(&p), "GET /x?y HTTP/1.1\r\nHost: a.example\r\naccept: */*\r\nx-empty: \r\n\r\n");
	assert_true(h1_persists(p.h1));
	/* One request, then its response. */
	assert_int_equal(h1_write_head(p.h1, &p.head, false, &p.out), -EINVAL);
	h1_next(p.h1);
	assert_int_equal(h1_write_head(p.h1, &p.head, true, &p.out), 0);
	assert_false(h1_persists(p.h1));
	pair_close(&p);
}

static void test_request_parts(void **state)
{
	struct pair p;

	(void)state;
	pair_open(&p, H1_CLIENT);
	p.head.method = "POST";
	p.head.upgrade = "websocket";
	p.head.te_trailers = true;
	p.head.expects_continue = true;
	p.head.has_body = true;
	assert_int_equal(h1_write_head(p.h1, &p.head, true, &p.out), 0);
	assert_string_equal(written(&p), "POST / HTTP/1.1\r\nHost: a.example\r\ntransfer-encoding: chunked\r\n"
					 "connection: close, upgrade, te\r\nupgrade: websocket\r\nte: trailers\r\n"
					 "expect: 100-continue\r\n\r\n");
	pair_close(&p);
	pair_open(&p, H1_CLIENT);
	p.head.method = "CONNECT";
	p.head.authority = "[2001:db8::1]:443";
	p.head.target = "";
	assert_int_equal(h1_write_head(p.h1, &p.head, false, &p.out), 0);
	assert_string_equal(written(&p), "CONNECT [2001:db8::1]:443 HTTP/1.1\r\nHost: [2001:db8::1]:443\r\n\r\n");
	pair_close(&p);
	/* Servers ask for a length where a body is to be expected. */
	pair_open(&p, H1_CLIENT);
	p.head.method = "PUT";
	assert_int_equal(h1_write_head(p.h1, &p.head, false, &p.out), 0);
	assert_string_equal(written(&p), "PUT / HTTP/1.1\r\nHost: a.example\r\ncontent-length: 0\r\n\r\n");
	pair_close(&p);
}

static void test_bodies(void **state)
{
	struct fields trailers;
	struct pair p;

	(void)state;
	fields_init(&trailers);
	assert_int_equal(fields_add(&trailers, "x-sum", 5, "1", 1), 0);
	assert_int_equal(fields_add(&trailers, "content-length", 14, "1", 1), 0);
	assert_int_equal(fields_add(&trailers, "set-cookie", 10, "a=b", 3), 0);

	pair_open(&p, H1_CLIENT);
	p.head.method = "PUT";
	p.head.has_body = true;
	p.head.has_length = true;
	p.head.length = 5;
	assert_int_equal(h1_write_head(p.h1, &p.head, false, &p.out), 0);
	buf_clear(&p.out);
	assert_int_equal(h1_write_body(p.h1, "hello!", 6, &p.out), -EMSGSIZE);
	assert_int_equal(h1_write_body(p.h1, "hel", 3, &p.out), 0);
	assert_int_equal(h1_write_end(p.h1, &trailers, &p.out), -EMSGSIZE);
	assert_int_equal(h1_write_body(p.h1, "lo!", 3, &p.out), -EMSGSIZE);
	assert_int_equal(h1_write_body(p.h1, "lo", 2, &p.out), 0);
	assert_int_equal(h1_write_end(p.h1, &trailers, &p.out), 0);
	assert_string_equal(written(&p), "hello");
	pair_close(&p);

	pair_open(&p, H1_CLIENT);
	p.head.has_body = true;
	assert_int_equal(h1_write_head(p.h1, &p.head, false, &p.out), 0);
	buf_clear(&p.out);
	assert_int_equal(h1_write_body(p.h1, "0123456789abcdef+", 17, &p.out), 0);
	assert_int_equal(h1_write_body(p.h1, "", 0, &p.out), 0);
	assert_int_equal(h1_write_body(p.h1, "x", 1, &p.out), 0);
	assert_int_equal(h1_write_end(p.h1, &trailers, &p.out), 0);
	assert_string_equal(written(&p), "11\r\n0123456789abcdef+\r\n1\r\nx\r\n0\r\nx-sum: 1\r\n\r\n");
	assert_int_equal(h1_write_body(p.h1, "x", 1, &p.out), -EMSGSIZE);
	pair_close(&p);
	fields_free(&trailers);
}

static void test_responses(void **state)
{
	static const struct {
		const char *request;
		unsigned status;
		bool has_body, has_length;
		uint64_t length;
		const char *expected;
		bool persists;
	} cases[] = {
		{ GET, 200, true, true, 3, "HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\n", true },
		{ GET, 200, true, false, BODY_UNKNOWN, "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n", true },
		{ GET, 299, false, false, BODY_UNKNOWN, "HTTP/1.1 299 \r\ncontent-length: 0\r\n\r\n", true },
		{ GET, 204, false, true, 0, "HTTP/1.1 204 No Content\r\n\r\n", true },
		{ GET, 304, false, true, 9, "HTTP/1.1 304 Not Modified\r\ncontent-length: 9\r\n\r\n", true },
		{ GET, 304, false, false, BODY_UNKNOWN, "HTTP/1.1 304 Not Modified\r\n\r\n", true },
		{ GET, 103, false, false, BODY_UNKNOWN, "HTTP/1.1 103 Early Hints\r\n\r\n", true },
		{ "HEAD / HTTP/1.1\r\nHost: a\r\n\r\n", 200, false, true, 9,
		  "HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n", true },
		{ "HEAD / HTTP/1.1\r\nHost: a\r\n\r\n", 200, true, false, BODY_UNKNOWN, "HTTP/1.1 200 OK\r\n\r\n",
		  true },
		{ "CONNECT a:1 HTTP/1.1\r\nHost: a:1\r\n\r\n", 200, false, false, BODY_UNKNOWN,
		  "HTTP/1.1 200 OK\r\n\r\n", true },
		{ "CONNECT a:1 HTTP/1.1\r\nHost: a:1\r\n\r\n", 403, true, true, 1,
		  "HTTP/1.1 403 Forbidden\r\ncontent-length: 1\r\n\r\n", true },
		{ "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", 200, true, true, 3,
		  "HTTP/1.1 200 OK\r\ncontent-length: 3\r\nconnection: close\r\n\r\n", false },
		/* HTTP/1.0 knows no chunks and no informational responses. */
		{ "GET / HTTP/1.0\r\nHost: a\r\n\r\n", 200, true, false, BODY_UNKNOWN,
		  "HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n", false },
		{ "GET / HTTP/1.0\r\nHost: a\r\nConnection: keep-alive\r\n\r\n", 200, true, true, 3,
		  "HTTP/1.1 200 OK\r\ncontent-length: 3\r\nconnection: close\r\n\r\n", false },
		{ "GET / HTTP/1.0\r\nHost: a\r\n\r\n", 103, false, false, BODY_UNKNOWN, "", false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct pair p;

		pair_serve(&p, cases[i].request);
		p.head.status = cases[i].status;
		p.head.has_body = cases[i].has_body;
		p.head.has_length = cases[i].has_length;
		p.head.length = cases[i].length;
		assert_int_equal(h1_write_head(p.h1, &p.head, false, &p.out), 0);
		assert_string_equal(written(&p), cases[i].expected);
		assert_int_equal(h1_persists(p.h1), cases[i].persists);
		pair_close(&p);
	}
}

static void test_response_until_close(void **state)
{
	struct pair p;

	(void)state;
	pair_serve(&p, "GET / HTTP/1.0\r\nHost: a\r\n\r\n");
	p.head.status = 200;
	p.head.has_body = true;
	assert_int_equal(h1_write_head(p.h1, &p.head, false, &p.out), 0);
	buf_clear(&p.out);
	assert_int_equal(h1_write_body(p.h1, "plain", 5, &p.out), 0);
	assert_int_equal(h1_write_end(p.h1, NULL, &p.out), 0);
	assert_string_equal(written(&p), "plain");
	pair_close(&p);
}

static void test_interim_then_final(void **state)
{
	struct pair p;

	(void)state;
	pair_serve(&p, GET);
	p.head.status = 100;
	assert_int_equal(h1_write_head(p.h1, &p.head, true, &p.out), 0);
	p.head.status = 200;
	p.head.has_body = true;
	p.head.length = 2;
	assert_int_equal(h1_write_head(p.h1, &p.head, true, &p.out), 0);
	assert_int_equal(h1_write_body(p.h1, "hi", 2, &p.out), 0);
	assert_int_equal(h1_write_end(p.h1, NULL, &p.out), 0);
	assert_string_equal(written(&p), "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 2\r\n"
					 "connection: close\r\n\r\nhi");
	pair_close(&p);
}

static void test_switch(void **state)
{
	struct pair p;

	(void)state;
	pair_serve(&p, "GET / HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n");
	p.head.status = 101;
	p.head.upgrade = "websocket";
	assert_int_equal(h1_write_head(p.h1, &p.head, true, &p.out), 0);
	assert_string_equal(written(&p), "HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\n"
					 "upgrade: websocket\r\n\r\n");
	pair_close(&p);
	/* Only a switch may speak of it. */
	pair_serve(&p, GET);
	p.head.status = 200;
	p.head.upgrade = "h2c";
	assert_int_equal(h1_write_head(p.h1, &p.head, false, &p.out), 0);
	assert_string_equal(written(&p), "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n");
	pair_close(&p);
}

/* What could not be read is still answered, and then it is over. */
static void test_after_a_problem(void **state)
{
	struct pair p;

	(void)state;
	pair_open(&p, H1_SERVER);
	assert_int_equal(h1_read(p.h1, "GET / HTTP/1.1\r\n\r\n", 18), -EPROTO);
	p.head.status = 400;
	p.head.has_body = true;
	p.head.length = 1;
	assert_int_equal(h1_write_head(p.h1, &p.head, false, &p.out), 0);
	assert_string_equal(written(&p), "HTTP/1.1 400 Bad Request\r\ncontent-length: 1\r\nconnection: close\r\n\r\n");
	pair_close(&p);
}

/* fields_add() would not take these. */
static void put_raw(struct fields *fields, const char *name, const char *value)
{
	assert_int_equal(fields_add(fields, "room", 4, "", 0), 0);
	fields->items[fields->n - 1] = (struct field){ name, value, (uint32_t)strlen(name), (uint32_t)strlen(value) };
}

/* No part of a head can add a line to it. */
static void test_injection(void **state)
{
	static const struct {
		const char *method, *authority, *target, *upgrade, *name, *value;
	} cases[] = {
		{ "GET /x HTTP/1.1\r\nX:", "a", "/", NULL, "n", "v" },
		{ "", "a", "/", NULL, "n", "v" },
		{ "GET", "a\r\nX: y", "/", NULL, "n", "v" },
		{ "GET", "", "/", NULL, "n", "v" },
		{ "GET", "a b", "/", NULL, "n", "v" },
		{ "GET", "a", "", NULL, "n", "v" },
		{ "GET", "a", "/ HTTP/1.1\r\nX: y", NULL, "n", "v" },
		{ "GET", "a", "/x y", NULL, "n", "v" },
		{ "GET", "a", "/\x80", NULL, "n", "v" },
		{ "GET", "a", "/", "a\r\nX: y", "n", "v" },
		{ "GET", "a", "/", "a-protocol-with-a-name-of-32-byte", "n", "v" },
		{ "GET", "a", "/", NULL, "n\r\n", "v" },
		{ "GET", "a", "/", NULL, "n n", "v" },
		{ "GET", "a", "/", NULL, "n:", "v" },
		{ "GET", "a", "/", NULL, "", "v" },
		{ "GET", "a", "/", NULL, "n", "v\r\nX: y" },
		{ "GET", "a", "/", NULL, "n", "v\n" },
		{ "GET", "a", "/", NULL, "n", "v\r" },
		{ "GET", "a", "/", NULL, "n", " v" },
		{ "GET", "a", "/", NULL, "n", "\x7f" },
		{ NULL, "a", "/", NULL, "n", "v" },
		{ "GET", NULL, "/", NULL, "n", "v" },
		{ "GET", "a", NULL, NULL, "n", "v" },
	};
	static char large[3000];

	(void)state;
	memset(large, 'x', sizeof(large));
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct pair p;

		pair_open(&p, H1_CLIENT);
		buf_puts(&p.out, "before");
		p.head.method = cases[i].method;
		p.head.authority = cases[i].authority;
		p.head.target = cases[i].target;
		p.head.upgrade = cases[i].upgrade;
		/* More than the writer keeps to itself, in front of the bad one. */
		assert_int_equal(fields_add(&p.head.fields, "x", 1, large, sizeof(large)), 0);
		put_raw(&p.head.fields, cases[i].name, cases[i].value);
		assert_int_equal(h1_write_head(p.h1, &p.head, false, &p.out), -EINVAL);
		assert_string_equal(written(&p), "before");
		pair_close(&p);
	}
}

static void test_bad_trailers(void **state)
{
	struct fields trailers;
	struct pair p;

	(void)state;
	fields_init(&trailers);
	put_raw(&trailers, "x", "\r\n\r\nGET");
	pair_open(&p, H1_CLIENT);
	p.head.has_body = true;
	assert_int_equal(h1_write_head(p.h1, &p.head, false, &p.out), 0);
	buf_clear(&p.out);
	assert_int_equal(h1_write_end(p.h1, &trailers, &p.out), -EINVAL);
	assert_string_equal(written(&p), "");
	pair_close(&p);
	fields_free(&trailers);
}

static void test_bad_status(void **state)
{
	const unsigned bad[] = { 0, 1, 99, 1000, 4294967295 };
	struct pair p;

	(void)state;
	pair_serve(&p, GET);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		p.head.status = bad[i];
		assert_int_equal(h1_write_head(p.h1, &p.head, false, &p.out), -EINVAL);
	}
	assert_string_equal(written(&p), "");
	pair_close(&p);
}

/* Fields of one connection that somebody left in the list are not ours to pass on. */
static void test_left_fields(void **state)
{
	static const char *const names[] = { "connection",     "keep-alive", "proxy-connection", "transfer-encoding",
					     "upgrade",	       "te",	     "http2-settings",	 "host",
					     "content-length", "expect" };
	struct pair p;

	(void)state;
	pair_open(&p, H1_CLIENT);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		assert_int_equal(fields_add(&p.head.fields, names[i], strlen(names[i]), "x", 1), 0);
	assert_int_equal(h1_write_head(p.h1, &p.head, false, &p.out), 0);
	assert_string_equal(written(&p), "GET / HTTP/1.1\r\nHost: a.example\r\n\r\n");
	pair_close(&p);
}

static void test_full_buffer(void **state)
{
	static char large[6000];
	struct pair p;

	(void)state;
	memset(large, 'x', sizeof(large));
	pair_open(&p, H1_CLIENT);
	p.out.max = 5000;
	assert_int_equal(fields_add(&p.head.fields, "x", 1, large, sizeof(large)), 0);
	assert_int_equal(h1_write_head(p.h1, &p.head, false, &p.out), -E2BIG);
	assert_int_equal(p.out.len, 0);
	pair_close(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_request),
		cmocka_unit_test(test_request_parts),
		cmocka_unit_test(test_bodies),
		cmocka_unit_test(test_responses),
		cmocka_unit_test(test_response_until_close),
		cmocka_unit_test(test_interim_then_final),
		cmocka_unit_test(test_switch),
		cmocka_unit_test(test_after_a_problem),
		cmocka_unit_test(test_injection),
		cmocka_unit_test(test_bad_trailers),
		cmocka_unit_test(test_bad_status),
		cmocka_unit_test(test_left_fields),
		cmocka_unit_test(test_full_buffer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
