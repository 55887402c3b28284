/* SPDX-License-Identifier: MIT */
/* Clients and origins of a test: HTTP/1.1 or HTTP/2 on the far end of one of the worker's connections. */
#pragma once

#include "base/table.h"
#include "http/h1.h"
#include "http/h2.h"

#define TALKS 8

/* A request and its response, as this peer sees it. */
struct talk {
	struct h2_stream *stream;
	char words[512];      /* what came, in words: "POST /a len=3 end " */
	struct buf body;      /* what came of it */
	struct fields fields; /* of the last head */
	bool ended, closed;
};

struct peer {
	struct end end;
	struct h1 *h1;
	struct h2 *h2;
	bool server;
	char host[64];	   /* that a client asks for */
	struct buf raw;	   /* all that came */
	struct buf unread; /* HTTP/1.1: what came behind the message at hand */
	struct talk talks[TALKS];
	unsigned n; /* of them */
	bool keeps; /* it gives no window back */
	bool eof, said_all;
};

static void talk_note(struct talk *talk, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void talk_note(struct talk *talk, const char *format, ...)
{
	size_t at = strlen(talk->words);
	va_list args;

	va_start(args, format);
	vsnprintf(talk->words + at, sizeof(talk->words) - at, format, args);
	va_end(args);
}

static struct peer *last_asked; /* the origin that got the latest request */

static struct talk *talk_new(struct peer *peer)
{
	struct talk *talk = &peer->talks[peer->n++];

	assert_true(peer->n <= TALKS);
	*talk = (struct talk){ .body = BUF_INIT(64u << 20) };
	if (peer->server)
		last_asked = peer;
	fields_init(&talk->fields);
	return talk;
}

/* -- what comes ----------------------------------------------------------------------------- */

static void talk_head(struct talk *talk, const struct head *head)
{
	if (head->method)
		talk_note(talk, "%s %s ", head->method, head->target);
	else
		talk_note(talk, "%u ", head->status);
	if (head->has_length && (head->status == 0 || head->status >= 200))
		talk_note(talk, "len=%llu ", (unsigned long long)head->length);
	if (head->expects_continue)
		talk_note(talk, "expects ");
	fields_clear(&talk->fields);
	assert_int_equal(fields_copy(&talk->fields, &head->fields), 0);
}

static void talk_end(struct talk *talk, const struct fields *trailers)
{
	talk->ended = true;
	talk_note(talk, "end ");
	for (size_t i = 0; trailers && i < trailers->n; i++)
		talk_note(talk, "%s=%s ", trailers->items[i].name, trailers->items[i].value);
}

static struct talk *h1_talk(struct peer *peer)
{
	assert_true(peer->n > 0);
	return &peer->talks[peer->n - 1];
}

static int on_h1_head(void *ctx, struct head *head)
{
	struct peer *peer = ctx;

	talk_head(peer->server ? talk_new(peer) : h1_talk(peer), head);
	return 0;
}

static int on_h1_body(void *ctx, const char *data, size_t len)
{
	buf_append(&h1_talk(ctx)->body, data, len);
	return 0;
}

static int on_h1_end(void *ctx, const struct fields *trailers)
{
	talk_end(h1_talk(ctx), trailers);
	return 0;
}

static int on_h2_head(void *ctx, struct h2_stream *stream, struct head *head, bool end)
{
	struct peer *peer = ctx;
	struct talk *talk = peer->server ? talk_new(peer) : h2_stream_user(stream);

	talk->stream = stream;
	h2_stream_set_user(stream, talk);
	talk_head(talk, head);
	if (end)
		talk_end(talk, NULL);
	return 0;
}

static int on_h2_body(void *ctx, struct h2_stream *stream, const char *data, size_t len)
{
	struct peer *peer = ctx;
	struct talk *talk = h2_stream_user(stream);

	buf_append(&talk->body, data, len);
	if (!peer->keeps)
		h2_consume(stream, len);
	return 0;
}

static int on_h2_end(void *ctx, struct h2_stream *stream, const struct fields *trailers)
{
	(void)ctx;
	talk_end(h2_stream_user(stream), trailers);
	return 0;
}

static void on_h2_drained(void *ctx, struct h2_stream *stream)
{
	(void)ctx, (void)stream;
}

static void on_h2_closed(void *ctx, struct h2_stream *stream, uint32_t error)
{
	struct talk *talk = h2_stream_user(stream);

	(void)ctx;
	talk->closed = true;
	talk->stream = NULL;
	if (error)
		talk_note(talk, "reset:%u ", error);
}

static void peer_init(struct peer *peer)
{
	*peer = (struct peer){ .end = { .fd = -1, .near = -1 },
			       .raw = BUF_INIT(64u << 20),
			       .unread = BUF_INIT(1u << 20) };
}

static void peer_speak(struct peer *peer, bool server, bool h2)
{
	static const struct h1_events h1_events = { .head = on_h1_head, .body = on_h1_body, .end = on_h1_end };
	static const struct h2_events h2_events = { .head = on_h2_head,
						    .body = on_h2_body,
						    .end = on_h2_end,
						    .drained = on_h2_drained,
						    .closed = on_h2_closed };

	peer->server = server;
	if (h2)
		assert_int_equal(h2_new(server ? H2_SERVER : H2_CLIENT, &h2_events, peer, &peer->h2), 0);
	else
		assert_int_equal(h1_new(server ? H1_SERVER : H1_CLIENT, &h1_events, peer, &peer->h1), 0);
}

static void peer_free_codec(struct peer *peer)
{
	h1_free(peer->h1);
	h2_free(peer->h2);
	peer->h1 = NULL;
	peer->h2 = NULL;
}

static void peer_free(struct peer *peer)
{
	end_close(&peer->end);
	peer_free_codec(peer);
	for (unsigned i = 0; i < peer->n; i++) {
		buf_free(&peer->talks[i].body);
		fields_free(&peer->talks[i].fields);
	}
	buf_free(&peer->raw);
	buf_free(&peer->unread);
}

/* HTTP/1.1: one message; the next one when this was answered. */
static void peer_read_h1(struct peer *peer)
{
	ssize_t n = 1;

	while (peer->unread.len && n > 0) {
		n = h1_read(peer->h1, peer->unread.data, peer->unread.len);
		if (n < 0)
			talk_note(peer->n ? h1_talk(peer) : talk_new(peer), "bad ");
		buf_drop(&peer->unread, n < 0 ? peer->unread.len : (size_t)n);
	}
}

static void peer_read(struct peer *peer, const char *data, size_t len)
{
	buf_append(&peer->raw, data, len);
	if (peer->h2 && h2_read(peer->h2, data, len) < 0)
		peer->eof = true;
	if (!peer->h1)
		return;
	buf_append(&peer->unread, data, len);
	peer_read_h1(peer);
}

/* Moves bytes both ways. True when some were moved. */
static bool peer_move(struct peer *peer)
{
	static char data[64 << 10];
	struct end *end = &peer->end;
	bool moved = false;
	ssize_t n = -1;

	if (end->fd < 0)
		return false;
	while (!end->deaf && !peer->eof && (n = __real_recv(end->fd, data, sizeof(data), 0)) > 0) {
		moved = true;
		peer_read(peer, data, (size_t)n);
	}
	if (n == 0 || (n < 0 && errno == ECONNRESET)) {
		if (peer->h1 && !peer->server && peer->n && n == 0)
			h1_read_eof(peer->h1);
		peer->eof = true;
	}
	if (peer->h2)
		assert_int_equal(h2_write(peer->h2, &end->out, OUT_MAX), 0);
	n = end->out.len ? send(end->fd, end->out.data, end->out.len, MSG_NOSIGNAL) : 0;
	if (n > 0) {
		buf_drop(&end->out, (size_t)n);
		moved = true;
	} else if (n < 0 && errno != EAGAIN) {
		buf_clear(&end->out);
	}
	if (end->shut && !end->out.len && !peer->said_all) {
		shutdown(end->fd, SHUT_WR);
		peer->said_all = moved = true;
	}
	return moved;
}

/* -- what is said ---------------------------------------------------------------------------- */

enum { NO_BODY = -1, CHUNKED = -2 };

static void say(struct peer *peer, const char *text)
{
	end_send(&peer->end, text, strlen(text));
}

/* A request as it is written here. */
static struct talk *ask_raw(struct peer *peer, const char *text)
{
	struct talk *talk = talk_new(peer);

	say(peer, text);
	return talk;
}

static void send_head(struct peer *peer, struct talk *talk, struct head *head, long length)
{
	head->has_body = length != NO_BODY;
	head->has_length = length >= 0;
	head->length = length >= 0 ? (uint64_t)length : BODY_UNKNOWN;
	if (peer->h1) {
		assert_int_equal(h1_write_head(peer->h1, head, false, &peer->end.out), 0);
		if (length == NO_BODY && !(head->status && head->status < 200))
			assert_int_equal(h1_write_end(peer->h1, NULL, &peer->end.out), 0);
	} else if (peer->server) {
		assert_int_equal(h2_respond(talk->stream, head, length == NO_BODY && head->status >= 200), 0);
	} else {
		assert_int_equal(h2_request(peer->h2, head, length == NO_BODY, talk, &talk->stream), 0);
	}
	head_free(head);
}

/* A request of a client. length: of its body, or one of the two above. */
static struct talk *ask_with(struct peer *peer, const char *method, const char *path, long length, const char *field,
			     const char *value)
{
	struct talk *talk;
	struct head head;

	if (peer->h1 && peer->n) {
		h1_next(peer->h1);
		peer_read_h1(peer);
	}
	talk = talk_new(peer);
	head_init(&head);
	assert_int_equal(head_set_method(&head, method, strlen(method)) ?: head_set_target(&head, path, strlen(path))
				 ?: head_set_authority(&head, peer->host, strlen(peer->host))
					    ?: head_set_scheme(&head, "https", 5),
			 0);
	if (field && !strcmp(field, "expect"))
		head.expects_continue = true;
	else if (field)
		assert_int_equal(fields_add(&head.fields, field, strlen(field), value, strlen(value)), 0);
	send_head(peer, talk, &head, length);
	return talk;
}

static struct talk *ask(struct peer *peer, const char *method, const char *path, long length)
{
	return ask_with(peer, method, path, length, NULL, NULL);
}

/* A response of an origin. */
static void answer_with(struct peer *peer, struct talk *talk, unsigned status, long length, const char *field,
			const char *value)
{
	struct head head;

	head_init(&head);
	head.status = status;
	if (field)
		assert_int_equal(fields_add(&head.fields, field, strlen(field), value, strlen(value)), 0);
	send_head(peer, talk, &head, length);
	if (peer->h1 && length == NO_BODY && status >= 200)
		h1_next(peer->h1);
}

static void answer(struct peer *peer, struct talk *talk, unsigned status, long length)
{
	answer_with(peer, talk, status, length, NULL, NULL);
}

static void send_body(struct peer *peer, struct talk *talk, const char *data, size_t len)
{
	assert_int_equal(peer->h1 ? h1_write_body(peer->h1, data, len, &peer->end.out)
				  : h2_send_body(talk->stream, data, len),
			 0);
}

static void send_end(struct peer *peer, struct talk *talk, const char *trailer)
{
	struct fields fields;

	fields_init(&fields);
	if (trailer)
		assert_int_equal(fields_add(&fields, trailer, strlen(trailer), "1", 1), 0);
	assert_int_equal(
		peer->h1 ? h1_write_end(peer->h1, &fields, &peer->end.out) : h2_send_end(talk->stream, &fields), 0);
	fields_free(&fields);
	if (peer->h1 && peer->server)
		h1_next(peer->h1);
}

static void assert_body(const struct talk *talk, const char *text)
{
	assert_int_equal(talk->body.len, strlen(text));
	assert_memory_equal(talk->body.data ?: "", text, talk->body.len);
}

static const char *talk_field(const struct talk *talk, const char *name)
{
	const struct field *f = fields_find(&talk->fields, name);

	return f ? f->value : "";
}
