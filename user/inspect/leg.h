/* SPDX-License-Identifier: MIT */
/*
 * One side of exchanges: a channel with HTTP/1.1 or HTTP/2 on it. A client and a connection to an origin have one each,
 * and an exchange has a turn on both: it does not see which version is spoken, nor the channel.
 */
#pragma once

#include <sys/queue.h>

#include "base/buf.h"
#include "http/head.h"
#include "inspect/memory.h"

struct channel;
struct h1;
struct h2;
struct h2_stream;
struct leg;
struct turn;
struct worker;

enum leg_side {
	LEG_ORIGIN, /* written first: what waits there is what somebody waits for */
	LEG_CLIENT,
	LEG_SIDES,
};

/* It only ever goes on in this order. */
enum leg_life {
	LEG_OPEN,
	LEG_LAST,     /* no exchange comes after those that are on it */
	LEG_CLOSING,  /* nor is there any: it closes when all that was written is gone */
	LEG_FINISHED, /* as CLOSING, and its end was written */
	LEG_BROKEN,   /* a message was cut short, which must show: it closes with a reset */
	LEG_DEAD,     /* it is freed when nobody is at work on it */
};

/* For its owner. */
struct leg_events {
	/* CLIENT: a request. The turn is for the exchange that is made of it. 0 or -errno, which breaks the leg. */
	int (*request)(struct leg *leg, const struct turn *turn, struct head *head, bool end);
	/* HTTP/1.1: a part of a message that belongs to no exchange (any more). 0 or -errno, as above. */
	int (*stray)(struct leg *leg, size_t len);
	int (*read)(struct leg *leg);					    /* HTTP/1.1: all of a message was read */
	void (*closed)(struct leg *leg, struct turn *turn, uint32_t error); /* HTTP/2: the stream is no more */
	void (*refused)(struct leg *leg, const char *problem); /* CLIENT, HTTP/2: what was to be a request is none */
	void (*flush)(struct leg *leg);			       /* it is dirty; it calls leg_push() */
};

struct leg {
	enum leg_side side;
	enum leg_life life;
	const struct leg_events *events;
	struct worker *worker;
	struct channel *channel; /* NULL: taken */
	struct h1 *h1;
	struct h2 *h2;
	struct buf out;	   /* what was gathered to be written */
	struct turn *turn; /* h1: the one at hand */
	size_t unread;	   /* h1: bytes of a body that the other side has not taken */
	bool paused;	   /* it is not read, until the other side has taken them */
	bool busy;	   /* code further up in the call chain works on it, and frees it if it is dead then */
	bool dirty;
	LIST_ENTRY(leg) of_dirty;
	struct memory_share memory;
};

/* For an exchange. */
struct turn_events {
	void (*head)(struct turn *turn, struct head *head,
		     bool end); /* ORIGIN: a response; may be kept, with head_move() */
	void (*body)(struct turn *turn, const char *data, size_t len);
	void (*end)(struct turn *turn, const struct fields *trailers);
	void (*drained)(struct turn *turn); /* the backlog is low again */
};

/* An exchange's place on a leg. Only leg.c writes it. */
struct turn {
	struct leg *leg;	  /* NULL: it has none (yet) */
	struct h2_stream *stream; /* h2; ORIGIN: from its head on */
	bool gone;		  /* h2: the stream is no more */
	const struct turn_events *events;
};

/* -- for owners -------------------------------------------------------------------------- */
void leg_init(struct leg *leg, enum leg_side side, struct worker *worker, const struct leg_events *events);
int leg_speak(struct leg *leg, bool h2);
void leg_free(struct leg *leg); /* all but its channel; events->closed() is called for the streams that are left */
/* Goes on to this, or stays where it is if it is further. */
void leg_advance(struct leg *leg, enum leg_life life);
bool leg_is_dead(const struct leg *leg);
unsigned leg_version(const struct leg *leg); /* of HTTP, times ten: 10, 11 or 20; CLIENT: of its last request */
void leg_dirty(struct leg *leg);	     /* events->flush() is called at the end of this turn of the loop */
void leg_flush(struct leg *leg);
int leg_push(struct leg *leg);		  /* writes what was gathered, as far as the backlog allows */
size_t leg_held(const struct leg *leg);	  /* bytes in our memory */
size_t leg_unsent(const struct leg *leg); /* those in the kernel, too */
void leg_attach(struct turn *turn, struct leg *leg, const struct turn_events *events);
void leg_detach(struct turn *turn); /* what still comes for it is read and forgotten */
/* Takes the channel away, with what was gathered written to it. */
struct channel *leg_take(struct leg *leg);
int leg_take_fd(struct leg *leg); /* its descriptor, if nothing is buffered on either way; else -1, and it stays */

/* -- for exchanges ----------------------------------------------------------------------- */
int leg_head(struct turn *turn, const struct head *head, bool end);
int leg_body(struct turn *turn, const char *data, size_t len);
int leg_end(struct turn *turn, const struct fields *trailers);
size_t leg_backlog(const struct turn *turn);
/* Bytes that wait to be taken by the peer. Of HTTP/2 those of its stream alone: others' bytes move whether or not its own
 * do. */
size_t leg_waiting(const struct turn *turn);
void leg_consume(struct turn *turn, size_t n); /* n bytes that came were passed on: as many more may come */
/* n bytes that came wait for long, with the exchange: other exchanges of the leg go on. */
void leg_shelve(struct turn *turn, size_t n);
bool leg_may_switch(const struct turn *turn); /* to another protocol: HTTP/1.1 alone can */
void leg_abort(struct turn *turn);	      /* what was begun is not finished */
