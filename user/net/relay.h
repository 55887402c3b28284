/* SPDX-License-Identifier: MIT */
#pragma once

#include "base/buf.h"
#include "net/channel.h"

struct relay_events {
	/* Bytes that are about to pass: 0, as they are; 1, what is in out goes instead, which was empty; -errno ends it, with resets, before
	 * they do. NULL: nobody looks at them. */
	int (*look)(void *ctx, bool from_client, const char *data, size_t len, struct buf *out);
	void (*closed)(void *ctx, uint64_t sent, uint64_t received); /* once, when it is over: see below */
};
/* Bytes both ways between two channels; first goes to the origin before them, and is not looked at. Takes over both.
 * It is over when it broke, or both have said all and the origin has acknowledged everything. */
struct relay;
int relay_start(struct channel *client, struct channel *origin, const struct buf *first,
		const struct relay_events *events, void *ctx, struct relay **ret);
void relay_count(const struct relay *relay, uint64_t *ret_sent, uint64_t *ret_received); /* bytes so far */
size_t relay_unsent(const struct relay *relay); /* bytes that it only waits for the origin to acknowledge */
void relay_tick(struct relay *relay);		/* every 50 ms or so: are there any left? It may be gone then */
bool relay_owes(const struct relay *relay);	/* the origin has not acknowledged all that the client says */
void relay_free(struct relay *relay);		/* closed() is not called; with resets */
size_t relay_held(const struct relay *relay);	/* bytes that either end has not taken */
