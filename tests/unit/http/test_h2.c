/* SPDX-License-Identifier: MIT */
/* Exchanges between our two ends: what one says the other must hear, and nothing else. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants the four above first */
#include <cmocka.h>

#include "http/h2.c"

#include "h2_pair.h"
#include "vocab/limits.h"

static void test_get(void **state)
{
	static const size_t pieces[] = { 1, 7, 100, 16000 };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(pieces); i++) {
		struct head head;
		struct seen *c, *s;

		pair_start(&p, &hello);
		p.piece = pieces[i];
		head_make(&head, "GET", "/a?b=c");
		field_add(&head.fields, "accept", "*/*");
		field_add(&head.fields, "cookie", "a=1; b=2");
		field_add(&head.fields, "keep-alive", "5");
		field_add(&head.fields, "proxy-connection", "x");
		field_add(&head.fields, "upgrade", "x");
		field_add(&head.fields, "http2-settings", "x");
		field_add(&head.fields, "te", "gzip");
		field_add(&head.fields, "host", "other.example");
		field_add(&head.fields, "x-empty", "");
		head.te_trailers = true;
		c = request(&head, true);
		head_free(&head);
		glue(&p);
		s = &p.server.seen[0];
		assert_int_equal(p.server.n, 1);
		assert_string_equal(s->first, "GET https://example.com /a?b=c|accept=*/*|x-empty=|cookie=a=1; b=2|te");
		assert_true(s->head_end && !s->has_body && !s->ends && s->closed && s->error == 0);
		assert_string_equal(c->first, "200|content-type=text/plain|length 5");
		assert_true(c->has_body && c->bytes == 5 && c->ends == 1 && c->closed && c->error == 0);
		assert_int_equal(c->sum, sum_add(0, "hello", 5));
		assert_int_equal(h2_streams(p.client.h2) + h2_streams(p.server.h2), 0);
		assert_string_equal(h2_problem(p.server.h2), "");
		assert_false(h2_is_done(p.client.h2) || h2_is_done(p.server.h2));
		pair_stop(&p);
	}
}

static void test_many_streams(void **state)
{
	struct h2_stream *stream;
	struct head head;

	(void)state;
	pair_start(&p, &hello);
	glue(&p);
	assert_int_equal(h2_room(p.client.h2), NP_H2_STREAMS);
	assert_int_equal(h2_room(p.server.h2), 0);
	for (size_t i = 0; i < NP_H2_STREAMS; i++)
		get(i % 2 ? "POST" : "GET", "/", i % 2 == 0);
	assert_int_equal(h2_room(p.client.h2), 0);
	head_make(&head, "GET", "/");
	assert_int_equal(h2_request(p.client.h2, &head, true, NULL, &stream), -EAGAIN);
	glue(&p);
	assert_int_equal(h2_streams(p.server.h2), NP_H2_STREAMS / 2);
	assert_int_equal(h2_room(p.client.h2), NP_H2_STREAMS / 2);
	for (size_t i = 1; i < NP_H2_STREAMS; i += 2)
		assert_int_equal(h2_send_end(p.client.seen[i].stream, NULL), 0);
	glue(&p);
	for (size_t i = 0; i < p.client.n; i++)
		assert_true(p.client.seen[i].closed && p.client.seen[i].error == 0 && p.client.seen[i].bytes == 5);
	/* A long life is no flood. */
	for (size_t i = 0; i < 30000; i++) {
		p.client.n = p.server.n = 0;
		get("GET", "/", true);
		glue(&p);
		assert_true(p.client.seen[0].closed && p.client.seen[0].error == 0);
	}
	head_free(&head);
	pair_stop(&p);
}

static void app_trailers(struct side *side, struct seen *seen)
{
	struct fields trailers;

	(void)side;
	fields_init(&trailers);
	field_add(&trailers, "grpc-status", "0");
	field_add(&trailers, "content-length", "3");
	field_add(&trailers, "set-cookie", "a=b");
	field_add(&trailers, "www-authenticate", "Basic");
	field_add(&trailers, "grpc-message", "fine");
	assert_int_equal(respond(seen->stream, 200, false), 0);
	assert_int_equal(h2_send_body(seen->stream, "abc", 3), 0);
	assert_int_equal(h2_send_end(seen->stream, &trailers), 0);
	fields_free(&trailers);
}

static void test_trailers(void **state)
{
	const struct app app = { .end = app_trailers };
	struct fields trailers;
	struct seen *c;

	(void)state;
	for (size_t body = 0; body < 3; body++) {
		pair_start(&p, &app);
		fields_init(&trailers);
		c = get("POST", "/", false);
		if (body)
			assert_int_equal(h2_send_body(c->stream, "12345", 5), 0);
		if (body == 2)
			glue(&p); /* nothing is left when the end is told */
		field_add(&trailers, "x-sum", "15");
		field_add(&trailers, "cookie", "a=b");
		field_add(&trailers, "authorization", "Basic x");
		assert_int_equal(h2_send_end(c->stream, &trailers), 0);
		fields_clear(&trailers);
		field_add(&trailers, "x-sum", "99");
		glue(&p);
		assert_string_equal(p.server.seen[0].trailers, "|x-sum=15");
		assert_int_equal(p.server.seen[0].bytes, body ? 5 : 0);
		assert_string_equal(c->trailers, "|grpc-status=0|grpc-message=fine");
		assert_true(c->bytes == 3 && c->ends == 1 && c->closed && c->error == 0);
		fields_free(&trailers);
		pair_stop(&p);
	}
}

/* Trailers of which nothing may be sent are none. */
static void test_no_trailers(void **state)
{
	struct fields trailers;
	struct seen *c;

	(void)state;
	pair_start(&p, &hello);
	fields_init(&trailers);
	field_add(&trailers, "host", "x");
	c = get("POST", "/", false);
	assert_int_equal(h2_send_end(c->stream, &trailers), 0);
	glue(&p);
	assert_int_equal(p.server.seen[0].ends, 1);
	assert_string_equal(p.server.seen[0].trailers, "");
	assert_true(c->closed && c->error == 0);
	fields_free(&trailers);
	pair_stop(&p);
}

static void app_reset_head(struct side *side, struct seen *seen, struct head *head, bool end)
{
	(void)side;
	(void)head;
	(void)end;
	h2_reset(seen->stream, H2_REFUSED_STREAM);
	h2_reset(seen->stream, H2_CANCEL); /* the first one counts */
	assert_int_equal(respond(seen->stream, 200, true), -EPIPE);
	assert_false(seen->closed);
}

static void app_reset_body(struct side *side, struct seen *seen, const char *data, size_t len)
{
	(void)side;
	(void)data;
	(void)len;
	h2_reset(seen->stream, H2_CANCEL);
}

static void test_reset(void **state)
{
	const struct app in_head = { .head = app_reset_head }, in_body = { .body = app_reset_body };
	struct seen *c;

	(void)state;
	pair_start(&p, &in_head);
	c = get("POST", "/", false);
	feed_start(c, 1000);
	glue(&p);
	assert_true(c->closed && c->error == H2_REFUSED_STREAM && c->heads == 0);
	assert_true(p.server.seen[0].closed && p.server.seen[0].bytes == 0 && p.server.seen[0].ends == 0);
	assert_string_equal(h2_problem(p.client.h2), "the peer reset the stream: REFUSED_STREAM");
	pair_stop(&p);

	pair_start(&p, &in_body);
	p.piece = 100; /* a frame in many pieces, of which only the first is told */
	for (size_t i = 0; i < 100; i++) {
		c = get("POST", "/", false);
		feed_start(c, NP_H2_CONNECTION);
		glue(&p);
		assert_true(c->closed && c->error == H2_CANCEL);
		assert_true(p.server.seen[i].closed && p.server.seen[i].bytes <= 100 && p.server.seen[i].ends == 0);
	}
	/* And none of its bytes is missing from the connection's window. */
	p.server.app = (struct app){ 0 };
	c = get("POST", "/", false);
	feed_start(c, 2 * NP_H2_CONNECTION);
	glue(&p);
	assert_int_equal(p.server.seen[100].bytes, 2 * NP_H2_CONNECTION);
	/* The other way round, and one that was not even sent. */
	h2_reset(c->stream, H2_CANCEL);
	c = get("GET", "/", true);
	h2_reset(c->stream, H2_CANCEL);
	glue(&p);
	assert_true(c->closed && c->error == H2_CANCEL);
	assert_int_equal(p.server.n, 101);
	assert_true(p.server.seen[100].closed && p.server.seen[100].error == H2_CANCEL);
	pair_stop(&p);
}

static void test_goaway(void **state)
{
	struct seen *old, *late;

	(void)state;
	pair_start(&p, NULL);
	old = get("GET", "/", true);
	glue(&p);
	h2_goaway(p.server.h2);
	h2_goaway(p.server.h2);
	/* On its way when the GOAWAY comes: refused, so that it may be tried elsewhere. */
	late = get("GET", "/late", true);
	pass(&p.server, &p.client, p.piece, 65536);
	assert_int_equal(h2_room(p.client.h2), 0);
	glue(&p);
	assert_true(late->closed && late->error == H2_REFUSED_STREAM);
	assert_int_equal(p.server.n, 1);
	assert_false(h2_is_done(p.server.h2) || h2_is_done(p.client.h2));
	app_hello(&p.server, &p.server.seen[0]);
	glue(&p);
	assert_true(old->closed && old->error == 0 && old->bytes == 5);
	assert_true(h2_is_done(p.server.h2) && h2_is_done(p.client.h2));
	pair_stop(&p);

	pair_start(&p, &hello);
	old = get("POST", "/", false);
	glue(&p);
	h2_goaway(p.client.h2);
	assert_int_equal(h2_room(p.client.h2), 0);
	glue(&p);
	assert_int_equal(h2_send_end(old->stream, NULL), 0);
	glue(&p);
	assert_true(old->closed && old->error == 0 && h2_is_done(p.client.h2) && h2_is_done(p.server.h2));
	pair_stop(&p);
}

static void app_continue(struct side *side, struct seen *seen, struct head *head, bool end)
{
	(void)side;
	assert_true(head->expects_continue && !end);
	assert_int_equal(respond(seen->stream, 101, false), -EINVAL);
	assert_int_equal(respond(seen->stream, 100, true), -EINVAL);
	assert_int_equal(respond(seen->stream, 100, false), 0);
	assert_int_equal(respond(seen->stream, 103, false), 0);
}

static void app_continue_head(struct side *side, struct seen *seen, struct head *head, bool end)
{
	(void)side;
	(void)end;
	if (head->status == 100)
		feed_start(seen, 1000);
	assert_int_equal(head->has_body, head->status == 200);
}

static void test_continue(void **state)
{
	const struct app app = { .head = app_continue, .end = app_hello };
	struct head head;
	struct seen *c;

	(void)state;
	pair_start(&p, &app);
	p.client.app.head = app_continue_head;
	head_make(&head, "PUT", "/");
	head.expects_continue = true;
	head.has_length = true;
	head.length = 1000;
	c = request(&head, false);
	head_free(&head);
	glue(&p);
	assert_string_equal(p.server.seen[0].first, "PUT https://example.com /|length 1000|expects");
	assert_int_equal(p.server.seen[0].bytes, 1000);
	assert_string_equal(c->first, "100");
	assert_int_equal(c->heads, 3);
	assert_string_equal(c->last, "200|content-type=text/plain|length 5");
	assert_true(c->bytes == 5 && c->closed && c->error == 0);
	pair_stop(&p);
}

static void app_empty(struct side *side, struct seen *seen, struct head *request_head, bool end)
{
	struct head head;
	bool late = strstr(request_head->target, "late");

	(void)side;
	(void)end;
	head_init(&head);
	head.status = (unsigned)atoi(request_head->target + 1);
	head.has_length = true;
	head.length = 1234;
	assert_int_equal(h2_respond(seen->stream, &head, !late), 0);
	if (late)
		assert_int_equal(h2_send_end(seen->stream, NULL), 0);
	head_free(&head);
}

/* Responses that have a length and no body. late: the end comes in a frame of its own. */
static void test_no_body(void **state)
{
	static const char *const cases[][3] = {
		{ "HEAD", "/200", "200|length 1234" },
		{ "HEAD", "/200late", "200|length 1234" },
		{ "GET", "/204", "204" },
		{ "GET", "/204late", "204" },
		{ "GET", "/304", "304|length 1234" },
		{ "GET", "/304late", "304|length 1234" },
	};
	const struct app app = { .head = app_empty };

	(void)state;
	pair_start(&p, &app);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		bool late = strstr(cases[i][1], "late");
		struct seen *c = get(cases[i][0], cases[i][1], true);

		glue(&p);
		assert_string_equal(c->first, cases[i][2]);
		assert_true(!c->has_body && c->head_end == !late && c->ends == late);
		assert_true(c->closed && c->error == 0);
	}
	pair_stop(&p);
}

/* content-length and the body must agree, in both directions. */
static void test_length(void **state)
{
	static const size_t sent[] = { 0, 9, 11, 20 };
	struct head head;
	struct seen *c;

	(void)state;
	for (size_t i = 0; i < 2 * ARRAY_SIZE(sent); i++) {
		size_t n = sent[i / 2];
		bool up = i % 2;
		struct h2 *hears;

		pair_start(&p, NULL);
		head_make(&head, "POST", "/");
		head.has_length = up;
		head.length = 10;
		c = request(&head, !up);
		head_free(&head);
		glue(&p);
		if (up) {
			assert_int_equal(h2_send_body(c->stream, "12345678901234567890", n), 0);
			assert_int_equal(h2_send_end(c->stream, NULL), 0);
		} else {
			head_init(&head);
			head.status = 200;
			head.has_length = true;
			head.length = 10;
			assert_int_equal(h2_respond(p.server.seen[0].stream, &head, false), 0);
			assert_int_equal(h2_send_body(p.server.seen[0].stream, "12345678901234567890", n), 0);
			assert_int_equal(h2_send_end(p.server.seen[0].stream, NULL), 0);
		}
		glue(&p);
		assert_true(c->closed && p.server.seen[0].closed && p.server.seen[0].ends == 0 && c->ends == 0);
		hears = up ? p.server.h2 : p.client.h2;
		assert_int_equal((up ? &p.server.seen[0] : c)->error, H2_PROTOCOL_ERROR);
		assert_string_equal(h2_problem(hears), "a body that does not fit its head");
		pair_stop(&p);
	}
}

static void test_connect(void **state)
{
	struct seen *c;

	(void)state;
	pair_start(&p, NULL);
	c = get("CONNECT", "", false);
	glue(&p);
	assert_string_equal(p.server.seen[0].first, "CONNECT -://example.com ");
	assert_int_equal(respond(p.server.seen[0].stream, 200, false), 0);
	feed_start(c, 10);
	assert_int_equal(h2_send_body(p.server.seen[0].stream, "abc", 3), 0);
	glue(&p);
	assert_int_equal(p.server.seen[0].bytes, 10);
	assert_int_equal(c->bytes, 3);
	pair_stop(&p);
}

static void test_bad_requests(void **state)
{
	struct h2_stream *stream;
	struct head head;

	(void)state;
	pair_start(&p, NULL);
	head_init(&head);
	assert_int_equal(h2_request(p.client.h2, &head, true, NULL, &stream), -EINVAL);
	head_free(&head);
	head_make(&head, "GET", "");
	assert_int_equal(h2_request(p.client.h2, &head, true, NULL, &stream), -EINVAL);
	assert_int_equal(h2_request(p.server.h2, &head, true, NULL, &stream), -EINVAL);
	assert_int_equal(h2_streams(p.client.h2), 0);
	head_free(&head);
	pair_stop(&p);
}

/* As large as our own bounds allow, both ways. */
static void test_large_head(void **state)
{
	static char value[NP_HEAD_BYTES / NP_HEAD_FIELDS - 16];
	struct head head;
	char name[16];

	(void)state;
	pair_start(&p, &hello);
	memset(value, '~', sizeof(value) - 1); /* among the longest codes of HPACK */
	head_make(&head, "GET", "/");
	for (int i = 0; i < NP_HEAD_FIELDS; i++) {
		snprintf(name, sizeof(name), "x-%d", i);
		field_add(&head.fields, name, value);
	}
	request(&head, true);
	glue(&p);
	assert_true(p.client.seen[0].closed && p.client.seen[0].error == 0 && p.client.seen[0].bytes == 5);
	head.method = NULL;
	head.status = 404;
	p.server.app = (struct app){ 0 };
	get("GET", "/", true);
	glue(&p);
	assert_int_equal(h2_respond(p.server.seen[1].stream, &head, true), 0);
	glue(&p);
	assert_true(p.client.seen[1].closed && p.client.seen[1].error == 0 && p.client.seen[1].heads == 1);
	head_free(&head);
	pair_stop(&p);
}

/* What an event returns is what h2_read() returns, and the end of it. */
static void test_event_fails(void **state)
{
	struct buf out = BUF_INIT(1024);
	struct seen *c;

	(void)state;
	pair_start(&p, NULL);
	p.server.fails = -ENOSPC;
	c = get("POST", "/", false);
	feed_start(c, 100);
	while (pass(&p.client, &p.server, p.piece, 65536))
		;
	assert_int_equal(h2_read(p.server.h2, "", 0), -ENOSPC);
	assert_true(h2_is_done(p.server.h2) && !h2_wants_write(p.server.h2));
	assert_int_equal(h2_write(p.server.h2, &out, 1000), 0);
	assert_int_equal(out.len, 0);
	assert_int_equal(respond(p.server.seen[0].stream, 200, true), -EPIPE);
	h2_goaway(p.server.h2);
	pair_stop(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_get),	     cmocka_unit_test(test_many_streams),
		cmocka_unit_test(test_trailers),     cmocka_unit_test(test_no_trailers),
		cmocka_unit_test(test_reset),	     cmocka_unit_test(test_goaway),
		cmocka_unit_test(test_continue),     cmocka_unit_test(test_no_body),
		cmocka_unit_test(test_length),	     cmocka_unit_test(test_connect),
		cmocka_unit_test(test_bad_requests), cmocka_unit_test(test_large_head),
		cmocka_unit_test(test_event_fails),
	};

	return cmocka_run_group_tests_name("h2", tests, NULL, NULL);
}
