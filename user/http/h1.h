/* SPDX-License-Identifier: MIT */
/*
 * HTTP/1.1, one connection, either end of it. Bytes in, heads and bodies out, and back. No fd, no clock. llhttp in strict mode
 * reads; what it lets pass and two servers could read in two ways is refused here.
 */
#pragma once

#include <sys/types.h>

#include "base/buf.h"
#include "http/head.h"

struct h1;

enum h1_role {
	H1_SERVER, /* reads requests, writes responses */
	H1_CLIENT,
};

/* Each returns 0 to go on or -errno, which h1_read() then returns. What is passed is borrowed for the call. */
struct h1_events {
	/* May be kept, with head_move(). CLIENT: also informational ones. No end() follows those, nor a 101. */
	int (*head)(void *ctx, struct head *head);
	int (*body)(void *ctx, const char *data, size_t len);
	/* The message is complete. trailers is never NULL, often empty. */
	int (*end)(void *ctx, const struct fields *trailers);
};

int h1_new(enum h1_role role, const struct h1_events *events, void *ctx, struct h1 **ret);
void h1_free(struct h1 *h1);

/*
 * Reads bytes up to the end of the message at most: the next pipelined request is read after h1_next().
 * Returns how many were consumed (fewer than len after the end of a message, or after a switch of protocols), or
 * -EPROTO with h1_problem(), or what an event returned, or -E2BIG for a head over its bounds.
 */
ssize_t h1_read(struct h1 *h1, const char *data, size_t len);
/* The peer closed. 0 when that ends the message properly (a response without length), or between messages; -EPROTO. */
int h1_read_eof(struct h1 *h1);
bool h1_ends_with_connection(const struct h1 *h1); /* a body is read that nothing else ends */
bool h1_peer_is_old(const struct h1 *h1);	   /* SERVER: the last request was one of HTTP/1.0 */
const char *h1_problem(const struct h1 *h1);	   /* a sentence: "both content-length and transfer-encoding" */

/* Both messages of the exchange are complete: be ready for the next. */
void h1_next(struct h1 *h1);
/* The connection may carry another exchange: both sides said so, or did not say otherwise. */
bool h1_persists(const struct h1 *h1);
/* CLIENT: the request was a CONNECT, and a tunnel is what is wanted: a 2xx is a whole message, whatever it says of a body
 * (RFC 9110, 9.3.6), and what is behind it is not read. Without this such an answer is refused. */
void h1_expect_tunnel(struct h1 *h1);

/*
 * Writing: appends to out. The head is written from its parts alone. Framing is chosen here: content-length when
 * known, else chunked (responses to HTTP/1.0 clients: until the connection closes). CLIENT: remembers the method, for
 * the framing of the response. last: the connection closes after this one (connection: close).
 */
int h1_write_head(struct h1 *h1, const struct head *head, bool last, struct buf *out);
int h1_write_body(struct h1 *h1, const char *data, size_t len, struct buf *out); /* -EMSGSIZE: longer than announced */
int h1_write_end(struct h1 *h1, const struct fields *trailers,
		 struct buf *out); /* -EMSGSIZE: shorter; trailers may be NULL */
