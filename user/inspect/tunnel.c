/* SPDX-License-Identifier: MIT */
/* Bytes that pass unseen where a rule says so, and websockets, whose frames are checked as they pass. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "inspect/carried.h"
#include "inspect/exchange.h"
#include "inspect/judge.h"
#include "inspect/origin_dial.h"
#include "inspect/tunnel_internal.h"
#include "vocab/limits.h"

struct tunnel *tunnel_new(struct client *client)
{
	struct tunnel *tunnel = calloc(1, sizeof(*tunnel));

	if (tunnel) {
		tunnel->client = client;
		head_init(&tunnel->head);
		client_set_tunnel(client, tunnel);
	}
	return tunnel;
}

void tunnel_count(struct tunnel *tunnel)
{
	struct link_request *report = &tunnel->report;
	struct ledger_slot *counts = tunnel->client->sandbox->counts;

	if (tunnel->relay)
		relay_count(tunnel->relay, &report->sent, &report->received);
	if (tunnel->splice) {
		splice_count(tunnel->splice, &report->sent, &report->received);
		report->sent += tunnel->first;
	}
	ledger_add(&counts->sent, report->sent - tunnel->sent);
	ledger_add(&counts->received, report->received - tunnel->received);
	tunnel->sent = report->sent;
	tunnel->received = report->received;
}

static void tunnel_report(struct tunnel *tunnel)
{
	const struct client *client = tunnel->client;
	const struct head *head = &tunnel->head;
	struct link_request *report = &tunnel->report;
	const enum np_reason by = client_ended_by(client);
	char where[HOST_PORT_SIZE];

	tunnel->reported = true;
	tunnel_count(tunnel);
	report->question = tunnel_ask(tunnel)->question;
	if (by && NP_REASON_ALLOWS(report->reason))
		report_end(report, client->worker, client->sandbox, by, NULL);
	else if ((tunnel->dial || hold_is_on(&tunnel->hold)) && NP_REASON_ALLOWS(report->reason))
		snprintf(report->text, sizeof(report->text), "it ended before the origin was reached");
	if (head->method) {
		exchange_report(client->worker, report,
				&(struct exchange_texts){
					.head = head, .tls = !strcmp(head->scheme, "https"), .proxy = tunnel->proxy });
		return;
	}
	host_port_text(&client->host, client->port, where);
	report_send(client->worker, report,
		    &(struct report_texts){ .method = "CONNECT", .url = { where }, .proxy = tunnel->proxy });
}

/* A tunnel that was cut, or that nobody waited for, is reported, too: its name was resolved, and bytes may have
 * gone. */
void tunnel_free(struct tunnel *tunnel)
{
	if (!tunnel)
		return;
	if (!tunnel->reported)
		tunnel_report(tunnel);
	hold_end(&tunnel->hold);
	origin_dial_cancel(tunnel->dial);
	relay_free(tunnel->relay);
	splice_free(tunnel->splice);
	head_free(&tunnel->head);
	tunnel_messages_end(tunnel);
	free(tunnel->carried);
	route_clear(&tunnel->route);
	free(tunnel);
}

const struct client *tunnel_client(const struct tunnel *tunnel)
{
	return tunnel->client;
}

struct ask *tunnel_ask(struct tunnel *tunnel)
{
	return &tunnel->ask;
}

uint64_t tunnel_hold_number(const struct tunnel *tunnel)
{
	return tunnel->hold.number;
}

size_t tunnel_held(const struct tunnel *tunnel)
{
	return (tunnel->relay ? relay_held(tunnel->relay) : 0) + tunnel_messages_held(tunnel);
}

void tunnel_over(void *ctx, uint64_t sent, uint64_t received)
{
	struct tunnel *tunnel = ctx;

	tunnel->relay = NULL;
	tunnel->report.sent = sent;
	tunnel->report.received = received;
	client_close(tunnel->client);
}

static int on_frames(void *ctx, bool from_client, const char *data, size_t len, struct buf *out)
{
	return tunnel_messages_pass(ctx, from_client, data, len, out);
}

static const struct relay_events websocket_events = { .look = on_frames, .closed = tunnel_over };

size_t tunnel_unsent(const struct tunnel *tunnel)
{
	if (tunnel->relay)
		return relay_unsent(tunnel->relay);
	return tunnel->splice ? splice_unsent(tunnel->splice) : 0;
}

bool tunnel_owes(const struct tunnel *tunnel)
{
	if (tunnel->relay)
		return relay_owes(tunnel->relay);
	return tunnel->splice ? splice_owes(tunnel->splice) : tunnel->dial != NULL;
}

/* Both ends may have sent all while bytes still wait for the origin. The client's place is kept for them, so that a
 * raise or a new policy finds them; for as long as the origin goes on taking some. */
void tunnel_tick(struct client *client)
{
	struct tunnel *tunnel = client->tunnel;

	if (!client->deadline_ns && tunnel_unsent(tunnel))
		client_wait(client, NP_IDLE_MS);
	if (tunnel->relay)
		relay_tick(tunnel->relay);
	else if (tunnel->splice)
		splice_tick(tunnel->splice);
}

/* Takes over both channels. first goes to the origin before what comes. */
void tunnel_relay(struct tunnel *tunnel, struct channel *near, struct channel *far, const struct buf *first,
		  const struct relay_events *events)
{
	if (relay_start(near, far, first, events, tunnel, &tunnel->relay) < 0)
		client_close(tunnel->client);
}

/* It is no tunnel's end, but a refusal. */
void tunnel_withdraw(struct tunnel *tunnel)
{
	tunnel->reported = true;
	report_withdraw(&tunnel->report, tunnel->client->sandbox);
}

void tunnel_end(struct tunnel *tunnel, const struct client_refusal *refusal)
{
	struct client *client = tunnel->client;

	tunnel_withdraw(tunnel);
	client_report_refusal(client, refusal);
	client_reset(client);
}

void tunnel_refuse(struct tunnel *tunnel, enum np_reason reason, const struct verdict *verdict, const char *words)
{
	tunnel_end(tunnel,
		   &(struct client_refusal){ reason, .text = words, .verdict = verdict, .proxy = tunnel->proxy });
}

void tunnel_set_route(struct tunnel *tunnel, const struct route *route)
{
	tunnel->routed = route != NULL;
	if (route)
		route_set(&tunnel->route, route);
}

static void tunnel_set_named(struct tunnel *tunnel, const struct credential *credential)
{
	snprintf(tunnel->named, sizeof(tunnel->named), "%s", credential ? credential->name : "");
}

struct credential_facts tunnel_facts(const struct tunnel *tunnel)
{
	const struct client *client = tunnel->client;

	return (struct credential_facts){
		.host = &client->host,
		.port = client->port,
		.method = tunnel->head.method,
		.path = tunnel->head.target,
		.session = client->sandbox->session->name,
		.rung = client->sandbox->rung,
		.named = credential_find(client->worker->policy, tunnel->named),
	};
}

void tunnel_switch(struct exchange *ex, bool deflate)
{
	struct client *client = ex->client;
	struct carried *carried = ex->carried ? malloc(sizeof(*carried)) : NULL;
	struct tunnel *tunnel = ex->carried && !carried ? NULL : tunnel_new(client);
	const struct buf none = BUF_INIT(0); /* what followed the head is in the channel */
	struct channel *near, *far;

	if (tunnel && tunnel_messages_begin(tunnel, ex, deflate) < 0) {
		tunnel->reported = true; /* the exchange has the report */
		client_set_tunnel(client, NULL);
		tunnel_free(tunnel);
		tunnel = NULL;
	}
	if (!tunnel) {
		free(carried);
		exchange_upstream_failed(ex, NP_R_ORIGIN_UNREACHABLE, "out of memory");
		return;
	}
	tunnel_set_route(tunnel, upstream_route(ex));
	if (carried)
		*carried = *ex->carried;
	tunnel->carried = carried;
	tunnel_set_named(tunnel, ex->credential);
	tunnel->proxy = ex->proxy;
	tunnel->report = ex->report;
	tunnel->sent = ex->report.sent;
	tunnel->received = ex->report.received;
	head_move(&tunnel->head, &ex->head); /* for when the policy changes */
	far = upstream_take(ex);
	near = client_take(ex);
	ask_move(&tunnel->ask, &ex->ask, &client->host, &tunnel->head);
	exchange_free(ex);
	tunnel_relay(tunnel, near, far, &none, &websocket_events);
}

/* Is what it carries still for it, by the rule that allows it now? And a tunnel that was not searched ends once
 * there are credentials to search for. */
static bool tunnel_keeps_credentials(struct tunnel *tunnel, const struct verdict *verdict)
{
	const struct client *client = tunnel->client;
	struct credential_facts facts;

	if (!tunnel->carried)
		return !tunnel->head.method || !client->worker->policy->n_credentials;
	tunnel_set_named(tunnel, verdict->rule ? verdict->rule->credential : NULL);
	facts = tunnel_facts(tunnel);
	return !carried_lost(tunnel->carried, client, &facts);
}

void tunnel_rejudge(struct client *client, enum np_reason by)
{
	struct tunnel *tunnel = client->tunnel;
	const struct head *head = tunnel->head.method ? &tunnel->head : NULL;
	const struct route *route = tunnel->routed ? &tunnel->route : NULL;
	const bool began = tunnel->dial || tunnel->relay || tunnel->splice;
	const char *proxy = tunnel->dial ? origin_dial_proxy(tunnel->dial) : tunnel->proxy;
	struct verdict verdict = judge_request(client, &client->host, client->port, route, head, &tunnel->ask);

	/* Without a request it passed unseen, so that must still be granted. */
	if (verdict.action == ACTION_ALLOW && (head || !verdict.inspect) &&
	    tunnel_keeps_credentials(tunnel, &verdict) &&
	    (!began || judge_same_way(client->worker, &client->host, client->port, proxy))) {
		if (hold_is_on(&tunnel->hold)) /* what is said now is what it goes by */
			report_verdict(&tunnel->report, client->worker, client->sandbox, &verdict);
		return;
	}
	if (judge_asks(&verdict) && tunnel->ask.state == ASK_OPEN && !verdict.inspect)
		return; /* somebody is asked: if somebody else now, the daemon says so */
	reporter_count_cut(&client->worker->reporter);
	report_end(&tunnel->report, client->worker, client->sandbox, by, verdict.looks ? verdict.looks : verdict.rule);
	client_end_by(client, by);
}
