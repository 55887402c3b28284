/* SPDX-License-Identifier: MIT */
/* Shared by h2.c (the connection), h2_session.c (what nghttp2 says), h2_head.c (heads that come) and h2_send.c. */
#pragma once

#include <nghttp2/nghttp2.h>

#include "http/h2.h"

/* A piece of a body that waits to be sent. */
struct h2_chunk {
	struct h2_chunk *next;
	size_t start, end, size;
	char data[];
};

/* Trailers that wait for the end of the body: one block, the text behind the list. */
struct h2_trailers {
	size_t n;
	nghttp2_nv items[];
};

struct h2_stream {
	struct h2 *h2;
	struct h2_stream *prev, *next;
	void *user;
	int32_t id;
	bool is_head;  /* CLIENT: the request was HEAD, so the response has no body */
	bool answered; /* the final head went (SERVER) or came (CLIENT) */
	bool sends;    /* a body of ours was announced ... */
	bool ended;    /* ... and h2_send_end() was called, or the head was all */
	bool deferred; /* nghttp2 waits for h2_send_body() or h2_send_end() */
	bool above;    /* the queue was above NP_BACKLOG_HIGH, and not below NP_BACKLOG_LOW since */
	bool drained;  /* drained() is due */
	bool reset;    /* by us: nothing but closed() follows */
	bool peer_reset;
	bool blamed;   /* h2_problem() has words for why it ends */
	uint32_t code; /* with which we reset it */
	struct h2_chunk *first, *last;
	size_t queued;
	struct h2_trailers *trailers;
	size_t held;	/* bytes that body() gave and h2_consume() did not yet give back */
	size_t shelved; /* of them those that h2_shelve() gave back to the connection */
};

struct h2 {
	nghttp2_session *session;
	enum h2_role role;
	struct h2_events events;
	void *ctx;
	struct h2_stream *streams, *last_stream;
	size_t n_streams;
	size_t queued;	  /* of all streams */
	bool busy;	  /* inside of nghttp2, or of an event: neither h2_read() nor h2_write() may enter */
	bool leaving;	  /* h2_goaway() */
	bool dead;	  /* nghttp2 must not be touched any more */
	bool goaway_sent; /* the GOAWAY for error is on its way */
	int error;	  /* what h2_read() returns from now on */
	unsigned noise;
	bool drained;	   /* a stream's drained() is due */
	struct buf *out;   /* of the h2_write() under way ... */
	size_t limit;	   /* ... and the length at which it stops */
	struct buf last;   /* frames made by h2_read() when it broke the connection */
	struct head in;	   /* the head that is coming: there is only one at a time on a connection */
	struct buf cookie; /* its crumbs */
	bool in_trailers;
	bool wants_h1; /* its GOAWAY says HTTP_1_1_REQUIRED */
	bool vague;    /* nothing better is known of a broken connection than its code */
	char problem[160];
};

/* Words for h2_problem(); those about a broken connection stay. */
void h2_explain(struct h2 *h2, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* The connection is over. Callbacks may call this: the GOAWAY is made later, outside of nghttp2, which would forget
 * that it reads no more when it is told in the middle of a frame. */
void h2_break(struct h2 *h2, int error, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* What nghttp2 returned: fatal errors break the connection. */
void h2_check(struct h2 *h2, int e);

int h2_session_new(struct h2 *h2);

struct h2_stream *h2_stream_new(struct h2 *h2); /* in the list; NULL without memory */
void h2_stream_free(struct h2_stream *stream);
void h2_stream_close(struct h2_stream *stream, uint32_t error); /* tells the owner, and frees it */

void h2_queue_clear(struct h2_stream *stream); /* body and trailers that wait */

/* Fields that have a meaning of their own here. */
enum h2_field {
	H2_FIELD_OTHER,
	H2_FIELD_HOP, /* belongs to one connection */
	H2_FIELD_COOKIE,
	H2_FIELD_EXPECT,
	H2_FIELD_HOST,
	H2_FIELD_LENGTH,
	H2_FIELD_TE,
};
enum h2_field h2_field_kind(const char *name, size_t len);

/* The head that comes. Each returns 0, -ENOMEM, or -EPROTO or -E2BIG with words: the stream must be reset. */
void h2_head_begin(struct h2 *h2, bool trailers);
int h2_head_field(struct h2 *h2, const char *name, size_t name_len, const char *value, size_t value_len);
int h2_head_finish(struct h2 *h2, const struct h2_stream *stream, bool end);

/* Of nghttp2's callbacks the one for bodies that go. */
int h2_on_body_send(nghttp2_session *session, nghttp2_frame *frame, const uint8_t *header, size_t len,
		    nghttp2_data_source *source, void *ctx);
