/* SPDX-License-Identifier: MIT */
/* One end of HTTP/2, and opposite to it a peer that says whatever the test likes, frame by frame. */
#pragma once

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "vocab/limits.h"
#include "http/h2.h"

enum { DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, PUSH_PROMISE, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION };
enum { END_STREAM = 1, ACK = 1, END_HEADERS = 4, PADDED = 8 };

#define MAGIC "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

struct raw {
	struct h2 *h2;
	struct buf in; /* what the peer says next */
	struct h2_stream *stream;
	bool answers; /* 200 to every request */
	char head[512], trailers[256];
	size_t heads, bytes, ends, closed, refused;
	uint32_t error; /* of the stream that closed last */
	/* What we told the peer. */
	size_t resets, goaways, acks;
	uint32_t reset, reset_code, goaway_code;
};

static inline int raw_on_head(void *ctx, struct h2_stream *stream, struct head *head, bool end)
{
	struct raw *raw = ctx;
	size_t n;

	raw->stream = stream;
	raw->heads++;
	if (head->method)
		n = (size_t)snprintf(raw->head, sizeof(raw->head), "%s %s %s %s", head->method,
				     head->scheme ? head->scheme : "-", head->authority, head->target);
	else
		n = (size_t)snprintf(raw->head, sizeof(raw->head), "%u", head->status);
	for (size_t i = 0; i < head->fields.n && n < sizeof(raw->head); i++)
		n += (size_t)snprintf(raw->head + n, sizeof(raw->head) - n, "|%s=%s", head->fields.items[i].name,
				      head->fields.items[i].value);
	if (raw->answers) {
		struct head ok;

		head_init(&ok);
		ok.status = 200;
		assert_int_equal(h2_respond(stream, &ok, end), 0);
		head_free(&ok);
	}
	return 0;
}

static inline int raw_on_body(void *ctx, struct h2_stream *stream, const char *data, size_t len)
{
	struct raw *raw = ctx;

	(void)data;
	raw->bytes += len;
	h2_consume(stream, len);
	return 0;
}

static inline int raw_on_end(void *ctx, struct h2_stream *stream, const struct fields *trailers)
{
	struct raw *raw = ctx;
	size_t n = 0;

	raw->ends++;
	raw->trailers[0] = '\0';
	for (size_t i = 0; i < trailers->n && n < sizeof(raw->trailers); i++)
		n += (size_t)snprintf(raw->trailers + n, sizeof(raw->trailers) - n, "|%s=%s", trailers->items[i].name,
				      trailers->items[i].value);
	if (raw->answers)
		assert_int_equal(h2_send_end(stream, NULL), 0);
	return 0;
}

static inline void raw_on_drained(void *ctx, struct h2_stream *stream)
{
	(void)ctx;
	(void)stream;
}

static inline void raw_on_closed(void *ctx, struct h2_stream *stream, uint32_t error)
{
	struct raw *raw = ctx;

	(void)stream;
	raw->closed++;
	raw->error = error;
}

static inline void raw_on_refused(void *ctx, const char *problem)
{
	struct raw *raw = ctx;

	assert_string_not_equal(problem, "");
	raw->refused++;
}

static inline void raw_frame(struct raw *raw, unsigned type, unsigned flags, uint32_t id, const void *data, size_t len)
{
	const unsigned char header[9] = { (unsigned char)(len >> 16), (unsigned char)(len >> 8),
					  (unsigned char)len,	      (unsigned char)type,
					  (unsigned char)flags,	      (unsigned char)(id >> 24),
					  (unsigned char)(id >> 16),  (unsigned char)(id >> 8),
					  (unsigned char)id };

	buf_append(&raw->in, header, sizeof(header));
	buf_append(&raw->in, data, len);
}

static inline void raw_number(struct raw *raw, unsigned type, uint32_t id, uint32_t number)
{
	const unsigned char data[4] = { (unsigned char)(number >> 24), (unsigned char)(number >> 16),
					(unsigned char)(number >> 8), (unsigned char)number };

	raw_frame(raw, type, 0, id, data, sizeof(data));
}

static inline void hpack_text(struct buf *block, const char *text, size_t len)
{
	size_t rest = len;

	if (len < 127) {
		buf_append(block, &(char){ (char)len }, 1);
	} else {
		buf_append(block, "\x7f", 1);
		for (rest -= 127; rest >= 128; rest >>= 7)
			buf_append(block, &(char){ (char)(rest | 0x80) }, 1);
		buf_append(block, &(char){ (char)rest }, 1);
	}
	buf_append(block, text, len);
}

/* A literal without indexing. */
static inline void hpack_field(struct buf *block, const char *name, const char *value)
{
	buf_append(block, "", 1);
	hpack_text(block, name, strlen(name));
	hpack_text(block, value, strlen(value));
}

/* A block in as many frames as it takes. */
static inline void raw_block(struct raw *raw, uint32_t id, unsigned flags, const struct buf *block)
{
	size_t done = 0, part;

	assert_int_equal(buf_error(block), 0);
	do {
		part = block->len - done < 16384 ? block->len - done : 16384;
		raw_frame(raw, done ? CONTINUATION : HEADERS,
			  (done ? 0 : flags) | (done + part == block->len ? END_HEADERS : 0), id, block->data + done,
			  part);
		done += part;
	} while (done < block->len);
}

/* Names and values in turn, up to a NULL. */
static inline void raw_head(struct raw *raw, uint32_t id, unsigned flags, const char *const *fields)
{
	struct buf block = BUF_INIT(1 << 20);

	for (; fields[0]; fields += 2)
		hpack_field(&block, fields[0], fields[1]);
	raw_block(raw, id, flags, &block);
	buf_free(&block);
}

#define HEAD(...) ((const char *const[]){ __VA_ARGS__, NULL })
#define GET	  HEAD(":method", "GET", ":scheme", "https", ":authority", "example.com", ":path", "/")

static inline void raw_hear(struct raw *raw, const char *text, size_t len)
{
	const unsigned char *data = (const unsigned char *)text;
	const size_t magic = strlen(MAGIC);

	if (len >= magic && !memcmp(data, MAGIC, magic))
		data += magic, len -= magic;
	while (len) {
		size_t size;

		assert_true(len >= 9);
		size = (size_t)data[0] << 16 | (size_t)data[1] << 8 | data[2];
		assert_true(len >= 9 + size);
		if (data[3] == RST_STREAM) {
			raw->resets++;
			raw->reset = (uint32_t)data[7] << 8 | data[8];
			raw->reset_code = data[12];
		} else if (data[3] == GOAWAY) {
			raw->goaways++;
			raw->goaway_code = data[16];
		} else if (data[3] == PING || data[3] == SETTINGS) {
			raw->acks += data[4] & ACK;
		}
		data += 9 + size;
		len -= 9 + size;
	}
}

/* Says all of it and hears the answer. Returns what h2_read() did. */
static inline int raw_say(struct raw *raw)
{
	struct buf out = BUF_INIT(16 << 20);
	int e;

	assert_int_equal(buf_error(&raw->in), 0);
	e = h2_read(raw->h2, raw->in.len ? raw->in.data : "", raw->in.len);
	buf_clear(&raw->in);
	assert_int_equal(h2_write(raw->h2, &out, SIZE_MAX), 0);
	assert_false(h2_wants_write(raw->h2));
	raw_hear(raw, out.data, out.len);
	buf_free(&out);
	if (e < 0) {
		assert_true(*h2_problem(raw->h2));
		assert_true(h2_is_done(raw->h2));
	}
	return e;
}

/* As it is before the peer said anything. */
static inline void raw_new(struct raw *raw, enum h2_role role)
{
	static const struct h2_events events = { raw_on_head,	 raw_on_body,	raw_on_end,
						 raw_on_drained, raw_on_closed, raw_on_refused };

	*raw = (struct raw){ .in = BUF_INIT(16 << 20) };
	assert_int_equal(h2_new(role, &events, raw, &raw->h2), 0);
}

static inline void raw_start(struct raw *raw, enum h2_role role)
{
	raw_new(raw, role);
	if (role == H2_SERVER)
		buf_puts(&raw->in, MAGIC);
	raw_frame(raw, SETTINGS, 0, 0, NULL, 0);
	raw_frame(raw, SETTINGS, ACK, 0, NULL, 0);
	assert_int_equal(raw_say(raw), 0);
}

/* CLIENT: a request of ours, on the next stream. */
static inline void raw_ask(struct raw *raw)
{
	struct h2_stream *stream;
	struct head head;

	head_init(&head);
	assert_int_equal(head_set_method(&head, "GET", 3), 0);
	assert_int_equal(head_set_authority(&head, "a", 1), 0);
	assert_int_equal(head_set_target(&head, "/", 1), 0);
	assert_int_equal(h2_request(raw->h2, &head, true, NULL, &stream), 0);
	head_free(&head);
	assert_int_equal(raw_say(raw), 0);
}

static inline void raw_stop(struct raw *raw)
{
	h2_free(raw->h2);
	buf_free(&raw->in);
}
