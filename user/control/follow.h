/* SPDX-License-Identifier: MIT */
/*
 * Event streams that stay open. A follower with nothing to send is suspended: it costs neither time nor a timer. New events
 * wake it. It may read as slowly as it likes: what waits for it is bounded by its feed, and never holds up anyone else.
 */
#pragma once

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

/* For who follows something else than events: they only say that there may be something new of it. */
struct follow_subject {
	const char *matches[2]; /* what the line of such an event contains, either of them; NULL: there is one */
	/* One of them came; NULL: nobody wants to look at it. lost: some of them may have been left out. */
	void (*look)(void *state, const char *line, size_t len, bool lost);
	/* Appends what is new, in whole lines, or a part of it. 1: there is more; 0: that is all; or -errno, which ends it. */
	int (*more)(const struct server_config *config, void *state, struct buf *out);
	void (*free)(void *state);
};

struct follow_options {
	const char *session;		      /* NULL for all */
	const char *reason;		      /* a token, or NULL for all */
	const struct follow_subject *subject; /* NULL: the events themselves */
	void *state;			      /* of the subject; taken over when it succeeds */
	struct peer peer;
};

/* Makes the response of a follower: the bytes of history first, which are taken over, then live events.
 * Returns 0, -EMFILE (NP_FOLLOWERS_MAX, of which NP_FOLLOWERS_RESERVE are operators', or the caller has NP_FOLLOWERS_PER_USER) or
 * -ENOMEM. The response owns the follower. */
int follow_open(struct follow_set *set, struct MHD_Connection *connection, const struct follow_options *options,
		struct buf *history, struct MHD_Response **ret);

/* About every second: heartbeats, and the end of followers that went away or into a sandbox. */
void follow_tick(struct follow_set *set, uint64_t now_ns);

/* Ends all of them, at the next MHD_run() or MHD_stop_daemon(). */
void follow_end_all(struct follow_set *set);
