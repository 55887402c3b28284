/* SPDX-License-Identifier: MIT */
/*
 * Inside of connections to origins. Files: upstream.c (life, the pool, what an
 * exchange does with one), upstream_io.c (how one is made, and its bytes).
 */
#ifndef NP_INSPECT_UPSTREAM_H
#define NP_INSPECT_UPSTREAM_H

#include "inspect/worker.h"

struct upstream {
	LIST_ENTRY(upstream) of_session, of_dirty;
	TAILQ_ENTRY(upstream) of_idle;
	struct worker *worker;
	struct session *session;
	struct host host;
	uint16_t port;
	bool tls;
	struct channel *channel;
	struct h1 *h1;
	struct h2 *h2;
	struct buf out;
	struct exchange *exchange; /* h1, or whom a handshake is for */
	unsigned n_exchanges;
	size_t held;	    /* as memory.c counted it last */
	size_t unread;	    /* h1: bytes of a response that the client has not taken */
	struct route route; /* where it leads */
	uint64_t acked;	    /* bytes that the origin's kernel had taken when the last request began */
	bool handshaking, used, alone;
	bool h1_only;
	bool idle, dirty, paused, busy, dead;
	bool broken_off; /* an exchange on it ended before its time: that must show, with a reset */
	bool parting;	 /* it serves nobody any more, and waits until its origin has acknowledged everything */
	bool left;	 /* bytes of an exchange that is over may still wait in it, in its codec or in its socket */
	bool next;	 /* h1: the codec is to be made ready for the next request, once it has returned */
	bool spoke;	 /* bytes of a response came since the last request */
	uint64_t deadline_ns, start_ns;
};

/* -- upstream.c */
void upstream_close(struct upstream *up); /* at once, or when its codec has returned; what is unsent is lost */
void upstream_part(struct upstream *up);  /* when its origin has acknowledged everything; it has no exchanges */
void upstream_leave(struct upstream *up); /* after everything that may call back into it; it may be gone then */
void upstream_dirty(struct upstream *up);
void upstream_attach(struct upstream *up, struct exchange *exchange);
void upstream_detach(struct exchange *exchange);
/* There will be no answer. A request that may be sent again, over a kept connection that its origin closed meanwhile, is. */
void upstream_fail(struct upstream *up, enum np_reason reason, const char *words);
/* Not a byte was acknowledged since its request began: its origin cannot have done anything. */
bool upstream_is_untouched(const struct upstream *up);

/* -- exchange_request.c */
enum lost {
	LOST_UNKNOWN,
	LOST_REFUSED,  /* the origin says that it did nothing */
	LOST_WANTS_H1, /* likewise, and wants HTTP/1.1 */
};
/* It was detached from up, which will not answer it. */
void exchange_lost(struct exchange *exchange, const struct upstream *up, enum lost lost, enum np_reason reason,
		   const char *words);

/* -- memory.c */
void memory_count_upstream(struct upstream *up);

/* -- upstream_io.c */
void upstream_dial(struct exchange *exchange);

#endif
