/* SPDX-License-Identifier: MIT */
/*
 * Any bytes, at either end of HTTP/2: what is accepted is valid, events come in their order and never after closed(),
 * and what is written is HTTP/2. The first bytes choose the end, the size of the pieces and what the owner does.
 */
#include <stdint.h>

#include "http/head.c"
#include "http/h2.c"
#include "http/h2_head.c"
#include "http/h2_send.c"
#include "http/h2_session.c"
#include "frames.h"
#include "vocab/limits.h"
#include "check.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MODE_SERVER, MODE_CLIENT, MODE_FRAMES, MODE_COUNT };

struct owner {
	struct h2 *h2;
	uint32_t dice;
	size_t open;
	nghttp2_hd_inflater *inflater;
	struct buf rest;  /* of the output: less than a frame */
	struct buf block; /* a head of ours, so far */
	bool wants_settings;
};

struct exchange {
	bool head, end;
	size_t held;
};

static void query(struct owner *owner, const char *method);

static unsigned roll(struct owner *owner, unsigned sides)
{
	owner->dice = owner->dice * 1664525 + 1013904223;
	return (owner->dice >> 16) % sides;
}

static void check_fields(const struct fields *fields)
{
	check(fields->n <= NP_HEAD_FIELDS);
	for (size_t i = 0; i < fields->n; i++) {
		const struct field *f = &fields->items[i];
		enum h2_field kind = h2_field_kind(f->name, f->name_len);

		check(f->name_len && strlen(f->name) == f->name_len && strlen(f->value) == f->value_len);
		check(field_name_is_valid(f->name, f->name_len) && field_value_is_valid(f->value, f->value_len));
		for (const char *p = f->name; *p; p++)
			check(*p < 'A' || *p > 'Z');
		check(kind == H2_FIELD_OTHER || kind == H2_FIELD_COOKIE);
	}
}

static void check_head(const struct head *head, enum h2_role role, bool end)
{
	check_fields(&head->fields);
	check(head->has_length == (head->length != BODY_UNKNOWN));
	check(!(end && head->has_body));
	if (role == H2_CLIENT) {
		check(!head->method && head->status >= 100 && head->status <= 999 && head->status != 101);
		return;
	}
	check(head->method && field_name_is_valid(head->method, strlen(head->method)) && !head->status);
	check(head->authority && *head->authority && head->target && head->has_body == !end);
	for (const char *p = head->authority; *p; p++)
		check(*p > ' ' && *p < 0x7f);
	if (!strcmp(head->method, "CONNECT"))
		check(!*head->target && !head->scheme);
	else
		check((head->target[0] == '/' || !strcmp(head->target, "*")) && !strncmp(head->scheme, "http", 4));
	/* Only one cookie is left. */
	for (size_t i = 0, n = 0; i < head->fields.n; i++)
		check(strcmp(head->fields.items[i].name, "cookie") || ++n == 1);
}

static void send_something(struct owner *owner, struct h2_stream *stream)
{
	static const char data[NP_BACKLOG_HIGH + 1];
	struct fields trailers;

	fields_init(&trailers);
	switch (roll(owner, 5)) {
	case 0:
		h2_send_body(stream, data, roll(owner, 20000));
		break;
	case 1:
		h2_send_body(stream, data, sizeof(data));
		break;
	case 2:
		h2_send_end(stream, NULL);
		break;
	case 3:
		check(fields_add(&trailers, "x-t", 3, "1", 1) == 0);
		h2_send_end(stream, &trailers);
		break;
	default:
		h2_reset(stream, roll(owner, 14));
		break;
	}
	fields_free(&trailers);
}

static void answer(struct owner *owner, struct h2_stream *stream)
{
	struct head head;

	head_init(&head);
	head.status = roll(owner, 4) ? 200 : 100 + roll(owner, 5);
	head.has_length = roll(owner, 2);
	head.length = roll(owner, 3);
	check(fields_add(&head.fields, "x-a", 3, "some value", 10) == 0);
	h2_respond(stream, &head, roll(owner, 2));
	head_free(&head);
	for (unsigned i = roll(owner, 3); i; i--)
		send_something(owner, stream);
}

static int on_head(void *ctx, struct h2_stream *stream, struct head *head, bool end)
{
	struct owner *owner = ctx;
	struct exchange *exchange = h2_stream_user(stream);

	if (!exchange) {
		check(owner->h2->role == H2_SERVER);
		exchange = calloc(1, sizeof(*exchange));
		check(exchange);
		h2_stream_set_user(stream, exchange);
		owner->open++;
	} else {
		check(owner->h2->role == H2_CLIENT && !exchange->head);
	}
	check(!exchange->end);
	check_head(head, owner->h2->role, end);
	exchange->head = head->method || head->status >= 200;
	exchange->end = end;
	check(!end || exchange->head);
	if (owner->h2->role == H2_SERVER && roll(owner, 3))
		answer(owner, stream);
	else if (!roll(owner, 4))
		send_something(owner, stream);
	if (owner->h2->role == H2_CLIENT && h2_room(owner->h2))
		query(owner, "POST");
	check(h2_read(owner->h2, "x", 1) == -EBUSY);
	return 0;
}

static int on_body(void *ctx, struct h2_stream *stream, const char *data, size_t len)
{
	struct owner *owner = ctx;
	struct exchange *exchange = h2_stream_user(stream);

	check(exchange->head && !exchange->end && len && data);
	exchange->held += len;
	check(exchange->held <= NP_H2_WINDOW + 65535);
	if (roll(owner, 2)) {
		h2_consume(stream, exchange->held);
		exchange->held = 0;
	}
	if (!roll(owner, 8))
		send_something(owner, stream);
	return roll(owner, 200) ? 0 : -EIO;
}

static int on_end(void *ctx, struct h2_stream *stream, const struct fields *trailers)
{
	struct owner *owner = ctx;
	struct exchange *exchange = h2_stream_user(stream);

	check(exchange->head && !exchange->end);
	check_fields(trailers);
	exchange->end = true;
	if (owner->h2->role == H2_SERVER)
		answer(owner, stream);
	return 0;
}

static void on_drained(void *ctx, struct h2_stream *stream)
{
	check(h2_backlog(stream) < NP_BACKLOG_LOW);
	send_something(ctx, stream);
}

static void on_closed(void *ctx, struct h2_stream *stream, uint32_t error)
{
	struct owner *owner = ctx;

	(void)error;
	check(owner->open--);
	check(h2_backlog(stream) == 0);
	free(h2_stream_user(stream));
}

static void on_refused(void *ctx, const char *problem)
{
	(void)ctx;
	check(*problem);
}

/* -- our output ------------------------------------------------------------ */

static void check_block(struct owner *owner)
{
	const uint8_t *in = (const uint8_t *)owner->block.data;
	size_t len = owner->block.len;
	int flags = 0;

	while (!(flags & NGHTTP2_HD_INFLATE_FINAL)) {
		nghttp2_nv nv;
		ssize_t n = nghttp2_hd_inflate_hd2(owner->inflater, &nv, &flags, in, len, 1);

		check(n >= 0);
		in += n;
		len -= (size_t)n;
		if (flags & NGHTTP2_HD_INFLATE_EMIT)
			check(nv.namelen && nghttp2_check_header_value(nv.value, nv.valuelen));
	}
	check(!len);
	nghttp2_hd_inflate_end_headers(owner->inflater);
	buf_clear(&owner->block);
}

static void check_frame(struct owner *owner, const uint8_t *frame, size_t size)
{
	unsigned type = frame[3];
	const uint8_t *payload = frame + 9;

	check(type <= NGHTTP2_CONTINUATION && type != NGHTTP2_PUSH_PROMISE && type != NGHTTP2_PRIORITY);
	check(!owner->block.len || type == NGHTTP2_CONTINUATION);
	if (owner->wants_settings)
		check(type == NGHTTP2_SETTINGS);
	owner->wants_settings = false;
	if (type != NGHTTP2_HEADERS && type != NGHTTP2_CONTINUATION)
		return;
	if (type == NGHTTP2_HEADERS && (frame[4] & NGHTTP2_FLAG_PRIORITY))
		payload += 5, size -= 5;
	buf_append(&owner->block, payload, size);
	if (frame[4] & NGHTTP2_FLAG_END_HEADERS)
		check_block(owner);
}

static void check_output(struct owner *owner, const struct buf *out)
{
	size_t done = 0;

	buf_append(&owner->rest, out->data, out->len);
	check(!buf_error(&owner->rest));
	while (owner->rest.len - done >= 9) {
		const uint8_t *frame = (const uint8_t *)owner->rest.data + done;
		size_t size = (size_t)frame[0] << 16 | (size_t)frame[1] << 8 | frame[2];

		check(size <= 16384);
		if (owner->rest.len - done < 9 + size)
			break;
		check_frame(owner, frame, size);
		done += 9 + size;
	}
	buf_drop(&owner->rest, done);
}

static void drain(struct owner *owner)
{
	_buf_ struct buf out = BUF_INIT(1 << 20);
	size_t max = 1 + roll(owner, 40000), left = 100;

	do {
		buf_clear(&out);
		check(h2_write(owner->h2, &out, max) == 0);
		check(out.len <= max + LAST_FRAMES + 16384 + 9);
		check_output(owner, &out);
	} while (out.len && --left);
	check(!left || !h2_wants_write(owner->h2));
	if (!roll(owner, 50))
		h2_goaway(owner->h2);
}

/* -- input ----------------------------------------------------------------- */

static void query(struct owner *owner, const char *method)
{
	struct h2_stream *stream;
	struct head head;
	struct exchange *exchange = calloc(1, sizeof(*exchange));

	check(exchange);
	head_init(&head);
	check(head_set_method(&head, method, strlen(method)) == 0 && head_set_authority(&head, "a", 1) == 0 &&
	      head_set_target(&head, "/", 1) == 0);
	check(h2_request(owner->h2, &head, roll(owner, 2), exchange, &stream) == 0);
	owner->open++;
	head_free(&head);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct h2_events events = { on_head, on_body, on_end, on_drained, on_closed, on_refused };
	static const char magic[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
	struct owner owner = { .rest = BUF_INIT(2 << 20), .block = BUF_INIT(1 << 20), .wants_settings = true };
	_buf_ struct buf in = BUF_INIT(1 << 20);
	enum h2_role role;
	unsigned mode;
	size_t piece;

	if (size < 3)
		return 0;
	mode = data[0] % MODE_COUNT;
	role = mode == MODE_CLIENT ? H2_CLIENT : H2_SERVER;
	piece = data[1] ? data[1] : 4096;
	owner.dice = data[2];
	check(h2_new(role, &events, &owner, &owner.h2) == 0);
	check(nghttp2_hd_inflate_new(&owner.inflater) == 0);
	if (role == H2_SERVER) {
		buf_append(&in, magic, sizeof(magic) - 1);
	} else {
		_buf_ struct buf out = BUF_INIT(1 << 20);

		query(&owner, "GET");
		query(&owner, "HEAD");
		query(&owner, "CONNECT");
		check(h2_write(owner.h2, &out, SIZE_MAX) == 0 && out.len > sizeof(magic));
		check(!memcmp(out.data, magic, sizeof(magic) - 1));
		buf_drop(&out, sizeof(magic) - 1);
		check_output(&owner, &out);
	}
	if (data[2] & 1) { /* windows without end */
		frame_add(&in, NGHTTP2_SETTINGS, 0, 0, "\0\4\x7f\xff\xff\xff", 6);
		frame_add(&in, NGHTTP2_WINDOW_UPDATE, 0, 0, "\x7f\0\0\0", 4);
	} else {
		frame_add(&in, NGHTTP2_SETTINGS, 0, 0, NULL, 0);
	}
	if (mode == MODE_FRAMES)
		frames_make(data + 3, size - 3, &in);
	else
		buf_append(&in, data + 3, size - 3);
	for (size_t i = 0; i < in.len; i += piece) {
		int e = h2_read(owner.h2, in.data + i, in.len - i < piece ? in.len - i : piece);

		check(e == 0 || e == -EPROTO || e == -EIO);
		check(e == 0 || *h2_problem(owner.h2));
		check(h2_streams(owner.h2) == owner.open);
		if (roll(&owner, 2))
			drain(&owner);
		if (e < 0) {
			check(h2_read(owner.h2, "x", 1) == e);
			drain(&owner);
			check(h2_is_done(owner.h2));
			break;
		}
	}
	drain(&owner);
	check(!owner.block.len);
	h2_free(owner.h2);
	check(!owner.open);
	nghttp2_hd_inflate_del(owner.inflater);
	buf_free(&owner.rest);
	buf_free(&owner.block);
	return 0;
}
