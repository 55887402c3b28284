/* SPDX-License-Identifier: MIT */
/* The connection: its life, its bytes, and what nghttp2 says about them. */
#include "http/h2.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "http/h2_internal.h"
#include "vocab/limits.h"

_Static_assert((int)H2_PROTOCOL_ERROR == NGHTTP2_PROTOCOL_ERROR && (int)H2_INTERNAL_ERROR == NGHTTP2_INTERNAL_ERROR &&
		       (int)H2_REFUSED_STREAM == NGHTTP2_REFUSED_STREAM && (int)H2_CANCEL == NGHTTP2_CANCEL &&
		       (int)H2_ENHANCE_YOUR_CALM == NGHTTP2_ENHANCE_YOUR_CALM &&
		       (int)H2_HTTP_1_1_REQUIRED == NGHTTP2_HTTP_1_1_REQUIRED,
	       "codes of RFC 9113");

#define LAST_FRAMES (16u << 10) /* what a broken connection may still say */

void h2_explain(struct h2 *h2, const char *fmt, ...)
{
	va_list ap;

	if (h2->error)
		return;
	va_start(ap, fmt);
	vsnprintf(h2->problem, sizeof(h2->problem), fmt, ap);
	va_end(ap);
}

void h2_break(struct h2 *h2, int error, const char *fmt, ...)
{
	va_list ap;

	if (h2->error)
		return;
	va_start(ap, fmt);
	vsnprintf(h2->problem, sizeof(h2->problem), fmt, ap);
	va_end(ap);
	h2->vague = false;
	h2->error = error;
}

void h2_check(struct h2 *h2, int e)
{
	if (nghttp2_is_fatal(e))
		h2_break(h2, -ENOMEM, "out of memory");
}

/* -- streams -------------------------------------------------------------- */

struct h2_stream *h2_stream_new(struct h2 *h2)
{
	struct h2_stream *stream = calloc(1, sizeof(*stream));

	if (!stream)
		return NULL;
	stream->h2 = h2;
	stream->prev = h2->last_stream;
	if (h2->last_stream)
		h2->last_stream->next = stream;
	else
		h2->streams = stream;
	h2->last_stream = stream;
	h2->n_streams++;
	return stream;
}

/* All that waits to be sent is forgotten, and what the peer sent is given back to the connection's window. */
static void stream_release(struct h2_stream *stream)
{
	struct h2 *h2 = stream->h2;

	h2_queue_clear(stream);
	if (stream->held > stream->shelved && !h2->dead)
		h2_check(h2, nghttp2_session_consume_connection(h2->session, stream->held - stream->shelved));
	stream->held = stream->shelved = 0;
}

void h2_stream_free(struct h2_stream *stream)
{
	struct h2 *h2 = stream->h2;

	stream_release(stream);
	*(stream->prev ? &stream->prev->next : &h2->streams) = stream->next;
	*(stream->next ? &stream->next->prev : &h2->last_stream) = stream->prev;
	h2->n_streams--;
	free(stream);
}

void h2_stream_close(struct h2_stream *stream, uint32_t error)
{
	struct h2 *h2 = stream->h2;

	stream->reset = true; /* nothing that closed() calls does anything to it */
	stream_release(stream);
	h2->events.closed(h2->ctx, stream, error);
	h2_stream_free(stream);
}

void *h2_stream_user(const struct h2_stream *stream)
{
	return stream->user;
}

void h2_stream_set_user(struct h2_stream *stream, void *user)
{
	stream->user = user;
}

size_t h2_streams(const struct h2 *h2)
{
	return h2->n_streams;
}

void h2_consume(struct h2_stream *stream, size_t n)
{
	struct h2 *h2 = stream->h2;
	size_t shelved;

	if (n > stream->held)
		n = stream->held;
	shelved = n < stream->shelved ? n : stream->shelved;
	stream->held -= n;
	stream->shelved -= shelved;
	if (shelved && !h2->dead)
		h2_check(h2, nghttp2_session_consume_stream(h2->session, stream->id, shelved));
	if (n > shelved && !h2->dead)
		h2_check(h2, nghttp2_session_consume(h2->session, stream->id, n - shelved));
}

void h2_shelve(struct h2_stream *stream, size_t n)
{
	struct h2 *h2 = stream->h2;

	if (n > stream->held - stream->shelved)
		n = stream->held - stream->shelved;
	stream->shelved += n;
	if (n && !h2->dead)
		h2_check(h2, nghttp2_session_consume_connection(h2->session, n));
}

void h2_reset(struct h2_stream *stream, uint32_t error)
{
	struct h2 *h2 = stream->h2;

	if (stream->reset)
		return;
	stream->reset = true;
	stream->code = error;
	stream_release(stream);
	if (!h2->dead)
		h2_check(h2, nghttp2_submit_rst_stream(h2->session, NGHTTP2_FLAG_NONE, stream->id, error));
}

/* -- the connection ------------------------------------------------------- */

int h2_new(enum h2_role role, const struct h2_events *events, void *ctx, struct h2 **ret)
{
	struct h2 *h2 = calloc(1, sizeof(*h2));
	int e;

	if (!h2)
		return -ENOMEM;
	h2->role = role;
	h2->events = *events;
	h2->ctx = ctx;
	h2->last = BUF_INIT(LAST_FRAMES + 2 * NP_HEAD_BYTES);
	h2->cookie = BUF_INIT(NP_HEAD_BYTES);
	head_init(&h2->in);
	e = h2_session_new(h2);
	if (e < 0) {
		h2_free(h2);
		return e;
	}
	*ret = h2;
	return 0;
}

void h2_free(struct h2 *h2)
{
	if (!h2)
		return;
	h2->dead = true;
	h2->busy = true;
	while (h2->streams)
		h2_stream_close(h2->streams, h2->error ? NGHTTP2_PROTOCOL_ERROR : NGHTTP2_CANCEL);
	nghttp2_session_del(h2->session);
	head_free(&h2->in);
	buf_free(&h2->cookie);
	buf_free(&h2->last);
	free(h2);
}

/* nghttp2 found an error of the whole connection and has a GOAWAY ready. It does not say so; but only then it takes
 * a GOAWAY that names a stream which the peer cannot have opened, and does nothing with it. */
static bool h2_is_given_up(const struct h2 *h2)
{
	int32_t mine = h2->role == H2_SERVER ? 2 : 1;

	return nghttp2_submit_goaway(h2->session, NGHTTP2_FLAG_NONE, mine, NGHTTP2_NO_ERROR, NULL, 0) == 0;
}

static int h2_die(struct h2 *h2, int e)
{
	h2->dead = true;
	switch (e) {
	case NGHTTP2_ERR_NOMEM:
		h2_break(h2, -ENOMEM, "out of memory");
		break;
	case NGHTTP2_ERR_BAD_CLIENT_MAGIC:
		h2_break(h2, -EPROTO, "it does not begin as HTTP/2 does");
		break;
	case NGHTTP2_ERR_FLOODED:
		h2_break(h2, -EPROTO, "a flood of PING or SETTINGS");
		break;
	case NGHTTP2_ERR_TOO_MANY_CONTINUATIONS:
		h2_break(h2, -EPROTO, "a flood of CONTINUATION");
		break;
	default:
		h2_break(h2, -EPROTO, "broken HTTP/2: %s", nghttp2_strerror(e));
		break;
	}
	return h2->error;
}

/* Frames, until out is as long as limit. */
static int h2_pump(struct h2 *h2, struct buf *out, size_t limit)
{
	h2->out = out;
	h2->limit = limit;
	while (out->len < limit) {
		const uint8_t *data;
		ssize_t n;

		if (h2->error && !h2->goaway_sent) {
			h2->goaway_sent = true; /* does nothing when nghttp2 gave up by itself */
			nghttp2_session_terminate_session(h2->session, NGHTTP2_ENHANCE_YOUR_CALM);
		}
		n = nghttp2_session_mem_send(h2->session, &data);
		if (n < 0)
			return buf_error(out) ? buf_error(out) : h2_die(h2, (int)n);
		if (n == 0 && (!h2->error || h2->goaway_sent))
			break;
		buf_append(out, data, (size_t)n);
		if (buf_error(out))
			return buf_error(out);
	}
	return 0;
}

int h2_read(struct h2 *h2, const char *data, size_t len)
{
	ssize_t n;

	if (h2->busy)
		return -EBUSY;
	if (h2->error)
		return h2->error;
	h2->busy = true;
	h2->vague = true;
	n = nghttp2_session_mem_recv(h2->session, (const uint8_t *)data, len);
	if (n < 0)
		h2_die(h2, (int)n);
	else if (!h2->error && h2_is_given_up(h2))
		h2->error = -EPROTO;
	/* The GOAWAY is made now, for it has nghttp2's words for h2_problem(). */
	if (h2->error && !h2->dead && h2_pump(h2, &h2->last, LAST_FRAMES) < 0)
		h2->dead = true;
	h2->busy = false;
	return h2->error;
}

static void h2_notify_drained(struct h2 *h2)
{
	h2->drained = false;
	for (struct h2_stream *stream = h2->streams; stream; stream = stream->next) {
		if (!stream->drained)
			continue;
		stream->drained = false;
		if (!stream->reset)
			h2->events.drained(h2->ctx, stream);
	}
}

int h2_write(struct h2 *h2, struct buf *out, size_t max)
{
	size_t limit = max < SIZE_MAX - out->len ? out->len + max : SIZE_MAX;
	int e = 0;

	if (h2->busy)
		return 0;
	h2->busy = true;
	if (h2->last.len) {
		buf_append(out, h2->last.data, h2->last.len);
		buf_free(&h2->last);
	}
	while (!h2->dead) {
		e = h2_pump(h2, out, limit);
		if (e < 0 || !h2->drained)
			break;
		h2_notify_drained(h2);
	}
	if (e < 0) { /* frames are lost */
		h2->dead = true;
		h2_break(h2, e, "out of memory");
	}
	h2->busy = false;
	return e;
}

bool h2_wants_write(const struct h2 *h2)
{
	return h2->last.len ||
	       (!h2->dead && ((h2->error && !h2->goaway_sent) || nghttp2_session_want_write(h2->session)));
}

bool h2_is_done(const struct h2 *h2)
{
	return !h2_wants_write(h2) && (h2->dead || !nghttp2_session_want_read(h2->session));
}

const char *h2_problem(const struct h2 *h2)
{
	return h2->problem;
}

void h2_goaway(struct h2 *h2)
{
	if (h2->leaving || h2->dead || h2->error)
		return;
	h2->leaving = true;
	h2_check(h2, nghttp2_submit_goaway(h2->session, NGHTTP2_FLAG_NONE,
					   nghttp2_session_get_last_proc_stream_id(h2->session), NGHTTP2_NO_ERROR, NULL,
					   0));
}

unsigned h2_room(const struct h2 *h2)
{
	size_t most;

	if (h2->dead || h2->error || h2->leaving || !nghttp2_session_check_request_allowed(h2->session))
		return 0;
	most = nghttp2_session_get_remote_settings(h2->session, NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS);
	if (most > NP_H2_STREAMS)
		most = NP_H2_STREAMS;
	return most > h2->n_streams ? (unsigned)(most - h2->n_streams) : 0;
}
