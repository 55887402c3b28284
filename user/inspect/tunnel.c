/* SPDX-License-Identifier: MIT */
/* Bytes that pass unseen where a rule says so, and websockets, whose frames are checked as they pass. */
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/table.h"
#include "vocab/words.h"
#include "net/splice.h"
#include "inspect/carried.h"
#include "inspect/exchange.h"
#include "inspect/judge.h"
#include "inspect/origin_dial.h"
#include "inspect/tunnel.h"
#include "net/channel.h"
#include "net/relay.h"
#include "http/websocket.h"
#include "vocab/limits.h"

struct tunnel {
	struct client *client;
	unsigned stage;		    /* of stages[] that is next */
	struct hold hold;	    /* it waits for an answer, */
	struct ask ask;		    /* of a person, */
	struct origin_dial *dial;   /* is on the way, */
	struct relay *relay;	    /* goes through our hands, or */
	struct splice *splice;	    /* the kernel's */
	uint64_t first;		    /* bytes that went before it */
	uint64_t sent, received;    /* bytes that were counted */
	bool message;		    /* its end, whatever that was, is one event */
	struct route route;	    /* where it leads, */
	bool routed;		    /* if that is known here */
	const char *proxy;	    /* the upstream proxy that it goes by: its URL, or NULL */
	bool looks;		    /* it could lead to an address only if its requests are seen */
	struct head head;	    /* of the request that it grew out of; without a method: none did */
	struct carried *carried;    /* credentials that this request carried; NULL: none */
	struct websocket frames[2]; /* of a websocket: the origin's, the client's */
	struct link_request report;
};

static struct tunnel *tunnel_new(struct client *client)
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
	ledger_add(&counts->bytes_out, report->sent - tunnel->sent);
	ledger_add(&counts->bytes_in, report->received - tunnel->received);
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

	tunnel->message = true;
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

/* Also of one that is cut, or that nobody waited for: its name was asked for, and bytes may have gone. */
void tunnel_free(struct tunnel *tunnel)
{
	if (!tunnel)
		return;
	if (!tunnel->message)
		tunnel_report(tunnel);
	hold_end(&tunnel->hold);
	origin_dial_cancel(tunnel->dial);
	relay_free(tunnel->relay);
	splice_free(tunnel->splice);
	head_free(&tunnel->head);
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
	return tunnel->relay ? relay_held(tunnel->relay) : 0;
}

static void on_over(void *ctx, uint64_t sent, uint64_t received)
{
	struct tunnel *tunnel = ctx;

	tunnel->relay = NULL;
	tunnel->report.sent = sent;
	tunnel->report.received = received;
	client_close(tunnel->client);
}

static const struct relay_events unseen_events = { .closed = on_over };

static int on_frames(void *ctx, bool from_client, const char *data, size_t len)
{
	struct tunnel *tunnel = ctx;
	struct websocket *frames = &tunnel->frames[from_client];
	int r = websocket_read(frames, data, len);

	if (r < 0) {
		tunnel->report.reason = NP_R_WEBSOCKET_BROKEN;
		snprintf(tunnel->report.text, sizeof(tunnel->report.text), "%s", websocket_problem(frames));
	}
	return r;
}

static const struct relay_events websocket_events = { .look = on_frames, .closed = on_over };

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

/* Both ends may have said all while bytes still wait for the origin. The client's place is kept for them, so that a
 * raise or a new policy finds them; for as long as the origin takes some of them now and then. */
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
static void tunnel_relay(struct tunnel *tunnel, struct channel *near, struct channel *far, const struct buf *first,
			 const struct relay_events *events)
{
	if (relay_start(near, far, first, events, tunnel, &tunnel->relay) < 0)
		client_close(tunnel->client);
}

/* The kernel moves the bytes, if nothing of them is in our hands. What went of first is dropped from it. */
static bool tunnel_splice(struct tunnel *tunnel, int far, struct buf *first)
{
	struct client *client = tunnel->client;
	size_t first_len = first->len;
	ssize_t n = first->len ? send(far, first->data, first->len, MSG_DONTWAIT | MSG_NOSIGNAL) : 0;
	int near;

	if (n > 0)
		buf_drop(first, (size_t)n);
	near = first->len ? -1 : client_release_fd(client);
	if (near < 0)
		return false;
	tunnel->first = first_len;
	if (splice_start(client->worker->loop, &client->sandbox->session->lane, near, far, on_over, tunnel,
			 &tunnel->splice) < 0)
		client_close(client);
	return true;
}

static bool may_pass(void *ctx, const struct route *route)
{
	struct tunnel *tunnel = ctx;
	const struct client *client = tunnel->client;

	if (!route_may(client, &client->host, client->port, route, NULL, &tunnel->ask))
		return false;
	/* Once it is known where the name leads, a deny may have to see what the name alone let pass. */
	if (!judge_connection(client, &client->host, client->port, route).inspect)
		return true;
	tunnel->looks = true;
	return false;
}

/* A tunnel may be silent for as long as it likes, but not when one of its ends is no more. */
static void keep_alive(int fd)
{
	setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &(int){ 1 }, sizeof(int));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &(int){ NP_IDLE_MS / 1000 }, sizeof(int));
}

/* It is no tunnel's end, but a refusal. */
static void tunnel_withdraw(struct tunnel *tunnel)
{
	tunnel->message = true;
	report_withdraw(&tunnel->report, tunnel->client->sandbox);
}

static void tunnel_end(struct tunnel *tunnel, const struct client_refusal *refusal)
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

/* The name leads to where the client may not go: the rule that says so is named. */
static void tunnel_route_refused(struct tunnel *tunnel, const struct route *route, const char *words)
{
	const struct client *client = tunnel->client;
	struct verdict verdict = route_refusal(client, &client->host, client->port, route, NULL, &tunnel->ask);

	tunnel_end(tunnel, &(struct client_refusal){ .reason = NP_R_ADDRESS_REFUSED,
						     .text = words,
						     .verdict = &verdict,
						     .addr = route ? &route->addr : NULL });
}

static void tunnel_set_route(struct tunnel *tunnel, const struct route *route)
{
	tunnel->routed = route != NULL;
	if (route)
		route_set(&tunnel->route, route);
}

static void on_dialled(void *ctx, const struct origin_dial_result *result)
{
	struct tunnel *tunnel = ctx;
	struct client *client = tunnel->client;
	static const struct channel_events no_events;
	_buf_ struct buf first = BUF_INIT(0);
	struct verdict verdict;
	struct channel *far;

	tunnel->dial = NULL;
	tunnel->proxy = result->proxy;
	tunnel->report.dns_us = (uint32_t)result->dns_us;
	tunnel->report.connect_us = (uint32_t)result->connect_us;
	/* What may be dialled may have changed since it was. */
	if (!result->error && !may_pass(tunnel, result->route)) {
		close(result->fd);
		tunnel_route_refused(tunnel, result->route, "the address may not be reached");
		return;
	}
	if (!result->error) {
		tunnel_set_route(tunnel, result->route);
		if (tunnel->routed)
			addr_format(&tunnel->route.addr, tunnel->report.address);
		keep_alive(result->fd);
		keep_alive(channel_fd(client->leg.channel));
		first = client_take_first(client);
		if (tunnel_splice(tunnel, result->fd, &first))
			return;
	}
	if (result->error && result->refused && tunnel->looks) {
		tunnel_withdraw(tunnel); /* its requests are reported */
		tunnel_free(tunnel);
		client_set_tunnel(client, NULL);
		client_look(client);
		return;
	}
	if (result->error && result->refused) {
		tunnel_route_refused(tunnel, result->route, result->words);
		return;
	}
	if (result->error || channel_new(client->worker->loop, &client->sandbox->session->lane, result->fd, &no_events,
					 NULL, &far) < 0) {
		verdict = judge_request(client, &client->host, client->port, NULL, NULL, &tunnel->ask);
		tunnel_refuse(tunnel, result->reason ?: NP_R_ORIGIN_UNREACHABLE, &verdict, result->words);
		return;
	}
	tunnel_relay(tunnel, client_release(client), far, &first, &unseen_events);
}

/* Through the stages that are left, and on to the dial. */
static void tunnel_go_on(struct tunnel *tunnel)
{
	struct client *client = tunnel->client;
	const struct origin_dial_terms terms = {
		.host = &client->host, .port = client->port, .may = may_pass, .done = on_dialled, .ctx = tunnel
	};

	if (stages_connect(tunnel, &tunnel->stage) != STAGE_NEXT)
		return;
	client_wait(client, NP_CONNECT_MS + NP_RESOLVE_MS + NP_PROXY_MS);
	if (origin_dial_start(client->worker, &terms, &tunnel->dial) < 0) {
		tunnel_withdraw(tunnel); /* there is nothing to tell */
		client_reset(client);
	}
}

static void on_resume(struct hold *hold)
{
	struct tunnel *tunnel = container_of(hold, struct tunnel, hold);
	const struct client *client = tunnel->client;
	struct verdict verdict =
		judge_request(client, &client->host, client->port, NULL, NULL, &tunnel->ask); /* what holds now */

	report_verdict(&tunnel->report, client->worker, client->sandbox, &verdict);
	if (verdict.action == ACTION_ALLOW && !verdict.inspect)
		tunnel_go_on(tunnel);
	else
		tunnel_refuse(tunnel, verdict.reason, &verdict, NULL);
}

static void on_refuse(struct hold *hold, enum np_reason reason, const char *words)
{
	struct tunnel *tunnel = container_of(hold, struct tunnel, hold);
	const struct client *client = tunnel->client;
	struct verdict verdict = judge_connection(client, &client->host, client->port, NULL); /* to name the rule */

	tunnel_refuse(tunnel, reason, &verdict, words);
}

static const struct hold_events hold_events = { .resume = on_resume, .refuse = on_refuse };

enum stage_result tunnel_hold(struct tunnel *tunnel, const struct hold_terms *terms)
{
	struct client *client = tunnel->client;

	if (hold_begin(&tunnel->hold, client->worker, client->sandbox, terms, &hold_events) < 0) {
		tunnel_refuse(tunnel, NP_R_TOO_MANY_REQUESTS, NULL, "too many of them wait for an answer");
		return STAGE_OVER;
	}
	client_wait(client, 0);
	return STAGE_HELD;
}

void tunnel_start(struct client *client, const struct verdict *verdict)
{
	struct worker *worker = client->worker;
	struct tunnel *tunnel;

	if (client->tunnel)
		return;
	tunnel = tunnel_new(client);
	if (!tunnel) {
		client_reset(client);
		return;
	}
	report_begin(&tunnel->report, worker, client->sandbox);
	tunnel->report.pid = client->flow.pid;
	report_verdict(&tunnel->report, worker, client->sandbox, verdict);
	tunnel->report.port = client->port;
	if (client->host.is_addr) /* of a name when it is known */
		addr_format(&client->host.addr, tunnel->report.address);
	if (judge_asks(verdict))
		ask_want(&tunnel->ask, client, &client->host, client->port, NULL, NULL, NULL, false);
	channel_pause(client->leg.channel);
	tunnel_go_on(tunnel);
}

void tunnel_switch(struct exchange *ex, bool deflate)
{
	struct client *client = ex->client;
	struct carried *carried = ex->carried && ex->carried->n ? malloc(sizeof(*carried)) : NULL;
	struct tunnel *tunnel = ex->carried && ex->carried->n && !carried ? NULL : tunnel_new(client);
	const struct buf none = BUF_INIT(0); /* what followed the head is in the channel */
	struct channel *near, *far;

	if (!tunnel) {
		free(carried);
		exchange_upstream_failed(ex, NP_R_ORIGIN_UNREACHABLE, "out of memory");
		return;
	}
	tunnel_set_route(tunnel, upstream_route(ex));
	if (carried)
		*carried = *ex->carried;
	tunnel->carried = carried;
	tunnel->proxy = ex->proxy;
	tunnel->report = ex->report;
	tunnel->sent = ex->report.sent;
	tunnel->received = ex->report.received;
	for (unsigned i = 0; i < 2; i++)
		websocket_init(&tunnel->frames[i], i == 1, deflate, NULL, NULL);
	head_move(&tunnel->head, &ex->head); /* for when the policy changes */
	far = upstream_take(ex);
	near = client_take(ex);
	ask_move(&tunnel->ask, &ex->ask, &client->host, &tunnel->head);
	exchange_free(ex);
	tunnel_relay(tunnel, near, far, &none, &websocket_events);
}

/* What its request carried is for it still, by the rule that allows it now. */
static bool tunnel_keeps_credentials(const struct tunnel *tunnel, const struct verdict *verdict)
{
	const struct client *client = tunnel->client;
	const struct credential_facts facts = {
		.host = &client->host,
		.port = client->port,
		.method = tunnel->head.method,
		.path = tunnel->head.target,
		.session = client->sandbox->session->name,
		.rung = client->sandbox->rung,
		.named = verdict->rule ? verdict->rule->credential : NULL,
	};

	return !tunnel->carried || !carried_lost(tunnel->carried, client, &facts);
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
	if (judge_asks(&verdict) && tunnel->ask.open && !verdict.inspect)
		return; /* somebody is asked: if somebody else now, the daemon says so */
	reporter_count_cut(&client->worker->reporter);
	report_end(&tunnel->report, client->worker, client->sandbox, by, verdict.looks ? verdict.looks : verdict.rule);
	client_end_by(client, by);
}
