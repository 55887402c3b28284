/* SPDX-License-Identifier: MIT */
/* A connection of a sandbox: its life, its bytes and its verdicts. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "vocab/words.h"
#include "http/h1.h"
#include "http/h2.h"
#include "inspect/client.h"
#include "inspect/exchange.h"
#include "inspect/tunnel.h"
#include "vocab/limits.h"

/* -- life --------------------------------------------------------------------------- */

static void client_free(struct client *client)
{
	LIST_REMOVE(client, of_sandbox);
	if (client->dirty)
		LIST_REMOVE(client, of_dirty);
	memory_count_client(client);
	client->sandbox->n_clients--;
	client->worker->n_clients--;
	if (client->state == CLIENT_DNS)
		queries_forget(client->worker, NULL, client);
	h1_free(client->h1);
	h2_free(client->h2);
	buf_free(&client->first);
	buf_free(&client->out);
	channel_free(client->channel);
	free(client);
}

void client_close(struct client *client)
{
	if (client->dead)
		return;
	client->dead = true;
	tunnel_free(client->tunnel);
	client->tunnel = NULL;
	if (client->exchange)
		exchange_client_gone(client->exchange);
	/* A codec is at work further up: who called it frees the client. */
	if (!client->busy)
		client_free(client);
}

void client_reset(struct client *client)
{
	if (client->channel)
		reset_on_close(channel_fd(client->channel));
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

/* After everything that may call back into the client; it may be gone then. */
static void client_leave(struct client *client)
{
	client->busy = false;
	if (client->dead)
		client_free(client);
}

void client_wait(struct client *client, uint64_t ms)
{
	client->deadline_ns = ms ? loop_now_ns() + ms * 1000000 : 0;
	client->unsent = 0;
}

/* Some of what it was told, or its tunnel told the origin, is still on its way, and a part of that was taken since this
 * was asked last. */
static bool client_takes(struct client *client)
{
	size_t unsent = client->channel ? channel_unsent(client->channel) : 0, last = client->unsent;

	if (client->h2)
		unsent += h2_unsent(client->h2);
	if (client->tunnel)
		unsent += tunnel_unsent(client->tunnel);
	client_wait(client, NP_IDLE_MS);
	client->unsent = unsent;
	return unsent > 0 && unsent != last;
}

bool client_is_open(const struct client *client)
{
	return !LIST_EMPTY(&client->exchanges) || (client->channel && channel_backlog(client->channel)) ||
	       (client->h2 && h2_unsent(client->h2));
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
	};
	const struct host *host = &client->host, flow = { .is_addr = true, .addr = client->flow.addr };
	const struct np_addr *addr = refusal->addr	  ? refusal->addr
				     : host->is_addr	  ? &host->addr
				     : client->by_connect ? NULL /* the flow's is the proxy's */
							  : &client->flow.addr;
	char where[HOST_PORT_SIZE];

	report_decide(&report, client->worker, client->sandbox);
	if (refusal->verdict)
		report_rule(&report, client->worker, refusal->verdict->rule);
	if (addr)
		addr_format(addr, report.address);
	snprintf(report.text, sizeof(report.text), "%s", refusal->text ? refusal->text : "");
	host_port_text(client->named || host->is_addr ? host : &flow, client->port, where);
	report_send(client->worker, &report, &(struct report_texts){ .url = { where } });
}

void client_report(struct client *client, enum np_reason reason, unsigned status, const char *text)
{
	client_report_refusal(client, &(struct client_refusal){ .reason = reason, .status = status, .text = text });
}

/* -- writing ------------------------------------------------------------------------ */

void client_dirty(struct client *client)
{
	if (client->dirty || client->dead)
		return;
	client->dirty = true;
	worker_lend(client->worker, &client->out);
	LIST_INSERT_HEAD(&client->worker->dirty_clients, client, of_dirty);
}

void client_send(struct client *client, const void *data, size_t len)
{
	client_dirty(client);
	buf_append(&client->out, data, len);
}

bool client_is_deaf(const struct client *client)
{
	return channel_backlog(client->channel) + client->out.len > NP_BACKLOG_HIGH;
}

void client_hold(struct client *client)
{
	client->paused = true; /* client_flush() goes on */
}

static int client_write(struct client *client)
{
	int r = worker_push(client->worker, client->h2, client->channel, &client->out);

	memory_count_client(client);
	if (client->h2)
		client->closing |= h2_is_done(client->h2);
	return r;
}

void client_flush(struct client *client)
{
	client->dirty = false;
	LIST_REMOVE(client, of_dirty);
	if (client->dead || !client->channel)
		return;
	if (client->broken || client_write(client) < 0) {
		client_reset(client);
		return;
	}
	if (client->closing) {
		if (!client->h2 || !h2_wants_write(client->h2))
			channel_finish(client->channel);
		if (!client->finishing)
			client_wait(client, 5000);
		client->finishing = true;
		return;
	}
	/* A channel that took it all at once has nothing to tell of later. */
	if (client->exchange && channel_backlog(client->channel) <= memory_mark(client))
		exchange_client_drained(client->exchange);
	if (client->state == CLIENT_H1 && client->request_read && client->answered)
		client_next(client);
	else if (client->paused && client->unread < NP_BACKLOG_LOW &&
		 (client->state != CLIENT_DNS || channel_backlog(client->channel) <= NP_BACKLOG_LOW)) {
		client->paused = false;
		channel_resume(client->channel);
	}
}

/* -- the verdict, once more --------------------------------------------------------- */

void client_rejudge(struct client *client, enum np_reason by)
{
	struct exchange *ex, *next;

	if (client->tunnel) {
		tunnel_rejudge(client, by);
		return;
	}
	client->busy = true;
	for (ex = LIST_FIRST(&client->exchanges); ex && !client->dead; ex = next) {
		next = LIST_NEXT(ex, at_client.of_client);
		exchange_rejudge(ex, by);
	}
	client_leave(client);
}

/* -- into a tunnel ------------------------------------------------------------------ */

void client_set_tunnel(struct client *client, struct tunnel *tunnel)
{
	client->tunnel = tunnel;
}

struct channel *client_release(struct client *client)
{
	struct channel *channel = client->channel;

	client->channel = NULL;
	client->state = CLIENT_TUNNEL;
	client->deadline_ns = 0;
	return channel;
}

int client_release_fd(struct client *client)
{
	int fd = channel_detach(client->channel);

	if (fd >= 0)
		client_release(client); /* the channel is no more */
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

	client->busy = true;
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

	/* Half a connection is no use to HTTP: who says no more gets no more, unless an answer is on its way. */
	if (client->state == CLIENT_H1 && client->exchange && client->request_read) {
		client->closing_after = true;
	} else if (client->state == CLIENT_H1 && !client->exchange && channel_backlog(client->channel)) {
		client->closing = true;
		client_dirty(client);
	} else {
		client_close(client);
	}
	worker_flush(worker);
}

static void on_drained(void *ctx)
{
	struct client *client = ctx;
	struct worker *worker = client->worker;

	if (client->exchange)
		exchange_client_drained(client->exchange);
	client_dirty(client);
	worker_flush(worker);
}

static void on_broken(void *ctx, int error)
{
	struct client *client = ctx;
	struct worker *worker = client->worker;

	if (client->state == CLIENT_HANDSHAKE && channel_is_distrusted(client->channel))
		client_report(client, NP_R_CA_UNTRUSTED, 0, channel_problem(client->channel));
	else if (client->state == CLIENT_HANDSHAKE && error == -EPROTO)
		client_report(client, NP_R_CLIENT_TLS, 0, channel_problem(client->channel));
	client_close(client);
	worker_flush(worker);
}

const struct channel_events client_events = {
	.ready = on_ready, .data = on_data, .eof = on_eof, .drained = on_drained, .broken = on_broken
};
