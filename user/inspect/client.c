/* SPDX-License-Identifier: MIT */
/* A connection of a sandbox: its life, its bytes and its verdicts. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/table.h"
#include "vocab/words.h"
#include "http/h2.h"
#include "inspect/client.h"
#include "inspect/exchange.h"
#include "inspect/tunnel.h"
#include "net/channel.h"
#include "vocab/limits.h"

/* -- life --------------------------------------------------------------------------- */

static void client_free(struct client *client)
{
	LIST_REMOVE(client, of_sandbox);
	memory_count_client(client);
	if (--client->sandbox->n_clients == 0)
		LIST_REMOVE(client->sandbox, of_talking);
	client->worker->n_clients--;
	if (client->state == CLIENT_DNS)
		dns_server_forget(client->worker->dns, NULL, client);
	leg_free(&client->leg);
	buf_free(&client->first);
	channel_free(client->leg.channel);
	free(client);
}

struct exchange *client_at_hand(const struct client *client)
{
	return client->leg.turn ? container_of(client->leg.turn, struct exchange, at_client.turn) : NULL;
}

void client_close(struct client *client)
{
	struct exchange *ex = client_at_hand(client);

	if (leg_is_dead(&client->leg))
		return;
	leg_advance(&client->leg, LEG_DEAD);
	tunnel_free(client->tunnel);
	client->tunnel = NULL;
	if (ex)
		exchange_client_gone(ex);
	/* A codec is at work further up in the call chain: its caller frees the client. */
	if (!client->leg.busy)
		client_free(client);
}

void client_reset(struct client *client)
{
	if (client->leg.channel)
		reset_on_close(channel_fd(client->leg.channel));
	client_close(client);
}

void client_end_by(struct client *client, enum np_reason by)
{
	client->ended = by;
	client_reset(client);
}

enum np_reason client_ended_by(const struct client *client)
{
	if (client->ended)
		return client->ended;
	return client->sandbox->ending ? NP_R_ENDED_BY_REMOVAL : 0;
}

bool client_is_unheard(const struct client *client)
{
	struct pollfd unread = { .events = POLLIN };

	if (client->state != CLIENT_HANDSHAKE || !client->leg.channel)
		return false;
	unread.fd = channel_fd(client->leg.channel);
	return poll(&unread, 1, 0) > 0;
}

/* After everything that may call back into the client; it may be gone then. */
static void client_leave(struct client *client)
{
	client->leg.busy = false;
	if (leg_is_dead(&client->leg))
		client_free(client);
}

void client_wait(struct client *client, uint64_t ms)
{
	client->deadline_ns = ms ? loop_now_ns() + ms * 1000000 : 0;
	client->unsent = 0;
}

/* Something of it waits for an answer, before anything has gone to an origin: what nobody is there for any more is not done. */
static bool client_waits(const struct client *client)
{
	const struct exchange *ex = client_at_hand(client);

	return client->tunnel ? tunnel_hold_number(client->tunnel) : ex && hold_is_on(&ex->hold);
}

/* May it be read on, as far as something of it waits? A little of the body may be wanted meanwhile. */
static bool client_may_read(const struct client *client)
{
	const struct exchange *ex = client_at_hand(client);

	return !client_waits(client) || (!client->tunnel && client->leg.unread < ex->hold.terms.body);
}

/* Some of what it was told, or its tunnel told the origin, is still on its way, and a part of that was taken since this
 * was asked last. */
static bool client_takes(struct client *client)
{
	size_t unsent = client->leg.channel ? channel_unsent(client->leg.channel) : 0, last = client->unsent;

	if (client->leg.h2)
		unsent += h2_unsent(client->leg.h2);
	if (client->tunnel)
		unsent += tunnel_unsent(client->tunnel);
	client_wait(client, NP_IDLE_MS);
	client->unsent = unsent;
	return unsent > 0 && unsent != last;
}

bool client_is_open(const struct client *client)
{
	return !LIST_EMPTY(&client->exchanges) || (client->leg.channel && channel_backlog(client->leg.channel)) ||
	       (client->leg.h2 && h2_unsent(client->leg.h2));
}

void client_tick(struct client *client, uint64_t now_ns)
{
	struct exchange *ex, *next;

	for (ex = LIST_FIRST(&client->exchanges); ex; ex = next) {
		next = LIST_NEXT(ex, at_client.of_client);
		exchange_tick(ex, now_ns);
	}
	if (client->tunnel)
		tunnel_count(client->tunnel);
	if (client_waits(client) && channel_is_hung_up(client->leg.channel)) {
		client_close(client); /* it is paused, so that nobody else hears of it */
		return;
	}
	if (client->deadline_ns && now_ns > client->deadline_ns && !client_takes(client))
		client_close(client);
	else if (client->tunnel)
		tunnel_tick(client);
}

void host_port_text(const struct host *host, uint16_t port, char text[static HOST_PORT_SIZE])
{
	char addr[ADDR_TEXT_SIZE] = "";

	if (host->is_addr)
		addr_format(&host->addr, addr);
	snprintf(text, HOST_PORT_SIZE, strchr(addr, ':') ? "[%s]:%u" : "%s:%u", host->is_addr ? addr : host->name,
		 port);
}

void client_report_refusal(struct client *client, const struct client_refusal *refusal)
{
	struct link_request report = {
		.reason = refusal->reason,
		.status = refusal->status,
		.port = client->port,
		.pid = client->flow.pid,
	};
	const struct host *host = &client->host, flow = { .is_addr = true, .addr = client->flow.addr };
	const struct np_addr *addr = refusal->addr	  ? refusal->addr
				     : host->is_addr	  ? &host->addr
				     : client->by_connect ? NULL /* the flow's is the proxy's */
							  : &client->flow.addr;
	char where[HOST_PORT_SIZE];

	report_decide(&report, client->worker, client->sandbox);
	if (refusal->verdict)
		report_rule(&report, client->worker, refusal->verdict->rule, refusal->verdict->pattern);
	if (addr)
		addr_format(addr, report.address);
	snprintf(report.text, sizeof(report.text), "%s", refusal->text ? refusal->text : "");
	host_port_text(client->named || host->is_addr ? host : &flow, client->port, where);
	report_send(client->worker, &report, &(struct report_texts){ .url = { where }, .proxy = refusal->proxy });
}

void client_report(struct client *client, enum np_reason reason, unsigned status, const char *text)
{
	client_report_refusal(client, &(struct client_refusal){ .reason = reason, .status = status, .text = text });
}

/* -- writing ------------------------------------------------------------------------ */

void client_send(struct client *client, const void *data, size_t len)
{
	leg_dirty(&client->leg);
	buf_append(&client->leg.out, data, len);
}

bool client_is_deaf(const struct client *client)
{
	return channel_backlog(client->leg.channel) + client->leg.out.len > NP_BACKLOG_HIGH;
}

void client_hold(struct client *client)
{
	client->leg.paused = true; /* client_flush() goes on */
}

static int client_write(struct client *client)
{
	int r = leg_push(&client->leg);

	memory_count_client(client);
	if (client->leg.h2 && h2_is_done(client->leg.h2))
		leg_advance(&client->leg, LEG_CLOSING);
	return r;
}

void client_flush(struct leg *leg)
{
	struct client *client = container_of(leg, struct client, leg);
	struct exchange *ex;

	if (leg->life == LEG_BROKEN || client_write(client) < 0) {
		client_reset(client);
		return;
	}
	if (leg->life >= LEG_CLOSING) {
		if (!leg->h2 || !h2_wants_write(leg->h2))
			channel_finish(leg->channel);
		if (leg->life < LEG_FINISHED)
			client_wait(client, 5000);
		leg_advance(leg, LEG_FINISHED);
		return;
	}
	/* A channel that took it all at once has nothing to tell of later. */
	ex = client_at_hand(client);
	if (ex && channel_backlog(leg->channel) <= memory_mark(client))
		exchange_drained(ex, WAY_RESPONSE);
	if (client->state == CLIENT_H1 && client->request_read && client->answered)
		client_next(client);
	else if (client->leg.paused && client->leg.unread < NP_BACKLOG_LOW && client_may_read(client) &&
		 (client->state != CLIENT_DNS || channel_backlog(client->leg.channel) <= NP_BACKLOG_LOW)) {
		client->leg.paused = false;
		channel_resume(client->leg.channel);
	}
}

/* -- the verdict, once more --------------------------------------------------------- */

static struct exchange *client_unjudged(const struct client *client)
{
	struct exchange *ex;

	LIST_FOREACH(ex, &client->exchanges, at_client.of_client)
		if (!ex->at_client.rejudged)
			return ex;
	return NULL;
}

void client_rejudge(struct client *client, enum np_reason by)
{
	struct exchange *ex;

	if (client->tunnel) {
		tunnel_rejudge(client, by);
		return;
	}
	client->leg.busy = true;
	LIST_FOREACH(ex, &client->exchanges, at_client.of_client)
		ex->at_client.rejudged = false;
	/* From the start for each: one that is cut may end others, with the connection to the origin that they share. */
	while (!leg_is_dead(&client->leg) && (ex = client_unjudged(client))) {
		ex->at_client.rejudged = true;
		stages_rejudge(ex, by);
	}
	client_leave(client);
}

/* -- into a tunnel ------------------------------------------------------------------ */

void client_set_tunnel(struct client *client, struct tunnel *tunnel)
{
	client->tunnel = tunnel;
}

static void client_is_released(struct client *client)
{
	client->state = CLIENT_TUNNEL;
	client->deadline_ns = 0;
}

struct channel *client_release(struct client *client)
{
	struct channel *channel = leg_take(&client->leg);

	client_is_released(client);
	return channel;
}

int client_release_fd(struct client *client)
{
	int fd = leg_take_fd(&client->leg);

	if (fd >= 0)
		client_is_released(client);
	return fd;
}

struct buf client_take_first(struct client *client)
{
	struct buf first = client->first;

	client->first = BUF_INIT(NP_HELLO_BYTES);
	return first;
}

/* -- events ------------------------------------------------------------------------- */

static size_t on_data(void *ctx, const char *data, size_t len)
{
	struct client *client = ctx;
	struct worker *worker = client->worker;
	size_t used = len;

	client->leg.busy = true;
	if (client->state == CLIENT_DNS)
		used = query_feed(client, data, len);
	else if (client->state != CLIENT_SNIFF || client_sniff(client, data, len))
		used = client_feed(client, data, len);
	client_leave(client);
	worker_flush(worker);
	return used;
}

static void on_ready(void *ctx)
{
	struct client *client = ctx;
	struct worker *worker = client->worker;

	if (client_speak(client) < 0)
		client_close(client);
	worker_flush(worker);
}

static void on_eof(void *ctx)
{
	struct client *client = ctx;
	struct worker *worker = client->worker;

	/* Half a connection is no use to HTTP: a client that has shut its side down gets no more, unless an answer
	 * is on its way. */
	if (client->state == CLIENT_H1 && client_at_hand(client) && client->request_read && !client_waits(client)) {
		leg_advance(&client->leg, LEG_LAST);
	} else if (client->state == CLIENT_H1 && !client_at_hand(client) && channel_backlog(client->leg.channel)) {
		leg_advance(&client->leg, LEG_CLOSING);
		leg_dirty(&client->leg);
	} else {
		client_close(client);
	}
	worker_flush(worker);
}

static void on_drained(void *ctx)
{
	struct client *client = ctx;
	struct worker *worker = client->worker;
	struct exchange *ex = client_at_hand(client);

	if (ex)
		exchange_drained(ex, WAY_RESPONSE);
	leg_dirty(&client->leg);
	worker_flush(worker);
}

static void on_broken(void *ctx, int error)
{
	struct client *client = ctx;
	struct worker *worker = client->worker;

	if (client->state == CLIENT_HANDSHAKE && channel_is_distrusted(client->leg.channel))
		client_report(client, NP_R_CA_UNTRUSTED, 0, channel_problem(client->leg.channel));
	else if (client->state == CLIENT_HANDSHAKE && error == -EPROTO)
		client_report(client, NP_R_CLIENT_TLS, 0, channel_problem(client->leg.channel));
	client_close(client);
	worker_flush(worker);
}

const struct channel_events client_events = {
	.ready = on_ready, .data = on_data, .eof = on_eof, .drained = on_drained, .broken = on_broken
};
