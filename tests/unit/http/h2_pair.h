/* SPDX-License-Identifier: MIT */
/* A client and a server of HTTP/2, glued together in memory. Everything static: it is part of each test program. */
#pragma once

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "vocab/limits.h"
#include "http/h2.h"

#define SEEN_MAX 256

/* What one end was told about a stream. */
struct seen {
	struct h2_stream *stream;
	size_t heads, bytes, drained, ends;
	uint32_t sum;
	char first[512], last[512]; /* heads, as text */
	char trailers[256];
	bool head_end, has_body, closed;
	uint32_t error;
	struct feed {
		size_t left, total;
		uint32_t sum;
		bool end;
	} feed; /* a body that it sends, as fast as the backlog allows */
};

struct side;
struct app {
	void (*head)(struct side *side, struct seen *seen, struct head *head, bool end);
	void (*body)(struct side *side, struct seen *seen, const char *data, size_t len);
	void (*end)(struct side *side, struct seen *seen);
};

struct side {
	struct h2 *h2;
	struct app app;
	struct seen seen[SEEN_MAX];
	size_t n;
	bool hoards; /* gives nothing back to the window */
	int fails;   /* what body() returns */
	char order[4096];
	size_t n_order;
};

struct pair {
	struct side client, server;
	size_t piece; /* bytes per h2_read() */
};

static uint32_t sum_add(uint32_t sum, const char *data, size_t len)
{
	for (size_t i = 0; i < len; i++)
		sum = sum * 31 + (unsigned char)data[i];
	return sum;
}

static inline void head_print(const struct head *head, char text[static 512])
{
	size_t n;

	if (head->method)
		n = (size_t)snprintf(text, 512, "%s %s://%s %s", head->method, head->scheme ? head->scheme : "-",
				     head->authority, head->target);
	else
		n = (size_t)snprintf(text, 512, "%u", head->status);
	for (size_t i = 0; i < head->fields.n && n < 512; i++)
		n += (size_t)snprintf(text + n, 512 - n, "|%s=%s", head->fields.items[i].name,
				      head->fields.items[i].value);
	if (head->has_length && n < 512)
		n += (size_t)snprintf(text + n, 512 - n, "|length %llu", (unsigned long long)head->length);
	if (head->te_trailers && n < 512)
		n += (size_t)snprintf(text + n, 512 - n, "|te");
	if (head->expects_continue && n < 512)
		snprintf(text + n, 512 - n, "|expects");
}

static inline struct seen *side_find(struct side *side, struct h2_stream *stream)
{
	for (size_t i = side->n; i--;)
		if (side->seen[i].stream == stream && !side->seen[i].closed)
			return &side->seen[i];
	assert_true(side->n < SEEN_MAX);
	side->seen[side->n] = (struct seen){ .stream = stream };
	return &side->seen[side->n++];
}

/* Sends as much as a careful owner would. */
static inline void feed_more(struct seen *seen)
{
	char data[16384];
	struct feed *feed = &seen->feed;

	while (feed->left && h2_backlog(seen->stream) <= NP_BACKLOG_HIGH) {
		size_t len = feed->left < sizeof(data) ? feed->left : sizeof(data);

		for (size_t i = 0; i < len; i++)
			data[i] = (char)((feed->total - feed->left + i) * 7 >> 3);
		assert_int_equal(h2_send_body(seen->stream, data, len), 0);
		feed->sum = sum_add(feed->sum, data, len);
		feed->left -= len;
	}
	if (!feed->left && !feed->end) {
		feed->end = true;
		assert_int_equal(h2_send_end(seen->stream, NULL), 0);
	}
}

static inline void feed_start(struct seen *seen, size_t total)
{
	seen->feed = (struct feed){ .left = total, .total = total };
	feed_more(seen);
}

static inline int on_head(void *ctx, struct h2_stream *stream, struct head *head, bool end)
{
	struct side *side = ctx;
	struct seen *seen = side_find(side, stream);
	struct buf out = BUF_INIT(1 << 20);

	head_print(head, seen->heads++ ? seen->last : seen->first);
	seen->head_end = end;
	seen->has_body = head->has_body;
	if (side->app.head)
		side->app.head(side, seen, head, end);
	/* Inside of an event neither does harm. */
	assert_int_equal(h2_write(side->h2, &out, 65536), 0);
	assert_int_equal(out.len, 0);
	assert_int_equal(h2_read(side->h2, "x", 1), -EBUSY);
	return 0;
}

static inline int on_body(void *ctx, struct h2_stream *stream, const char *data, size_t len)
{
	struct side *side = ctx;
	struct seen *seen = side_find(side, stream);

	assert_true(seen->heads && !seen->ends && !seen->head_end && len);
	seen->bytes += len;
	seen->sum = sum_add(seen->sum, data, len);
	if (side->n_order < sizeof(side->order))
		side->order[side->n_order++] = (char)('a' + (seen - side->seen));
	if (side->app.body)
		side->app.body(side, seen, data, len);
	if (!side->hoards)
		h2_consume(stream, len);
	return side->fails;
}

static inline int on_end(void *ctx, struct h2_stream *stream, const struct fields *trailers)
{
	struct side *side = ctx;
	struct seen *seen = side_find(side, stream);
	size_t n = 0;

	assert_true(seen->heads && !seen->ends && !seen->head_end);
	seen->ends++;
	for (size_t i = 0; i < trailers->n; i++)
		n += (size_t)snprintf(seen->trailers + n, sizeof(seen->trailers) - n, "|%s=%s", trailers->items[i].name,
				      trailers->items[i].value);
	if (side->app.end)
		side->app.end(side, seen);
	return 0;
}

static inline void on_drained(void *ctx, struct h2_stream *stream)
{
	struct seen *seen = side_find(ctx, stream);

	assert_true(h2_backlog(stream) < NP_BACKLOG_LOW);
	seen->drained++;
	feed_more(seen);
}

static inline void on_closed(void *ctx, struct h2_stream *stream, uint32_t error)
{
	struct seen *seen = side_find(ctx, stream);

	assert_false(seen->closed);
	seen->closed = true;
	seen->error = error;
	/* All of these are too late, and must do nothing. */
	h2_consume(stream, 1);
	h2_reset(stream, H2_CANCEL);
	assert_int_equal(h2_send_body(stream, "x", 1), -EPIPE);
	assert_int_equal(h2_send_end(stream, NULL), -EPIPE);
}

static inline void on_refused(void *ctx, const char *problem)
{
	(void)ctx;
	fail_msg("a request that was refused: %s", problem);
}

static const struct h2_events events = { on_head, on_body, on_end, on_drained, on_closed, on_refused };

/* Bytes from one end to the other, at most max; false when there are none. */
static bool pass(struct side *from, struct side *to, size_t piece, size_t max)
{
	_buf_ struct buf out = BUF_INIT(8 << 20);

	assert_int_equal(h2_write(from->h2, &out, max), 0);
	assert_true(out.len <= max + 16384 + 9);
	for (size_t i = 0; i < out.len; i += piece) {
		size_t len = out.len - i < piece ? out.len - i : piece;
		int e = h2_read(to->h2, out.data + i, len);

		if (to->fails && e == to->fails)
			return false;
		if (e < 0)
			fail_msg("%s", h2_problem(to->h2));
	}
	return out.len > 0;
}

static inline void glue(struct pair *pair)
{
	bool moved;

	do {
		moved = pass(&pair->client, &pair->server, pair->piece, 65536);
		moved |= pass(&pair->server, &pair->client, pair->piece, 65536);
	} while (moved);
	assert_false(h2_wants_write(pair->client.h2) || h2_wants_write(pair->server.h2));
}

static inline void pair_start(struct pair *pair, const struct app *app)
{
	memset(pair, 0, sizeof(*pair));
	pair->piece = 16000;
	if (app)
		pair->server.app = *app;
	assert_int_equal(h2_new(H2_CLIENT, &events, &pair->client, &pair->client.h2), 0);
	assert_int_equal(h2_new(H2_SERVER, &events, &pair->server, &pair->server.h2), 0);
}

static inline void pair_stop(struct pair *pair)
{
	h2_free(pair->client.h2);
	h2_free(pair->server.h2);
}

static struct pair p; /* large, and only one at a time */

static inline void head_make(struct head *head, const char *method, const char *target)
{
	head_init(head);
	assert_int_equal(head_set_method(head, method, strlen(method)), 0);
	assert_int_equal(head_set_authority(head, "example.com", 11), 0);
	assert_int_equal(head_set_target(head, target, strlen(target)), 0);
	assert_int_equal(head_set_scheme(head, "https", 5), 0);
}

static inline void field_add(struct fields *fields, const char *name, const char *value)
{
	assert_int_equal(fields_add(fields, name, strlen(name), value, strlen(value)), 0);
}

static inline struct seen *request(struct head *head, bool end)
{
	struct h2_stream *stream;

	assert_int_equal(h2_request(p.client.h2, head, end, &p.client, &stream), 0);
	assert_ptr_equal(h2_stream_user(stream), &p.client);
	return side_find(&p.client, stream);
}

static inline struct seen *get(const char *method, const char *target, bool end)
{
	struct head head;
	struct seen *seen;

	head_make(&head, method, target);
	seen = request(&head, end);
	head_free(&head);
	return seen;
}

static inline int respond(struct h2_stream *stream, unsigned status, bool end)
{
	struct head head;
	int e;

	head_init(&head);
	head.status = status;
	e = h2_respond(stream, &head, end);
	head_free(&head);
	return e;
}

static inline void app_hello(struct side *side, struct seen *seen)
{
	struct head head;

	(void)side;
	head_init(&head);
	head.status = 200;
	head.length = 5;
	head.has_length = true;
	field_add(&head.fields, "content-type", "text/plain");
	field_add(&head.fields, "connection", "close");
	field_add(&head.fields, "transfer-encoding", "chunked");
	field_add(&head.fields, "content-length", "77");
	assert_int_equal(h2_respond(seen->stream, &head, false), 0);
	assert_int_equal(h2_respond(seen->stream, &head, false), -EALREADY);
	head_free(&head);
	assert_int_equal(h2_send_body(seen->stream, "he", 2), 0);
	assert_int_equal(h2_send_body(seen->stream, "llo", 3), 0);
	assert_int_equal(h2_backlog(seen->stream), 5);
	assert_int_equal(h2_send_end(seen->stream, NULL), 0);
	assert_int_equal(h2_send_body(seen->stream, "!", 1), -EPIPE);
}

static inline void app_hello_head(struct side *side, struct seen *seen, struct head *head, bool end)
{
	(void)head;
	if (end)
		app_hello(side, seen);
}

static const struct app hello __attribute__((unused)) = { .head = app_hello_head, .end = app_hello };
