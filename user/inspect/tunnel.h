/* SPDX-License-Identifier: MIT */
/* Bytes that pass unseen where a rule says so, and websockets, whose frames are checked as they pass. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "inspect/stage.h"
#include "policy/verdict.h"

struct ask;
struct client;
struct hold_terms;
struct exchange;
struct tunnel;

void tunnel_start(struct client *client, const struct verdict *verdict); /* bytes pass to client->host, unseen */
/* The request that the exchange was for has become a websocket, perhaps with compressed messages. */
void tunnel_switch(struct exchange *exchange, bool deflate);
size_t tunnel_held(const struct tunnel *tunnel);
void tunnel_rejudge(struct client *client, enum np_reason by);
size_t tunnel_unsent(const struct tunnel *tunnel); /* bytes that it only waits for the origin to acknowledge */
void tunnel_tick(struct client *client);	   /* the client may be gone then */
void tunnel_count(struct tunnel *tunnel);	   /* brings the sandbox's counts up to date */
bool tunnel_owes(const struct tunnel *tunnel);	   /* the origin has not acknowledged all that the client says */
void tunnel_free(struct tunnel *tunnel);

/* -- for stages: connect() */
const struct client *tunnel_client(const struct tunnel *tunnel); /* which has the host and the port */
/* The client's connection is reset, and reported with the reason. */
void tunnel_refuse(struct tunnel *tunnel, enum np_reason reason, const struct verdict *verdict, const char *words);
/* connect() returns what this returns: the tunnel waits, for hold_resume() or hold_refuse() of its hold. */
enum stage_result tunnel_hold(struct tunnel *tunnel, const struct hold_terms *terms);
struct ask *tunnel_ask(struct tunnel *tunnel);		  /* what a person is asked about it */
uint64_t tunnel_hold_number(const struct tunnel *tunnel); /* for hold_find(); 0: it is not held */
