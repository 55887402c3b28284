/* SPDX-License-Identifier: MIT */
/*
 * An exchange is a pipeline of stages, each of which may do one thing to it. The table in stages.c is the pipeline:
 * another stage is a file and a line there. A request goes through it from the first to the last, a response from the
 * last to the first. So a stage that stands nearer to the origin than another sees requests after that one, and
 * responses before it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "reason.h"

struct buf;
struct exchange;
struct fields;
struct head;
struct tunnel;

/* How far an exchange is. Each goes through its states in this order, but for a request that was lost and goes again. */
enum request_state {
	REQUEST_COMES, /* the client sends, or the stages have some of it yet */
	REQUEST_WHOLE, /* it is through the stages ... */
	REQUEST_SENT,  /* ... and at the origin */
};
enum response_state {
	RESPONSE_AWAITED,
	RESPONSE_BEGUN, /* something of it came: an informational head at least */
	RESPONSE_GOES,	/* a final head went to the client ... */
	RESPONSE_GONE,	/* ... and all of it */
};

enum stage_role {
	STAGE_ANSWERS,	/* may answer it, or break it off, in the origin's place */
	STAGE_MODIFIES, /* may change what is passed on, and refuses what it cannot change */
	STAGE_OBSERVES, /* looks, and has no say: what it returns does not count */
};

enum stage_result {
	STAGE_NEXT, /* on to the next stage */
	STAGE_HELD, /* start(), connect(): it waits; see exchange_hold() and tunnel_hold(), which return it */
	STAGE_OVER, /* it was answered or broken off: the exchange, or the tunnel, is no more */
	/* Bodies, of a stage that MODIFIES: */
	STAGE_REPLACED, /* what is in piece->out goes on instead of the used bytes */
	STAGE_MORE,	/* likewise, and the rest makes more: it is called again when that was taken */
};

enum stage_way {
	WAY_REQUEST,
	WAY_RESPONSE,
	WAYS,
};

/* A part of a body. Its bytes are lent. */
struct piece {
	const char *data;
	size_t len;
	bool end; /* none comes behind it. It may be empty */
	const struct fields
		*trailers; /* with end, or NULL. A stage may set others, that last as long as the exchange */
	/* Of len. A stage that wants to see the last bytes once more, in front of those that come then, says how many it
	 * is done with; up to NP_WITHHELD_BYTES wait for it. At the end it is done with all of them. */
	size_t used;
	struct buf *
		out; /* empty; what it holds may be up to 2 * NP_BACKLOG_HIGH, and should not be much above NP_BACKLOG_LOW */
};

/* Each may be NULL. */
struct stage {
	const char *name;
	enum stage_role role;
	enum stage_result (*start)(struct exchange *exchange); /* its head has come */
	enum stage_result (*connect)(struct tunnel *tunnel);   /* bytes are to pass unseen; before the dial */
	/* Of messages that have a body, and only after stage_wants(). */
	enum stage_result (*request_body)(struct exchange *exchange, struct piece *piece);
	enum stage_result (*response_body)(struct exchange *exchange, struct piece *piece);
	/* Every head that goes to the client: informational ones and 101, too. After a 101 there are frames, which
	 * no hook sees: a stage that would have to see them ends the exchange here. */
	enum stage_result (*response)(struct exchange *exchange, struct head *head);
	/* The policy or the level has changed since start(). by: NP_R_ENDED_BY_*. */
	enum stage_result (*rejudge)(struct exchange *exchange, enum np_reason by);
	void (*over)(struct exchange *exchange);   /* both sides are done, whatever came before */
	void (*forget)(struct exchange *exchange); /* the last: what the stage has of it goes */
};

extern const struct stage *const stages[]; /* NULL behind the last. 16 at most */

/* -- for stages -- */
enum stage_want {
	WANT_LOOK,    /* passes all bytes as they are; it may withhold some for a while */
	WANT_REPLACE, /* what it passes may have another length: the message goes without content-length, unless ... */
	WANT_SAME,    /* ... it has the same one */
};
/* The stage's hook for bodies is called from now on: in start(), of a response in response() at the latest. */
void stage_wants(struct exchange *exchange, const struct stage *stage, enum stage_way way, enum stage_want want);

/* -- for exchanges and tunnels -- */
/* Calls start() of the stages behind the one that was called last; what has come of the body goes through each of them. */
enum stage_result stages_go_on(struct exchange *exchange);
enum stage_result stages_response(struct exchange *exchange, struct head *head);
enum stage_result stages_rejudge(struct exchange *exchange, enum np_reason by);
void stages_over(struct exchange *exchange);
void stages_forget(struct exchange *exchange);
/* *at: the next one to be called. */
enum stage_result stages_connect(struct tunnel *tunnel, unsigned *at);

/* -- stages_body.c: a part of a body, through all that want it and were started; exchange_pass() takes what comes out. */
enum stage_result stages_body(struct exchange *exchange, enum stage_way way, const struct piece *piece);
/* The one stage of them that was started last, and what has come before that. */
enum stage_result stages_body_late(struct exchange *exchange, unsigned stage);
/* Of a stage that said STAGE_MORE: as long as there is room for it. */
enum stage_result stages_body_more(struct exchange *exchange, enum stage_way way);
bool stages_body_due(const struct exchange *exchange, enum stage_way way);
size_t stages_body_withheld(const struct exchange *exchange);
void stages_body_forget(struct exchange *exchange);

extern const struct stage stage_place, stage_leak, stage_judge, stage_ask, stage_capture, stage_canonical,
	stage_credentials, stage_tokens, stage_echo, stage_upstream, stage_report;
