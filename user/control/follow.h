/* SPDX-License-Identifier: MIT */
/*
 * Event streams that stay open. A follower with nothing to send is suspended: it costs
 * neither time nor a timer. New events wake it. It may read as slowly as it likes: what
 * waits for it is bounded by its feed, and never holds up anyone else.
 */
#ifndef NP_CONTROL_FOLLOW_H
#define NP_CONTROL_FOLLOW_H

#include <microhttpd.h>

#include "control/peer_credentials.h"
#include "control/server.h"

struct follower;

struct follow_set {
	const struct server_config *config;
	struct follower *first;
	void (*kick)(void *data); /* a connection was resumed: MHD_run() must be called soon, but not from in here */
	void *data;
};

struct follow_options {
	const char *session; /* NULL for all */
	const char *reason;  /* a token, or NULL for all */
	/* NULL: the events themselves. Else a change of the session only means that there may be something new: then this
	 * appends what is new after *after, and moves that on. */
	int (*more)(const struct server_config *config, const char *session, uint32_t *after, struct buf *out);
	uint32_t after;
	struct peer peer;
};

/* Makes the response of a follower: the bytes of history first, which are taken over, then live events.
 * Returns 0, -EMFILE (NP_FOLLOWERS_MAX, or the caller has NP_FOLLOWERS_PER_USER) or -ENOMEM. The response owns the follower. */
int follow_open(struct follow_set *set, struct MHD_Connection *connection, const struct follow_options *options,
		struct buf *history, struct MHD_Response **ret);

/* About every second: heartbeats, and the end of followers that went away or into a sandbox. */
void follow_tick(struct follow_set *set, uint64_t now_ns);

/* Ends all of them, at the next MHD_run() or MHD_stop_daemon(). */
void follow_end_all(struct follow_set *set);

#endif
