/* SPDX-License-Identifier: MIT */
/* HTTP/2 by nghttp2, one connection, either end of it. Bytes in, heads and bodies out, and back. No fd, no clock. */
#pragma once

#include "base/buf.h"
#include "http/head.h"

struct h2;
struct h2_stream;

enum h2_role {
	H2_SERVER,
	H2_CLIENT,
};

/* Codes of RFC 9113, section 7, for h2_reset() and closed(). */
enum h2_error {
	H2_NO_ERROR = 0,
	H2_PROTOCOL_ERROR = 1,
	H2_INTERNAL_ERROR = 2,
	H2_REFUSED_STREAM = 7, /* nothing was done with the request: it may be sent again */
	H2_CANCEL = 8,
	H2_ENHANCE_YOUR_CALM = 11,
	H2_HTTP_1_1_REQUIRED = 13,
};

/*
 * stream's owner: set by h2_stream_set_user(), or given to h2_request(). Borrowed arguments. An event that returns
 * -errno breaks the connection: h2_read() returns it. Every function but h2_free() and h2_read() may be called inside
 * of an event, for any stream; h2_write() does nothing then.
 */
struct h2_events {
	/* SERVER: a request on a new stream. CLIENT: a response (informational ones too). end: no body, no trailers,
	 * and no end() either. The head may be kept, with head_move(). */
	int (*head)(void *ctx, struct h2_stream *stream, struct head *head, bool end);
	int (*body)(void *ctx, struct h2_stream *stream, const char *data, size_t len);
	int (*end)(void *ctx, struct h2_stream *stream, const struct fields *trailers); /* never NULL, often empty */
	/* h2_backlog() went below NP_BACKLOG_LOW after it was above NP_BACKLOG_HIGH. */
	void (*drained)(void *ctx, struct h2_stream *stream);
	/* The stream is over, for better (error 0) or worse; it is freed after this call. Always the last one. */
	void (*closed)(void *ctx, struct h2_stream *stream, uint32_t error);
	/* SERVER: a request whose head is none. Its stream is reset, and there is no other event of it. */
	void (*refused)(void *ctx, const char *problem);
};

int h2_new(enum h2_role role, const struct h2_events *events, void *ctx, struct h2 **ret);
void h2_free(struct h2 *h2); /* closed() is called for every stream that is left; not inside of an event */

/* All of len is consumed. -EPROTO: the connection is broken, h2_problem() says how; write what is pending, then close. */
int h2_read(struct h2 *h2, const char *data, size_t len);
/* Appends frames that may be sent now, up to about max bytes: the last one may be 16 KiB beyond it. 0 or -errno. */
int h2_write(struct h2 *h2, struct buf *out, size_t max);
bool h2_wants_write(const struct h2 *h2);
bool h2_is_done(const struct h2 *h2); /* nothing more to read or write: close */
/* Why the connection broke, or else why the last stream was refused or reset; "" when none was. */
const char *h2_problem(const struct h2 *h2);
void h2_goaway(struct h2 *h2); /* no new streams; those that are there go on */
/* CLIENT: how many more streams the peer allows now; 0 also after its GOAWAY. */
unsigned h2_room(const struct h2 *h2);
size_t h2_streams(const struct h2 *h2);

void *h2_stream_user(const struct h2_stream *stream);
void h2_stream_set_user(struct h2_stream *stream, void *user);

/* CLIENT. end: there is neither body nor h2_send_end(). A head without a scheme goes as https. -EAGAIN without
 * h2_room(), -EINVAL for a head that is none. */
int h2_request(struct h2 *h2, const struct head *head, bool end, void *user, struct h2_stream **ret);
/* SERVER: a response, or an informational one (1xx). -EPIPE: the stream is reset; -EALREADY: it has its response. */
int h2_respond(struct h2_stream *stream, const struct head *head, bool end);
int h2_send_body(struct h2_stream *stream, const char *data,
		 size_t len); /* copies; bounded by the caller's use of h2_backlog(); -EPIPE */
int h2_send_end(struct h2_stream *stream, const struct fields *trailers); /* trailers may be NULL; -EPIPE */
size_t h2_backlog(const struct h2_stream *stream);
size_t h2_unsent(const struct h2 *h2); /* of all streams */
/* The exchange has done with n bytes that body() gave: the peer may send as many more. */
void h2_consume(struct h2_stream *stream, size_t n);
/* It keeps n of them for long: the stream waits with them, but no other stream of the connection has less room for it. */
void h2_shelve(struct h2_stream *stream, size_t n);
void h2_reset(struct h2_stream *stream, uint32_t error); /* closed() follows, later, and nothing before it */
