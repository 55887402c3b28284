/* SPDX-License-Identifier: MIT */
/* nghttp2's side of a connection: how it is set up, and what becomes of what it says. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "http/h2_internal.h"
#include "vocab/limits.h"

/*
 * Floods. Each frame that comes is noise, and what is useful makes up for it: a body's bytes for the frame that
 * brings them, a frame of ours for the window updates that it will cause, a stream that ends well for its own frames
 * and some around it. A stream that ends badly weighs as much as ten frames: we may have dialled for it. What is left
 * is a peer that makes work and does none, at whatever speed. nghttp2 has bounds of its own: answers to PING and
 * SETTINGS that wait, CONTINUATION frames in a row, and resets per second, after which it takes no new streams.
 */
#define NOISE_SETTINGS	  10 /* a new window size visits every stream */
#define NOISE_BAD_STREAM  10
#define NOISE_BODY_SENT	  2
#define NOISE_GOOD_STREAM 20

static void h2_noise(struct h2 *h2, unsigned n)
{
	h2->noise += n;
	if (h2->noise > NP_H2_NOISE)
		h2_break(h2, -EPROTO, "a flood: more than %u frames that move nothing", NP_H2_NOISE);
}

static void h2_quiet(struct h2 *h2, unsigned n)
{
	h2->noise -= h2->noise < n ? h2->noise : n;
}

/* The value of a callback: an event's own error is kept for h2_read(). */
static int event_result(struct h2 *h2, int e)
{
	if (e >= 0)
		return 0;
	h2_break(h2, e, "given up here: %s", strerror(-e));
	return NGHTTP2_ERR_CALLBACK_FAILURE;
}

/* A frame that was refused is told of if it was to begin a request: nobody has heard of that one. */
static void request_refused(struct h2 *h2, const nghttp2_frame *frame)
{
	if (h2->role == H2_SERVER && frame->hd.type == NGHTTP2_HEADERS && frame->headers.cat == NGHTTP2_HCAT_REQUEST)
		h2->events.refused(h2->ctx, h2->problem);
}

/* The stream is reset for its head, or trailers. */
static int head_refuse(struct h2 *h2, const nghttp2_frame *frame, int e)
{
	int32_t id = frame->hd.stream_id;
	struct h2_stream *stream = nghttp2_session_get_stream_user_data(h2->session, id);
	uint32_t code = e == -E2BIG ? NGHTTP2_ENHANCE_YOUR_CALM : NGHTTP2_PROTOCOL_ERROR;

	if (e == -ENOMEM)
		return event_result(h2, e);
	if (stream) {
		stream->blamed = true;
		stream->code = code;
	}
	h2_check(h2, nghttp2_submit_rst_stream(h2->session, NGHTTP2_FLAG_NONE, id, code));
	request_refused(h2, frame);
	return 0;
}

static int on_begin_frame(nghttp2_session *session, const nghttp2_frame_hd *hd, void *ctx)
{
	(void)session;
	h2_noise(ctx, hd->type == NGHTTP2_SETTINGS ? NOISE_SETTINGS : 1);
	return 0;
}

static int on_begin_headers(nghttp2_session *session, const nghttp2_frame *frame, void *ctx)
{
	const struct h2_stream *stream = nghttp2_session_get_stream_user_data(session, frame->hd.stream_id);
	struct h2 *h2 = ctx;

	if (frame->hd.type != NGHTTP2_HEADERS) {
		h2_break(h2, -EPROTO, "broken HTTP/2: a push, though they are switched off");
		return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
	}
	h2_head_begin(h2, h2->role == H2_SERVER ? stream != NULL : stream && stream->answered);
	return 0;
}

static int on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name, size_t name_len,
		     const uint8_t *value, size_t value_len, uint8_t flags, void *ctx)
{
	struct h2 *h2 = ctx;
	int e;

	(void)session;
	(void)flags;
	if (h2->error)
		return 0;
	e = h2_head_field(h2, (const char *)name, name_len, (const char *)value, value_len);
	if (e == 0)
		return 0;
	e = head_refuse(h2, frame, e);
	return e < 0 ? e : NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE; /* the rest of the block is decoded, and dropped */
}

/* Without this one nghttp2 says that it leaves such a field out and goes on. */
static int on_invalid_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name, size_t name_len,
			     const uint8_t *value, size_t value_len, uint8_t flags, void *ctx)
{
	(void)session;
	(void)frame;
	(void)name;
	(void)name_len;
	(void)value;
	(void)value_len;
	(void)flags;
	(void)ctx;
	return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
}

static int request_came(struct h2 *h2, const nghttp2_frame *frame, bool end)
{
	int32_t id = frame->hd.stream_id;
	struct h2_stream *stream;
	int e = h2_head_finish(h2, NULL, end);

	if (e < 0)
		return head_refuse(h2, frame, e);
	stream = h2_stream_new(h2);
	if (!stream)
		return event_result(h2, -ENOMEM);
	stream->id = id;
	nghttp2_session_set_stream_user_data(h2->session, id, stream);
	return event_result(h2, h2->events.head(h2->ctx, stream, &h2->in, end));
}

static int response_came(struct h2 *h2, const nghttp2_frame *frame, struct h2_stream *stream, bool end)
{
	int e = h2_head_finish(h2, stream, end);

	if (e < 0)
		return head_refuse(h2, frame, e);
	stream->answered = h2->in.status >= 200;
	return event_result(h2, h2->events.head(h2->ctx, stream, &h2->in, end));
}

static int headers_came(struct h2 *h2, const nghttp2_frame *frame, struct h2_stream *stream)
{
	bool end = frame->hd.flags & NGHTTP2_FLAG_END_STREAM;

	if (h2->role == H2_SERVER && frame->headers.cat == NGHTTP2_HCAT_REQUEST)
		return request_came(h2, frame, end);
	if (!stream || stream->reset)
		return 0;
	if (!h2->in_trailers)
		return response_came(h2, frame, stream, end);
	return event_result(h2, h2->events.end(h2->ctx, stream, &h2->in.fields));
}

static int data_came(struct h2 *h2, const nghttp2_frame *frame, struct h2_stream *stream)
{
	if (frame->hd.length > frame->data.padlen)
		h2_quiet(h2, 1);
	if (!(frame->hd.flags & NGHTTP2_FLAG_END_STREAM) || !stream || stream->reset)
		return 0;
	fields_clear(&h2->in.fields);
	return event_result(h2, h2->events.end(h2->ctx, stream, &h2->in.fields));
}

static int on_frame_recv(nghttp2_session *session, const nghttp2_frame *frame, void *ctx)
{
	struct h2_stream *stream = nghttp2_session_get_stream_user_data(session, frame->hd.stream_id);
	struct h2 *h2 = ctx;

	if (h2->error)
		return 0;
	switch (frame->hd.type) {
	case NGHTTP2_HEADERS:
		return headers_came(h2, frame, stream);
	case NGHTTP2_DATA:
		return data_came(h2, frame, stream);
	case NGHTTP2_RST_STREAM:
		if (stream)
			stream->peer_reset = true;
		return 0;
	case NGHTTP2_GOAWAY: /* nghttp2 closes the streams that it leaves out as REFUSED_STREAM, behind this */
		h2->wants_h1 = frame->goaway.error_code == NGHTTP2_HTTP_1_1_REQUIRED;
		return 0;
	default:
		return 0;
	}
}

static int on_data_chunk(nghttp2_session *session, uint8_t flags, int32_t id, const uint8_t *data, size_t len,
			 void *ctx)
{
	struct h2_stream *stream = nghttp2_session_get_stream_user_data(session, id);
	struct h2 *h2 = ctx;

	(void)flags;
	/* Reset a moment ago, in the middle of this frame. */
	if (!stream || stream->reset || h2->error) {
		h2_check(h2, nghttp2_session_consume_connection(session, len));
		return 0;
	}
	stream->held += len;
	return event_result(h2, h2->events.body(h2->ctx, stream, (const char *)data, len));
}

/* Stream and connection errors alike; h2_read() finds out which. */
static int on_invalid_frame(nghttp2_session *session, const nghttp2_frame *frame, int error, void *ctx)
{
	struct h2_stream *stream = nghttp2_session_get_stream_user_data(session, frame->hd.stream_id);
	struct h2 *h2 = ctx;

	h2_explain(h2, "broken HTTP/2: %s", nghttp2_strerror(error));
	h2->vague = false;
	if (stream)
		stream->blamed = true;
	if (error == NGHTTP2_ERR_REFUSED_STREAM)
		h2_noise(h2, NOISE_BAD_STREAM); /* there is no stream that could close */
	else if (error == NGHTTP2_ERR_HTTP_HEADER || error == NGHTTP2_ERR_HTTP_MESSAGING)
		request_refused(h2, frame); /* others break the connection */
	return 0;
}

/* Frames of types that are not known here count as well; nghttp2 would skip them without a word. */
static int on_unknown_frame(nghttp2_session *session, void **payload, const nghttp2_frame_hd *hd, void *ctx)
{
	(void)session;
	(void)payload;
	(void)hd;
	(void)ctx;
	return NGHTTP2_ERR_CANCEL;
}

static int on_frame_send(nghttp2_session *session, const nghttp2_frame *frame, void *ctx)
{
	struct h2 *h2 = ctx;

	(void)session;
	if (frame->hd.type == NGHTTP2_DATA)
		h2_quiet(h2, NOISE_BODY_SENT);
	if (frame->hd.type != NGHTTP2_GOAWAY || !h2->error)
		return 0;
	/* nghttp2's own words for what it found, or the code at least. */
	if (frame->goaway.opaque_data_len)
		snprintf(h2->problem, sizeof(h2->problem), "broken HTTP/2: %.*s", (int)frame->goaway.opaque_data_len,
			 (const char *)frame->goaway.opaque_data);
	else if (h2->vague)
		snprintf(h2->problem, sizeof(h2->problem), "broken HTTP/2: %s",
			 nghttp2_http2_strerror(frame->goaway.error_code));
	return 0;
}

/* A head that cannot be sent must not leave the peer waiting for it. A request that cannot is closed by nghttp2; the
 * peer never heard of its stream and must not now. */
static int on_frame_not_send(nghttp2_session *session, const nghttp2_frame *frame, int error, void *ctx)
{
	const struct h2_stream *stream = nghttp2_session_get_stream_user_data(session, frame->hd.stream_id);

	(void)error;
	if (frame->hd.type == NGHTTP2_HEADERS && frame->headers.cat != NGHTTP2_HCAT_REQUEST && stream && !stream->reset)
		h2_check(ctx, nghttp2_submit_rst_stream(session, NGHTTP2_FLAG_NONE, frame->hd.stream_id,
							NGHTTP2_INTERNAL_ERROR));
	return 0;
}

static int on_stream_close(nghttp2_session *session, int32_t id, uint32_t error, void *ctx)
{
	struct h2_stream *stream = nghttp2_session_get_stream_user_data(session, id);
	struct h2 *h2 = ctx;

	/* Reset by us in the last frame that the stream was waiting for: nghttp2 calls that a good end. */
	if (stream && error == NGHTTP2_NO_ERROR)
		error = stream->code;
	if (error == NGHTTP2_REFUSED_STREAM && h2->wants_h1)
		error = NGHTTP2_HTTP_1_1_REQUIRED;
	if (!stream || !stream->reset) {
		if (error == NGHTTP2_NO_ERROR)
			h2_quiet(h2, NOISE_GOOD_STREAM);
		else
			h2_noise(h2, NOISE_BAD_STREAM);
	}
	if (!stream)
		return 0;
	if (stream->peer_reset)
		h2_explain(h2, "the peer reset the stream: %s", nghttp2_http2_strerror(error));
	else if (error == NGHTTP2_PROTOCOL_ERROR && !stream->reset && !stream->blamed)
		h2_explain(h2, "a body that does not fit its head"); /* nghttp2 says nothing else without its reason */
	nghttp2_session_set_stream_user_data(session, id, NULL);
	h2_stream_close(stream, error);
	return 0;
}

static nghttp2_session_callbacks *callbacks_new(void)
{
	nghttp2_session_callbacks *cb;

	if (nghttp2_session_callbacks_new(&cb) != 0)
		return NULL;
	nghttp2_session_callbacks_set_on_begin_frame_callback(cb, on_begin_frame);
	nghttp2_session_callbacks_set_on_begin_headers_callback(cb, on_begin_headers);
	nghttp2_session_callbacks_set_on_header_callback(cb, on_header);
	nghttp2_session_callbacks_set_on_invalid_header_callback(cb, on_invalid_header);
	nghttp2_session_callbacks_set_on_frame_recv_callback(cb, on_frame_recv);
	nghttp2_session_callbacks_set_on_data_chunk_recv_callback(cb, on_data_chunk);
	nghttp2_session_callbacks_set_on_invalid_frame_recv_callback(cb, on_invalid_frame);
	nghttp2_session_callbacks_set_unpack_extension_callback(cb, on_unknown_frame);
	nghttp2_session_callbacks_set_on_frame_send_callback(cb, on_frame_send);
	nghttp2_session_callbacks_set_on_frame_not_send_callback(cb, on_frame_not_send);
	nghttp2_session_callbacks_set_on_stream_close_callback(cb, on_stream_close);
	nghttp2_session_callbacks_set_send_data_callback(cb, h2_on_body_send);
	return cb;
}

static nghttp2_option *option_new(enum h2_role role)
{
	nghttp2_option *option;

	if (nghttp2_option_new(&option) != 0)
		return NULL;
	nghttp2_option_set_no_auto_window_update(option, 1);
	nghttp2_option_set_max_reserved_remote_streams(option, 0);
	/* nghttp2's guess of what a head takes counts more than its text. */
	nghttp2_option_set_max_send_header_block_length(option, 4 * NP_HEAD_BYTES);
	/* Too many origins have spaces there; h2_head_field() takes them off. */
	nghttp2_option_set_no_rfc9113_leading_and_trailing_ws_validation(option, role == H2_CLIENT);
	for (unsigned type = 0x0a; type <= 0xff; type++) /* all that RFC 9113 does not know */
		nghttp2_option_set_user_recv_extension_type(option, (uint8_t)type);
	return option;
}

static int settings_submit(nghttp2_session *session, enum h2_role role)
{
	static const nghttp2_settings_entry server[] = {
		{ NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, NP_H2_STREAMS },
		{ NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, NP_H2_WINDOW },
		{ NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, NP_HEAD_BYTES },
	};
	static const nghttp2_settings_entry client[] = {
		{ NGHTTP2_SETTINGS_ENABLE_PUSH, 0 },
		{ NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, NP_H2_WINDOW },
		{ NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, NP_HEAD_BYTES },
	};
	int e;

	if (role == H2_SERVER)
		e = nghttp2_submit_settings(session, NGHTTP2_FLAG_NONE, server, ARRAY_SIZE(server));
	else
		e = nghttp2_submit_settings(session, NGHTTP2_FLAG_NONE, client, ARRAY_SIZE(client));
	if (e != 0)
		return e;
	/* As a client we share the connection among readers that know nothing of each other: one that does not read must
	 * not stop the others, so the connection is as wide as all its streams together. */
	return nghttp2_session_set_local_window_size(
		session, NGHTTP2_FLAG_NONE, 0, role == H2_SERVER ? NP_H2_CONNECTION : NP_H2_STREAMS * NP_H2_WINDOW);
}

int h2_session_new(struct h2 *h2)
{
	nghttp2_session_callbacks *callbacks = callbacks_new();
	nghttp2_option *option = option_new(h2->role);
	int e = NGHTTP2_ERR_NOMEM;

	if (callbacks && option && h2->role == H2_SERVER)
		e = nghttp2_session_server_new2(&h2->session, callbacks, h2, option);
	else if (callbacks && option)
		e = nghttp2_session_client_new2(&h2->session, callbacks, h2, option);
	nghttp2_option_del(option);
	nghttp2_session_callbacks_del(callbacks);
	if (e == 0)
		e = settings_submit(h2->session, h2->role);
	return e == 0 ? 0 : -ENOMEM;
}
