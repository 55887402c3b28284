/* SPDX-License-Identifier: MIT */
/* One request and its response. Files: exchange.c (life, verdict, response), exchange_request.c (the request's way),
 * exchange_response.c (the response's), exchange_hold.c (when it waits for an answer), exchange_time.c (how long it waits for
 * bytes). */
#pragma once

#include "inspect/ask.h"
#include "inspect/client.h"
#include "inspect/hold.h"
#include "inspect/pool.h"
#include "inspect/stage.h"

struct capture;
struct carried;
struct echo;
struct leak;
struct origin_dial_result;
struct tokens;
struct withheld;

#define STAGES_MAX 16

/* A body, and the stages that want it. Only stage.c and stages_body.c write it. */
struct stage_bodies {
	unsigned wanted; /* a bit for each of stages[] */
	bool resized;	 /* its length is not the announced one */
	struct withheld *withheld;
};

struct exchange {
	struct client *client;
	struct at_client at_client;
	struct at_origin at_origin;
	enum request_state request;
	enum response_state response;
	bool origin_done;		  /* the origin has said all; some of it may be in the stages */
	unsigned stage;			  /* of stages[] that is next */
	struct stage_bodies bodies[WAYS]; /* for stages that look at them */
	struct hold hold;		  /* it waits for an answer */
	struct ask ask;			  /* of a person */
	unsigned tries;			  /* it was lost before anything was done, and went again */
	bool canonical;			  /* head has the name and the scheme that the origin gets */
	bool h1_only;			  /* the origin wants no other version */
	struct head head;		  /* the request's: what is judged and reported */
	struct head *outgoing;		  /* what the origin gets; NULL: the same. See exchange_outgoing() */
	struct host host;
	uint16_t port;
	bool tls;		 /* of the origin's leg */
	uint64_t body, max_body; /* bytes of its body that came, and that may */
	struct buf pending;	 /* request body before there is an upstream */
	struct buf again;	 /* what was sent of it, if it may have to be sent once more ... */
	bool keeps;		 /* ... and all of it is there */
	size_t owed[WAYS];	 /* bytes of bodies that were not yet given back to the window of their sender */
	unsigned interims;
	struct fields *trailers;  /* of the request, before there is an upstream */
	struct timeouts timeouts; /* its rule's */
	uint64_t active_ns;	  /* when a byte moved last */
	size_t waiting;		  /* bytes on their way to either side, when that was looked at last */
	struct link_request report;
	const char *proxy;		     /* that it went by last */
	struct capture *capture;	     /* NULL: its rule wants none */
	const struct credential *credential; /* that the rule names which allows it: stage_judge.c's; NULL: none */
	struct carried *carried;	     /* stage_credentials.c's; NULL: the policy has no credentials */
	struct leak *leak;		     /* of a request's body that comes coded: stage_leak.c's */
	struct echo *echo;		     /* of a response that is searched: stage_echo.c's */
	struct tokens *tokens;		     /* of one that may have tokens: stage_tokens.c's */
	uint64_t sent_ns, head_ns;
};

/* -- for the client's side */
/* A request came; the head is taken. May be over when this returns. */
void exchange_start(struct client *client, const struct turn *turn, struct head *head, bool end);
/* Answers a request that is none for an origin: CONNECT. */
void request_refuse(struct client *client, const struct turn *turn, struct head *head, const struct verdict *verdict);
extern const struct turn_events exchange_client_events;
void exchange_client_gone(struct exchange *exchange);		/* no more to or from the client */
void exchange_tick(struct exchange *exchange, uint64_t now_ns); /* is over when it has been silent for too long */
/* For an exchange that became a tunnel, which has its report and its head now. */
void exchange_free(struct exchange *exchange);
struct exchange_texts {
	const struct head *head;
	bool tls;
	const char *proxy; /* URL of the upstream proxy, or NULL */
	const struct capture *capture;
};
void exchange_report(struct worker *worker, const struct link_request *report, const struct exchange_texts *texts);
size_t exchange_kept(const struct exchange *exchange); /* bytes of its body that wait, or may have to be sent again */

/* -- for both */
/* The receiver of that way has taken what was sent: there is room for more. Returns false when that was its end. */
bool exchange_drained(struct exchange *exchange, enum stage_way way);

/* -- for the origin's side */
/* The name leads to an address where the client may not go (route), or must not be given to a proxy (route NULL).
 * The rule that says so is named. */
void exchange_route_refused(struct exchange *exchange, const struct route *route, const char *words);
void exchange_upstream_ready(struct exchange *exchange);
void exchange_upstream_failed(struct exchange *exchange, enum np_reason reason, const char *words);
enum lost {
	LOST_UNKNOWN,
	LOST_REFUSED,	/* the origin says that it did nothing */
	LOST_WANTS_H1,	/* the origin says that it did nothing, and wants HTTP/1.1 */
	LOST_UNTOUCHED, /* not a byte of it was acknowledged: the origin cannot have done anything */
	LOST_UNANSWERED /* a kept connection was closed before anything was said on it */
};
/* Its connection will not answer it. */
void exchange_lost(struct exchange *exchange, enum lost lost, enum np_reason reason, const char *words);
extern const struct turn_events exchange_origin_events;
void exchange_discard(
	struct exchange
		*exchange); /* the bytes that its upstream has not sent by now are not counted: they never leave */
/* It has waited for ms, which is all that its rule gives it: name is the key of timeouts. */
void exchange_timed_out(struct exchange *exchange, const char *name, uint32_t ms);
/* The way to the origin and how long it took, for the report. */
void exchange_note_dial(struct exchange *exchange, const struct origin_dial_result *result);
void exchange_note_proxy(struct exchange *exchange, const char *url); /* NULL: it goes directly */
void exchange_note_tls(struct exchange *exchange, uint64_t us);
void exchange_note(struct exchange *exchange, const char *words); /* for readers of the event */

/* -- for stages: each of these but the last three ends the exchange. */
/* Answers instead of an origin, before anything of an answer has gone. With a verdict: its rule is named. */
void exchange_refuse(struct exchange *exchange, enum np_reason reason, const struct verdict *verdict,
		     const char *detail);
/* The client's side cannot be finished properly. */
void exchange_break(struct exchange *exchange);
/* Refuses it, or breaks it off if its answer has begun. The origin gets no more of the request, and a reset. */
void exchange_stop(struct exchange *exchange, enum np_reason reason, const struct verdict *verdict, const char *words);
/* start() returns what this returns: the exchange waits, for hold_resume() or hold_refuse() of exchange->hold. */
enum stage_result exchange_hold(struct exchange *exchange, const struct hold_terms *terms);
/* The request that goes to the origin, to be changed in start(): a copy, so that what is put in is neither judged nor reported.
 * For stages behind "canonical", for it is made of the head as that leaves it. NULL: not yet, or there is no memory for it. */
struct head *exchange_outgoing(struct exchange *exchange);

/* -- within exchange*.c and stages_body.c */
/* What has come through the stages goes on; and is there room for more of it? */
enum stage_result exchange_pass(struct exchange *exchange, enum stage_way way, const struct piece *piece);
bool exchange_has_room(const struct exchange *exchange, enum stage_way way);
/* So many bytes of a body came that way: they are given back to the window of their sender; false: later, and they
 * are owed. */
bool exchange_give_back(struct exchange *exchange, enum stage_way way, size_t len);
enum stage_result exchange_request_pass(struct exchange *exchange, const struct piece *piece);
void exchange_over(struct exchange *exchange); /* both sides have been told */
