/* SPDX-License-Identifier: MIT */
/*
 * The verdicts of the inspector. The facts of connections, requests and addresses are put together here and
 * nowhere else, and no other file of this folder asks the policy (tests/layers).
 */
#pragma once

#include "http/head.h"
#include "policy/verdict.h"
#include "resolver/aliases.h"
#include "wire/url.h"

struct ask;
struct client;
struct exchange;
struct worker;

/* May the client connect there? route NULL: it is not known yet where the host leads. */
struct verdict judge_connection(const struct client *client, const struct host *host, uint16_t port,
				const struct route *route);
/* May it make this request? head NULL: as judge_connection(). ask: what was asked about it and allowed; may be NULL. */
struct verdict judge_request(const struct client *client, const struct host *host, uint16_t port,
			     const struct route *route, const struct head *head, const struct ask *ask);
/* Somebody is asked: a person, or a decider. */
static inline bool judge_asks(const struct verdict *verdict)
{
	return verdict->action == ACTION_ASK || verdict->action == ACTION_DECIDE;
}
/* It is allowed, or somebody is asked as soon as it is known about what. */
static inline bool judge_goes_on(const struct verdict *verdict)
{
	return verdict->action == ACTION_ALLOW || judge_asks(verdict);
}
bool judge_reads(const struct head *head); /* of a request: it writes nothing */
/* Are requests to this port looked at? */
bool judge_inspects(const struct worker *worker, uint16_t port);
/* Could some request to this host be allowed? */
bool judge_knows_host(const struct client *client, const struct host *host);

/* By which upstream proxy connections to this host go, as the policy in hand has it; NULL: directly. */
const struct upstream_proxy *judge_proxy(const struct worker *worker, const struct host *host, uint16_t port);
/* Is that still the one of this URL (NULL: none)? */
bool judge_same_way(const struct worker *worker, const struct host *host, uint16_t port, const char *proxy);

/* Sockets for IPv4 and IPv6 that ask the kernel which addresses are the host's. They stay: making one for each address takes longer than
 * the rest. -1: none can be had, and every address of the family counts as the host's. */
void route_probes_open(int probes[static 2]);
/* May an inspector go this way for the client? route NULL: an upstream proxy is asked for the name, and nobody else knows
 * where that leads. head is NULL for a tunnel. */
bool route_may(const struct client *client, const struct host *host, uint16_t port, const struct route *route,
	       const struct head *head, const struct ask *ask);
/* What refuses it: a verdict with the rule, or without one where no rule is the reason. */
struct verdict route_refusal(const struct client *client, const struct host *host, uint16_t port,
			     const struct route *route, const struct head *head, const struct ask *ask);
