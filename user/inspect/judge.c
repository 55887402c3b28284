/* SPDX-License-Identifier: MIT */
#include "inspect/judge.h"

#include <string.h>

#include "inspect/ask.h"
#include "inspect/client.h"
#include "policy/decide.h"
#include "policy/name_reachable.h"
#include "vocab/limits.h"

/* The session's, or what the policy in hand means for its level: the stricter. */
static struct np_rung client_rung(const struct client *client)
{
	struct np_rung rung = client->sandbox->rung;

	if (client->worker->policy->modes.of[rung.level] > rung.mode)
		rung.mode = client->worker->policy->modes.of[rung.level];
	return rung;
}

/* What stage_place.c says of the origin's leg. An https: URL in the clear is a request to the client's proxy, if
 * that is allowed: from the head alone this cannot be told. */
static int head_leg(const struct client *client, const struct head *head)
{
	if (client->tls)
		return LEG_TLS;
	return head->scheme && !strcmp(head->scheme, "https") ? LEG_UNKNOWN : LEG_CLEAR;
}

/* What a request says. names has to last as long as facts. */
static void head_facts(const struct head *head, const char *names[static NP_HEAD_FIELDS + 1], struct facts *facts)
{
	for (size_t i = 0; i < head->fields.n; i++)
		names[i] = head->fields.items[i].name;
	names[head->fields.n] = NULL;
	facts->method = head->method;
	facts->path = head->target;
	facts->headers = names;
	facts->body = head->has_length ? head->length : 0;
	facts->has_body = head->has_body && !(head->has_length && !head->length);
	facts->websocket = head->upgrade != NULL;
}

bool judge_reads(const struct head *head)
{
	const char *names[NP_HEAD_FIELDS + 1];
	struct facts facts = { 0 };

	head_facts(head, names, &facts);
	return facts_read(&facts);
}

struct verdict judge_request(const struct client *client, const struct host *host, uint16_t port,
			     const struct route *route, const struct head *head, const struct ask *ask)
{
	const char *names[NP_HEAD_FIELDS + 1];
	struct verdict verdict;
	struct facts facts = {
		.rung = client_rung(client),
		.session = client->sandbox->session->name,
		.protocol = PATTERN_TCP,
		.port = port,
	};

	if (host->is_addr)
		facts.has_addr = true, facts.addr = host->addr;
	else
		facts.name = host->name;
	if (route) {
		facts.has_addr = true;
		facts.addr = route->addr;
		facts.aliases = route->aliases ? route->aliases->names : NULL;
	}
	if (head) {
		head_facts(head, names, &facts);
		facts.leg = head_leg(client, head);
	}
	verdict = policy_decide(client->worker->policy, &facts);
	if (ask && judge_asks(&verdict) && ask_covers(ask, client, &verdict)) {
		verdict.action = ACTION_ALLOW;
		verdict.reason = ask->allowed;
	}
	return verdict;
}

struct verdict judge_connection(const struct client *client, const struct host *host, uint16_t port,
				const struct route *route)
{
	return judge_request(client, host, port, route, NULL, NULL);
}

const struct upstream_proxy *judge_proxy(const struct worker *worker, const struct host *host, uint16_t port)
{
	return policy_proxy(worker->policy, host, port);
}

bool judge_same_way(const struct worker *worker, const struct host *host, uint16_t port, const char *proxy)
{
	const struct upstream_proxy *now = policy_proxy(worker->policy, host, port);

	return now && proxy ? !strcmp(now->url, proxy) : !now && !proxy;
}

bool judge_inspects(const struct worker *worker, uint16_t port)
{
	return policy_inspects(worker->policy, port);
}

bool judge_knows_host(const struct client *client, const struct host *host)
{
	const struct sandbox *sandbox = client->sandbox;

	return !host->is_addr &&
	       policy_may_name(client->worker->policy, &sandbox->rung, sandbox->session->name, host->name) & MAY_HTTP;
}
