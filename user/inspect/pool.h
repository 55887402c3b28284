/* SPDX-License-Identifier: MIT */
/* Connections to origins, as exchanges and sessions know them: made for one exchange, kept for the next one of the same
 * session, never for another's. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "base/table.h"
#include "http/head.h"
#include "inspect/worker.h"
#include "reason.h"

struct exchange;
struct loop;
struct origin_dial;
struct route;

TAILQ_HEAD(upstream_queue, upstream);

/* Of a session. Only pool.c and upstream*.c write it. */
struct pool {
	struct upstream_list upstreams;
	struct upstream_queue idle; /* least recently used first */
	unsigned n_idle;
	struct table hosts; /* pool_host: a search for one host does not walk past the connections to others */
};

/* An exchange's place at its origin. Only pool.c and upstream*.c write it. */
struct at_origin {
	struct upstream *upstream;
	struct origin_dial *dial;   /* on the way to one */
	struct upstream *handshake; /* further on */
	/* It is the first that is on the way to its host, or waits for that one, which may be for all of them. */
	struct pool_host *awaits;
	TAILQ_ENTRY(exchange) of_waiting;
	struct turn turn; /* on it */
};

void pool_init(struct pool *pool);
void pool_free(struct pool *pool, struct loop *loop); /* after upstream_close_all() */
/* Finds or makes a connection to the exchange's host; exchange_upstream_ready() or _failed() follows, perhaps at once.
 * upgrade: HTTP/1.1, and for this exchange alone. */
void upstream_get(struct exchange *exchange, bool upgrade);
void upstream_cancel(struct exchange *exchange); /* it wants no more of it */
/* Bytes that would be lost with the connection, those in the kernel included; with HTTP/2: with the stream. */
size_t upstream_waiting(const struct exchange *exchange);
void upstream_done(struct exchange *exchange); /* request and response are complete: keep the connection */
struct channel *upstream_take(struct exchange *exchange);
/* Closes the connection under an exchange, with a reset: nothing that waits in it leaves. */
void upstream_reset(struct exchange *exchange);
/* Where the exchange's leads, or will once TLS is up; NULL: that is not known, or only to the upstream proxy. */
const struct route *upstream_route(const struct exchange *exchange);
/* It goes, or has begun to go, by the upstream proxy that the policy in hand names for its host, or by none if that names none. */
bool upstream_way_stands(const struct exchange *exchange);
/* It may turn a request away unread. */
bool upstream_may_decline(const struct exchange *exchange);

void upstream_tick(struct session *session, uint64_t now_ns);
void upstream_close_all(struct session *session, enum np_reason reason, const char *words);
/* The policy or the level changed: none of the connections that are there serves another request. */
void upstream_retire(struct session *session);
/* Has the origin not acknowledged all of a request; or all of those that are over, of any connection of the session? */
bool upstream_owes(const struct exchange *exchange);
bool upstreams_owe(const struct session *session);
