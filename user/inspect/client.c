/* SPDX-License-Identifier: MIT */
/* A connection of a sandbox: whose it is, whom it is meant for, and whether we may look inside. */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/words.h"
#include "inspect/worker.h"
#include "wire/hello.h"

/* -- life --------------------------------------------------------------------------- */

static void client_free(struct client *client)
{
	LIST_REMOVE(client, of_box);
	if (client->dirty)
		LIST_REMOVE(client, of_dirty);
	client->box->n_clients--;
	client->worker->n_clients--;
	h1_free(client->h1);
	h2_free(client->h2);
	buf_free(&client->first);
	buf_free(&client->out);
	channel_free(client->channel);
	if (client->relay_head)
		head_free(client->relay_head);
	free(client->relay_head);
	free(client);
}

void client_close(struct client *client)
{
	if (client->dead)
		return;
	client->dead = true;
	if (client->dial)
		dial_cancel(client->dial);
	client->dial = NULL;
	relay_free(client->relay);
	client->relay = NULL;
	if (client->exchange)
		exchange_client_gone(client->exchange);
	/* A codec is at work further up: who called it frees the client. */
	if (!client->busy)
		client_free(client);
}

void client_reset(struct client *client)
{
	const struct linger now = { .l_onoff = 1 };

	if (client->channel)
		setsockopt(channel_fd(client->channel), SOL_SOCKET, SO_LINGER, &now, sizeof(now));
	client_close(client);
}

/* After everything that may call back into the client. False: it is gone. */
static bool client_leave(struct client *client)
{
	client->busy = false;
	if (!client->dead)
		return true;
	client_free(client);
	return false;
}

void client_wait(struct client *client, uint64_t ms)
{
	client->deadline_ns = ms ? loop_now_ns() + ms * 1000000 : 0;
}

void client_tick(struct client *client, uint64_t now_ns)
{
	struct exchange *ex, *next;

	for (ex = LIST_FIRST(&client->exchanges); ex; ex = next) {
		next = LIST_NEXT(ex, of_client);
		if (now_ns > ex->active_ns + NP_STALL_MS * 1000000ull)
			exchange_upstream_failed(ex, NP_R_ORIGIN_UNREACHABLE, "nothing moved for too long");
	}
	if (client->deadline_ns && now_ns > client->deadline_ns)
		client_close(client);
}

void client_report(struct client *client, enum np_reason reason, unsigned status, const char *text)
{
	struct link_request report = {
		.cgroup_id = client->box->cgroup_id,
		.reason = reason,
		.status = status,
		.port = client->port,
		.tls = client->tls,
	};
	char addr[ADDR_TEXT_SIZE];

	addr_format(client->host.is_addr ? &client->host.addr : &client->flow.addr, addr);
	snprintf(report.policy, sizeof(report.policy), "%s", client->worker->policy->hash);
	snprintf(report.url, sizeof(report.url), "%s",
		 client->named && !client->host.is_addr ? client->host.name : addr);
	snprintf(report.address, sizeof(report.address), "%s", addr);
	snprintf(report.text, sizeof(report.text), "%s", text ? text : "");
	worker_tell(client->worker, &report);
}

/* -- writing ------------------------------------------------------------------------ */

void client_dirty(struct client *client)
{
	if (client->dirty || client->dead)
		return;
	client->dirty = true;
	LIST_INSERT_HEAD(&client->worker->dirty_clients, client, of_dirty);
}

static int client_write(struct client *client)
{
	int r = h2_push(client->h2, client->channel, &client->out);

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
	if (client->exchange && channel_backlog(client->channel) <= NP_BACKLOG_HIGH)
		exchange_client_drained(client->exchange);
	if (client->state == CLIENT_H1 && client->request_read && client->answered)
		client_next(client);
	else if (client->paused && client->unread < NP_BACKLOG_LOW) {
		client->paused = false;
		channel_resume(client->channel);
	}
}

/* -- the verdict -------------------------------------------------------------------- */

/* The session's, or what the policy in hand means for its level: the stricter. */
static enum np_mode client_mode(const struct client *client)
{
	enum np_mode policy = client->worker->policy->modes.of[client->box->level];

	return policy > client->box->mode ? policy : client->box->mode;
}

/* Servers that let a header name the method would write for a GET. */
static bool reads(const struct facts *facts)
{
	static const char *const safe[] = { "GET", "HEAD", "OPTIONS" };
	static const char *const other[] = { "x-http-method", "x-http-method-override", "x-method-override" };

	for (size_t i = 0; facts->headers && facts->headers[i]; i++)
		for (size_t k = 0; k < ARRAY_SIZE(other); k++)
			if (!strcmp(facts->headers[i], other[k]))
				return false;
	for (size_t i = 0; !facts->websocket && i < ARRAY_SIZE(safe); i++)
		if (!strcmp(facts->method, safe[i]))
			return true;
	return false;
}

/* What is left of an allow for a run that may only read: requests that can be seen to. */
static void verdict_narrow(const struct client *client, const struct facts *facts, struct verdict *verdict)
{
	if (verdict->action != ACTION_ALLOW)
		return;
	verdict->inspect = true;
	if (facts->method ? reads(facts) : policy_inspects(client->worker->policy, facts->port))
		return;
	verdict->action = ACTION_DENY;
	verdict->reason = NP_R_READ_ONLY;
	verdict->rule = NULL;
}

struct verdict client_judge(const struct client *client, const struct host *host, uint16_t port,
			    const struct np_addr *address, const struct head *head)
{
	const char *names[NP_HEAD_FIELDS + 1];
	struct facts facts = {
		.mode = client_mode(client),
		.level = client->box->level,
		.protocol = PATTERN_TCP,
		.port = port,
	};
	struct verdict verdict;

	if (host->is_addr)
		facts.has_addr = true, facts.addr = host->addr;
	else
		facts.name = host->name;
	if (address)
		facts.has_addr = true, facts.addr = *address;
	if (head) {
		for (size_t i = 0; i < head->fields.n; i++)
			names[i] = head->fields.items[i].name;
		names[head->fields.n] = NULL;
		facts.method = head->method;
		facts.path = head->target;
		facts.headers = names;
		facts.body = head->has_length ? head->length : 0;
		facts.websocket = head->upgrade != NULL;
	}
	verdict = policy_decide(client->worker->policy, &facts);
	if (client->box->reads_only)
		verdict_narrow(client, &facts, &verdict);
	return verdict;
}

/* -- unseen ------------------------------------------------------------------------- */

static void tunnel_over(void *ctx, uint64_t sent, uint64_t received)
{
	struct client *client = ctx;

	client->relay = NULL;
	client->report.sent = sent;
	client->report.received = received;
	worker_tell(client->worker, &client->report);
	client_close(client);
}

static bool tunnel_may(void *ctx, const struct np_addr *addr)
{
	const struct client *client = ctx;

	/* With the address known, a rule may want to see what the name alone let pass. */
	return address_may(client, &client->host, client->port, addr, NULL) &&
	       !client_judge(client, &client->host, client->port, addr, NULL).inspect;
}

static const struct channel_events no_events;

static void tunnel_dialled(void *ctx, const struct dial_result *result)
{
	struct client *client = ctx;
	struct worker *worker = client->worker;
	struct channel *near = client->channel, *far;

	client->dial = NULL;
	client->report.dns_us = (uint32_t)result->dns_us;
	client->report.connect_us = (uint32_t)result->connect_us;
	if (result->error || channel_new(worker->loop, result->fd, &no_events, NULL, &far) < 0) {
		client_report(client, result->refused ? NP_R_ADDRESS_REFUSED : NP_R_ORIGIN_UNREACHABLE, 0,
			      result->words);
		client_reset(client);
		return;
	}
	client->relay_addr = result->addr;
	client->channel = NULL;
	client->state = CLIENT_RELAY;
	client->deadline_ns = 0;
	if (relay_start(near, far, &client->first, NULL, tunnel_over, client, &client->relay) < 0)
		client_close(client);
	else if (!client->dead)
		buf_free(&client->first);
}

void client_tunnel(struct client *client, const struct verdict *verdict)
{
	struct link_request *report = &client->report;
	const struct worker *worker = client->worker;

	if (client->dial)
		return;

	*report = (struct link_request){
		.cgroup_id = client->box->cgroup_id, .reason = verdict->reason, .port = client->port, .tls = 1
	};
	snprintf(report->policy, sizeof(report->policy), "%s", worker->policy->hash);
	snprintf(report->method, sizeof(report->method), "CONNECT");
	snprintf(report->url, sizeof(report->url), "%s", client->host.is_addr ? "" : client->host.name);
	if (verdict->rule)
		place_format(worker->policy, &verdict->rule->at, report->place);
	channel_pause(client->channel);
	client_wait(client, NP_CONNECT_MS + NP_RESOLVE_MS);
	if (dial_start(worker->dialer, &client->host, client->port, tunnel_may, tunnel_dialled, client, &client->dial) <
	    0)
		client_reset(client);
}

void client_rejudge(struct client *client)
{
	struct exchange *ex, *next;

	if (client->state == CLIENT_RELAY || client->dial) {
		const struct np_addr *addr = client->state == CLIENT_RELAY ? &client->relay_addr : NULL;
		struct verdict verdict = client_judge(client, &client->host, client->port, addr, client->relay_head);

		/* Without a request it passed unseen, so that must still be granted. */
		if (verdict.action != ACTION_ALLOW || (!client->relay_head && verdict.inspect))
			client_reset(client);
		return;
	}
	client->busy = true;
	for (ex = LIST_FIRST(&client->exchanges); ex && !client->dead; ex = next) {
		next = LIST_NEXT(ex, of_client);
		exchange_rejudge(ex);
	}
	client_leave(client);
}

/* -- who and what ------------------------------------------------------------------- */

static int client_handshake(struct client *client)
{
	SSL *ssl = NULL;
	int r = ca_server(client->box->site->ca, &client->host, &ssl);

	if (r < 0)
		return r;
	client->state = CLIENT_HANDSHAKE;
	client->tls = true;
	client_wait(client, NP_HANDSHAKE_MS);
	r = channel_tls(client->channel, ssl, client->first.data, client->first.len);
	buf_free(&client->first);
	return r;
}

void client_ca_ready(struct client *client)
{
	if (client->state == CLIENT_WAIT_CA && client_handshake(client) < 0)
		client_close(client);
}

/* The name in SNI; after a CONNECT it must be the one given there. */
static bool hello_host(const struct client *client, const struct hello *hello, struct host *ret)
{
	if (hello->has_name)
		memcpy(ret->name, hello->name, sizeof(ret->name));
	else
		*ret = (struct host){ .is_addr = true, .addr = client->flow.addr };
	if (!client->named)
		return true;
	if (client->host.is_addr && !hello->has_name) {
		*ret = client->host;
		return true;
	}
	return !client->host.is_addr && hello->has_name && !strcmp(ret->name, client->host.name);
}

static void client_hello(struct client *client, const struct hello *hello)
{
	struct host host = { 0 };
	struct verdict verdict;

	if (!hello_host(client, hello, &host)) {
		client_report(client, NP_R_HOST_MISMATCH, 0, "SNI and CONNECT name different hosts");
		client_reset(client);
		return;
	}
	client->host = host;
	client->named = true;
	verdict = client_judge(client, &host, client->port, NULL, NULL);
	if (host.is_addr && verdict.action != ACTION_ALLOW) {
		client_report(client, NP_R_NO_SERVER_NAME, 0, NULL);
		client_reset(client);
	} else if (verdict.action == ACTION_ALLOW && !verdict.inspect) {
		client_tunnel(client, &verdict);
	} else if (!client->box->site->ca) {
		client->state = CLIENT_WAIT_CA;
		channel_pause(client->channel);
	} else if (client_handshake(client) < 0) {
		client_close(client);
	}
}

static void client_sniff_tls(struct client *client, const char *data, size_t len)
{
	struct hello hello;
	int r;

	buf_append(&client->first, data, len);
	r = buf_error(&client->first);
	if (r == 0)
		r = hello_parse((const unsigned char *)client->first.data, client->first.len, &hello);
	if (r == 0) {
		client_hello(client, &hello);
	} else if (r != -EAGAIN) {
		client_report(client, NP_R_BAD_HTTP, 0, "a ClientHello that cannot be read in one way");
		client_reset(client);
	}
}

/* True when the bytes are HTTP, to be read by client_feed(). */
static bool client_sniff(struct client *client, const char *data, size_t len)
{
	if (client->first.len || data[0] == 0x16) {
		client_sniff_tls(client, data, len);
		return false;
	}
	client->prior = len >= 4 && !memcmp(data, "PRI ", 4);
	if (client_speak(client) == 0)
		return true;
	client_close(client);
	return false;
}

static size_t on_data(void *ctx, const char *data, size_t len)
{
	struct client *client = ctx;
	struct worker *worker = client->worker;
	size_t used = len;

	client->busy = true;
	if (client->state != CLIENT_SNIFF || client_sniff(client, data, len))
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

	if (client->state == CLIENT_HANDSHAKE && error == -EPROTO)
		client_report(client, NP_R_BAD_HTTP, 0, channel_problem(client->channel));
	client_close(client);
	worker_flush(worker);
}

static const struct channel_events client_events = {
	.ready = on_ready, .data = on_data, .eof = on_eof, .drained = on_drained, .broken = on_broken
};

/* Whose is it? The gate knows, and says it once. */
static struct box *flow_box(struct worker *worker, int fd, struct np_flow *ret)
{
	socklen_t len = sizeof(*ret);
	struct box *box;

	if (getsockopt(fd, NP_SOL_FLOW, NP_SO_FLOW, ret, &len) < 0 || len != sizeof(*ret))
		return NULL;
	box = box_find(worker, ret->cgroup_id);
	if (!box || (int32_t)(ret->generation - box->generation) > 0) { /* the daemon's word is still on its way */
		worker_drain(worker);
		box = box_find(worker, ret->cgroup_id);
	}
	return box && box->mode == NP_PROXIED && box->n_clients < NP_CONNS_PER_BOX ? box : NULL;
}

void client_accept(struct worker *worker, int fd)
{
	const struct linger now = { .l_onoff = 1 };
	const int yes = 1;
	struct np_flow flow;
	struct box *box = worker->n_clients < NP_CONNS_MAX ? flow_box(worker, fd, &flow) : NULL;
	struct client *client = box ? calloc(1, sizeof(*client)) : NULL;

	if (!client) {
		setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
		close(fd);
		return;
	}
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
	client->worker = worker;
	client->box = box;
	client->flow = flow;
	client->port = flow.port;
	client->host = (struct host){ .is_addr = true, .addr = flow.addr };
	client->first = BUF_INIT(NP_HELLO_BYTES);
	client->out = BUF_INIT(4 * NP_BACKLOG_HIGH);
	LIST_INSERT_HEAD(&box->clients, client, of_box);
	box->n_clients++;
	worker->n_clients++;
	client_wait(client, NP_HEAD_MS);
	if (channel_new(worker->loop, fd, &client_events, client, &client->channel) < 0)
		client_close(client);
}
