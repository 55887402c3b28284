/* SPDX-License-Identifier: MIT */
/*
 * What a rule asks a person or a decider about: an exchange, or a tunnel before its dial. It is held, the daemon is asked, and its answer
 * becomes part of the verdict (judge.h) for this one exchange or tunnel: at the rung and for the rule that it was given at.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "reason.h"
#include "inspect/stage.h"
#include "rung.h"

struct client;
struct hold;
struct hold_terms;
struct host;
struct link_answer;
struct verdict;
struct worker;

enum ask_state {
	ASK_NOBODY,
	ASK_WANTED,  /* the rule wants somebody to be asked */
	ASK_OPEN,    /* the daemon was asked, and has not given its last answer */
	ASK_GRANTED, /* it has allowed this one */
};

/* Of an exchange or a tunnel. Only ask.c writes it. Zeroed: nobody is asked. */
struct ask {
	enum ask_state state;
	enum np_reason allowed; /* it was granted for this reason, */
	uint64_t question;	/* by this one; 0: it has named none yet, or no person was asked */
	uint64_t rule;		/* which is about this rule: asked_rule(), */
	struct np_rung rung;	/* and at this rung */
	unsigned again;
	size_t look; /* bytes of its body that are waited for before anybody is asked, 0: none; or, */
	bool shows;  /* if it was asked already, before they are shown to its decider */
	/* What is asked about. */
	const struct client *client;
	const struct host *host;
	uint16_t port;
	bool tls;			   /* to the origin */
	const struct head *head;	   /* NULL: nothing of it is seen */
	const struct buf *came;		   /* of its body; NULL likewise */
	const enum request_state *request; /* whether that is all of it; NULL as well */
};

/* The verdict asks: what is it about? tls: of a request, whether its origin is spoken to in TLS, whatever it says of itself. */
void ask_want(struct ask *ask, const struct client *client, const struct host *host, uint16_t port,
	      const struct head *head, const struct buf *came, const enum request_state *request, bool tls);
/* How long it is held, and what becomes of it then. look: its rule captures, so the first bytes of its body are waited for. */
struct hold_terms ask_terms(struct ask *ask, bool look);
/* Asks the daemon about what is held, unless bytes of its body are waited for. It is refused where that is not possible: false. */
bool ask_begin(struct ask *ask, struct hold *hold);
/* More of its body is there, behind what came. False: it was refused. */
bool ask_see(struct ask *ask, struct hold *hold, const struct piece *piece);
static inline bool ask_waits(const struct ask *ask)
{
	return ask->state == ASK_OPEN || ask->look;
}
/* The exchange becomes a tunnel: what was allowed stays so. */
void ask_move(struct ask *to, struct ask *from, const struct host *host, const struct head *head);
/* Was allowed what this verdict asks for? ask may be NULL. */
bool ask_covers(const struct ask *ask, const struct client *client, const struct verdict *verdict);
void asks_answer(struct worker *worker, const struct link_answer *answer); /* the daemon says */
