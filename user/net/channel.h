/* SPDX-License-Identifier: MIT */
/*
 * A byte stream that never blocks: a TCP socket, perhaps with TLS on it. Bytes are given to its owner as they come;
 * what the owner writes is kept until the socket takes it.
 */
#pragma once

#include <openssl/ssl.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "net/linger.h"
#include "loop/loop.h"

struct channel;

/* Called from the loop only, never from inside a channel_ function. The owner may free the channel in any of these;
 * nothing is called after that. */
struct channel_events {
	/* TLS is up (channel_tls() only). */
	void (*ready)(void *ctx);
	/* Bytes came. Returns how many were used; fewer than len pauses the channel, and the rest is offered again after
	 * channel_resume(). channel_resume() may be called in here, too: then the rest is offered at once. An owner that
	 * resumes and uses nothing, twice in a row, needs more bytes than there are: it is called again when more have come,
	 * with all of them. data is valid during the call only. */
	size_t (*data)(void *ctx, const char *data, size_t len);
	/* The peer will send no more; with TLS: it said so. A TLS stream that just ends is broken(-ECONNABORTED),
	 * for someone on the way may have cut it. */
	void (*eof)(void *ctx);
	/* The backlog went below NP_BACKLOG_LOW after it was above NP_BACKLOG_HIGH, or is empty after channel_finish(). */
	void (*drained)(void *ctx);
	/* -errno; -EPROTO: TLS, channel_problem() says what. Only channel_free() is left. */
	void (*broken)(void *ctx, int error);
};

/* Takes over fd (non-blocking, connected) also on failure. What it does waits in the lane; NULL: the loop's own. */
int channel_new(struct loop *loop, struct lane *lane, int fd, const struct channel_events *events, void *ctx,
		struct channel **ret);
void channel_free(struct channel *channel);  /* closes at once; what is unsent is lost */
void channel_reset(struct channel *channel); /* closes at once, too, and what waits in the socket is discarded */
/* For a socket that resets on close: closes it in order if the peer has acknowledged everything, else with that
 * reset. */
void channel_close(struct channel *channel);
/* Gives the socket back and frees the channel, if it has no TLS and nothing of it is on the way in or out. Else -1. */
int channel_detach(struct channel *channel);
void channel_set_owner(struct channel *channel, const struct channel_events *events, void *ctx);

/* Starts TLS; ssl is set up for its role (SSL_set_accept_state or connect) and is taken over, also on failure.
 * first/len: bytes of it that data() has used. Those that it has not, or does not use in the call that this is made in,
 * come behind them by themselves. */
int channel_tls(struct channel *channel, SSL *ssl, const char *first, size_t len);
SSL *channel_ssl(const struct channel *channel);       /* NULL without TLS */
bool channel_speaks_h2(const struct channel *channel); /* so it was agreed on, by ALPN */

/* Keeps what the socket does not take. Less than a TLS record's worth is kept until the loop has been through the
 * events at hand, so that a head and its body make one record and one packet. Before ready() all is kept. 0 or -errno;
 * -ENOBUFS for an owner who has not looked at the backlog for long. An error here is told to broken() as well. */
int channel_write(struct channel *channel, const void *data, size_t len);
size_t channel_backlog(const struct channel *channel);
size_t channel_unsent(const struct channel *channel); /* the same, and what the kernel has of it; takes a call */
/* After all that is written: close_notify and shutdown of the sending side. Reading goes on. */
void channel_finish(struct channel *channel);
void channel_resume(struct channel *channel); /* what was not used is offered, and reading goes on: from the loop */
void channel_pause(struct channel *channel);  /* stops reading after the current call */

/* The peer has closed its side, or the connection broke: known also while it is paused, and what came before is unread. */
bool channel_is_hung_up(const struct channel *channel);

int channel_fd(const struct channel *channel);
const char *channel_problem(const struct channel *channel); /* words for a broken TLS, e.g. "certificate has expired" */
/* Of a server whose handshake broke: the peer ended it at our certificate, by an alert about it or by closing behind it. */
bool channel_is_distrusted(const struct channel *channel);
