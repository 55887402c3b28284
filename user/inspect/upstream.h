/* SPDX-License-Identifier: MIT */
/*
 * Inside of connections to origins. Files: pool.c (those that are kept), upstream.c (life, what an exchange does with
 * one), upstream_io.c (how one is made, and its bytes). What others need is in pool.h.
 */
#pragma once

#include "inspect/exchange.h"
#include "resolver/aliases.h"

TAILQ_HEAD(exchange_queue, exchange);

/*
 * What a session has open to one host, port and scheme.
 *
 * Of requests to a host of which it is not known that it speaks HTTP/1.1, only the first dials, and the others wait for what
 * comes of that: if it speaks HTTP/2, one connection serves them all. If not, or when that fails, each of them dials.
 */
struct pool_host {
	struct table_node node;
	struct worker *worker;
	struct session *session;
	struct host host;
	uint16_t port;
	bool tls;
	bool speaks_h1;		    /* the last that was asked did; remembered beyond its connections */
	bool failed;		    /* the leader came to nothing */
	struct upstream_queue idle; /* of HTTP/1.1; least recently used first */
	struct upstream_list h2;
	unsigned n_idle, n_users; /* users: connections, leader, those that wait, the task */
	struct exchange *leader;
	struct exchange_queue waiting;
	struct loop_task resume;
};

struct upstream {
	LIST_ENTRY(upstream) of_session, of_h2;
	TAILQ_ENTRY(upstream) of_idle, of_host;
	struct leg leg;
	struct session *session;
	struct pool_host *to;
	struct exchange *awaited; /* whom the handshake is for */
	unsigned n_exchanges;
	struct route route; /* where it leads, */
	bool routed;	    /* if that is known here */
	const char *proxy;  /* by which it goes: its URL; NULL: directly */
	uint64_t acked;	    /* bytes that the origin's kernel had taken when a request last began with no other on it */
	bool handshaking, used, idle;
	bool h1_only;
	bool broken_off; /* an exchange on it ended before its time: that must show, with a reset */
	bool left;	 /* bytes of an exchange that is over may still wait in it, in its codec or in its socket */
	bool next;	 /* h1: the codec is to be made ready for the next request, once it has returned */
	bool spoke;	 /* bytes of a response came since the last request */
	uint64_t deadline_ns, start_ns;
};

/* -- pool.c */
int pool_add(struct upstream *up, const struct exchange *exchange); /* a new one, to the exchange's host; -ENOMEM */
void pool_forget(struct upstream *up);
/* The handshake is over, and was for the exchange (or NULL): those that waited for it go on. */
void pool_learn(struct upstream *up, struct exchange *exchange);
void pool_leave(struct exchange *exchange); /* it waits no more, nor does anybody wait for it */
void pool_keep(struct upstream *up);	    /* it is idle; it may be gone then */
void pool_remove(struct upstream *up);	    /* it is idle no longer */

/* -- upstream.c */
struct exchange *upstream_at_hand(const struct upstream *up); /* HTTP/1.1; NULL: none */
void upstream_close(struct upstream *up); /* at once, or when its codec has returned; what is unsent is lost */
void upstream_part(struct upstream *up);  /* when its origin has acknowledged everything; it has no exchanges */
void upstream_leave(struct upstream *up); /* after everything that may call back into it; it may be gone then */
void upstream_attach(struct upstream *up, struct exchange *exchange);
void upstream_detach(struct exchange *exchange);
/* What is known of a request on it that is not answered. */
enum lost upstream_lost(const struct upstream *up);
/* There will be no answer. A request that may be sent again, over a kept connection that its origin closed meanwhile, is. */
void upstream_fail(struct upstream *up, enum np_reason reason, const char *words);

/* -- upstream_io.c */
void upstream_dial(struct exchange *exchange);
