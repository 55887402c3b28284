/* SPDX-License-Identifier: MIT */
/*
 * What waits for an answer from outside: an exchange, or a tunnel before its dial. It has a number that whoever answers can
 * keep, for it may end before the answer comes; and it never waits for longer than its terms say.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "reason.h"

struct hold;
struct sandbox;
struct worker;

struct hold_terms {
	uint32_t ms;	     /* then it is refused ... */
	enum np_reason late; /* ... for this, */
	const char *words;   /* with these, which last as long as the program. NULL: none */
	size_t body;	     /* bytes of a request's body that are read meanwhile, beside what came with its head */
	void (*over)(struct hold *hold); /* it is about to be held no longer, whatever the cause; NULL: nobody cares */
	void (*wake)(struct hold *hold); /* called once, when it was held for wake_ms; NULL: nobody wants that */
	uint32_t wake_ms;
	void *ctx; /* for these two */
};

/* For its owner. It is held no longer when one of them is called. */
struct hold_events {
	void (*resume)(struct hold *hold);
	void (*refuse)(struct hold *hold, enum np_reason reason, const char *words);
	void (*read)(struct hold *hold); /* it is still held, and more of its body is wanted; NULL: it has none */
};

/* Only hold.c writes it. Zeroed: it is not held. */
struct hold {
	TAILQ_ENTRY(hold) of_worker;
	uint64_t number; /* 0: it is not held */
	struct worker *worker;
	struct sandbox *sandbox;
	const struct hold_events *events;
	struct hold_terms terms;
	uint64_t since_ns;
};

TAILQ_HEAD(hold_queue, hold);

/* Of a worker. Only hold.c writes it. */
struct holds {
	struct hold_queue list; /* the one that was held first is first */
	unsigned n;
	uint64_t last; /* number */
};

void holds_init(struct holds *holds);
/* 0, or -EBUSY: as many are held as may be. */
int hold_begin(struct hold *hold, struct worker *worker, struct sandbox *sandbox, const struct hold_terms *terms,
	       const struct hold_events *events);
/* Other terms for one that is held: their time begins now. All of it together is never longer than NP_HOLD_MAX_MS. */
void hold_renew(struct hold *hold, const struct hold_terms *terms);
/* So many bytes of its body are wanted now, within ms; then wake() is called, once. How long it is held stays as it was. It may be over
 * when this returns. */
void hold_read(struct hold *hold, size_t body, void (*wake)(struct hold *hold), uint32_t ms);
void hold_wake(struct hold *hold); /* its wake() is called as soon as nothing else is at work */
void hold_end(struct hold *hold);  /* of what ends by itself; nothing is called. Fine when it is not held */
static inline bool hold_is_on(const struct hold *hold)
{
	return hold->number;
}

/* -- the answer. What was gathered is written when the caller returns to the loop, or calls worker_flush(). */
struct hold *hold_find(const struct worker *worker, uint64_t number); /* NULL: it is no more */
void hold_resume(struct hold *hold);
void hold_refuse(struct hold *hold, enum np_reason reason, const char *words);
void holds_tick(struct worker *worker, uint64_t now_ns); /* refuses what has waited for too long */
