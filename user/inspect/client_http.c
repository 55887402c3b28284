/* SPDX-License-Identifier: MIT */
/* The client's side of exchanges: HTTP/1.1, one after another, or HTTP/2, many at once. */
#include <errno.h>
#include <string.h>

#include "http/h1.h"
#include "http/h2.h"
#include "inspect/client.h"
#include "inspect/exchange.h"
#include "inspect/judge.h"
#include "inspect/refuse.h"
#include "inspect/tunnel.h"
#include "vocab/limits.h"

#define H2_TURN 8   /* requests */
#define H2_STEP 256 /* bytes in which to look for them: a browser's first, or a dozen of a client's that means harm */

/* -- HTTP/1.1 ------------------------------------------------------------------------- */

/* A client that knows us as its proxy, or believes that somebody here is one. Where the requests inside can be judged
 * they are, so only what is refused by host and port is refused here. */
static int h1_connect(struct client *client, struct head *head)
{
	struct verdict verdict = { .action = ACTION_DENY, .reason = NP_R_NO_TUNNEL };
	struct authority to;

	if (!client->tls && !client->by_connect &&
	    authority_parse(head->authority, strlen(head->authority), true, &to) == 0)
		verdict = judge_connection(client, &to.host, to.port, NULL);
	if (verdict.action != ACTION_ALLOW) {
		request_refuse(client, NULL, head, &verdict);
		return client->dead ? -ECANCELED : 0;
	}
	client->host = to.host;
	client->port = to.port;
	client->named = client->by_connect = client->connect = true;
	client->opaque = !judge_inspects(client->worker, to.port); /* elsewhere the name in the hello is judged first */
	client_dirty(client);
	buf_puts(&client->out, "HTTP/1.1 200 Connection established\r\n\r\n");
	return 0;
}

static int on_h1_head(void *ctx, struct head *head)
{
	struct client *client = ctx;

	client->deadline_ns = 0;
	client->discarded = 0;
	client->request_read = client->answered = false;
	if (!strcmp(head->method, "CONNECT"))
		return h1_connect(client, head);
	exchange_start(client, NULL, head, false);
	return client->dead ? -ECANCELED : 0;
}

static int on_h1_body(void *ctx, const char *data, size_t len)
{
	struct client *client = ctx;

	if (client->exchange) {
		client->unread += len;
		exchange_body(client->exchange, data, len);
	} else {
		client->discarded += len;
		if (client->discarded > NP_REFUSED_BODY)
			return -ECANCELED; /* it was answered, and does not stop */
	}
	return client->dead ? -ECANCELED : 0;
}

static int on_h1_end(void *ctx, const struct fields *trailers)
{
	struct client *client = ctx;

	client->request_read = true;
	if (client->exchange)
		exchange_end(client->exchange, trailers);
	client_dirty(client);
	return client->dead ? -ECANCELED : 0;
}

static const struct h1_events h1_events = { .head = on_h1_head, .body = on_h1_body, .end = on_h1_end };

/* What cannot be read is answered if it looks like HTTP at all, else reset. */
static void h1_malformed(struct client *client, const char *data, size_t len)
{
	_buf_ struct buf body = BUF_INIT(16u << 10);
	const char *problem = h1_problem(client->h1);
	struct head head;
	size_t word = 0;

	while (word < len && data[word] >= 'A' && data[word] <= 'Z')
		word++;
	if (client->exchange || !word || word == len || data[word] != ' ') {
		client_report(client, NP_R_BAD_HTTP, 0, problem);
		client_reset(client);
		return;
	}
	client_report(client, NP_R_BAD_HTTP, 400, problem);
	head_init(&head);
	client->closing = true;
	h1_next(client->h1);
	if (refusal_make(client, NP_R_BAD_HTTP, NULL, client->named ? &client->host : NULL, NULL, problem, &head,
			 &body) < 0 ||
	    h1_write_head(client->h1, &head, true, &client->out) < 0 ||
	    h1_write_body(client->h1, body.data, body.len, &client->out) < 0 ||
	    h1_write_end(client->h1, NULL, &client->out) < 0)
		client->broken = true;
	client_dirty(client);
	head_free(&head);
}

/* A CONNECT was granted: what follows is another connection inside of this one. */
static void h1_into_tunnel(struct client *client)
{
	struct verdict verdict;

	h1_free(client->h1);
	client->h1 = NULL;
	client->connect = client->request_read = client->answered = false;
	client->state = CLIENT_SNIFF;
	client_wait(client, NP_HEAD_MS);
	if (!client->opaque)
		return;
	if (channel_write(client->channel, client->out.data, client->out.len) < 0) {
		client_close(client);
		return;
	}
	buf_clear(&client->out);
	verdict = judge_connection(client, &client->host, client->port, NULL);
	if (verdict.action != ACTION_ALLOW) { /* any more, since it was granted */
		client_report_refusal(client,
				      &(struct client_refusal){ .reason = verdict.reason, .verdict = &verdict });
		client_reset(client);
		return;
	}
	tunnel_start(client, &verdict);
}

static size_t h1_feed(struct client *client, const char *data, size_t len)
{
	size_t used = 0;

	/* One request at a time; the next is read when this one is answered. */
	while (used < len && !client->dead && !client->closing && !client->request_read) {
		ssize_t n = h1_read(client->h1, data + used, len - used);

		if (n == -ECANCELED && !client->dead)
			client_reset(client);
		else if (n < 0 && !client->dead)
			h1_malformed(client, data + used, len - used);
		if (n < 0 || client->dead)
			return len;
		used += (size_t)n;
		if (client->connect) {
			h1_into_tunnel(client);
			if (!client->dead && !client->opaque) {
				client->paused = true; /* so that the rest is offered again */
				client->unread = 0;
				client_dirty(client);
			}
			return used;
		}
	}
	if (client->unread > NP_BACKLOG_HIGH) {
		client->paused = true;
		channel_pause(client->channel);
	}
	return client->closing ? len : used;
}

void client_next(struct client *client)
{
	if (!h1_persists(client->h1) || client->closing_after) {
		client->closing = true;
		channel_finish(client->channel);
		client_wait(client, 5000);
		return;
	}
	client->request_read = client->answered = false;
	client->unread = 0;
	client->paused = false;
	h1_next(client->h1);
	client_wait(client, NP_IDLE_MS);
	channel_resume(client->channel);
}

/* -- HTTP/2 ------------------------------------------------------------------------------ */

static int on_h2_head(void *ctx, struct h2_stream *stream, struct head *head, bool end)
{
	struct client *client = ctx;

	client->deadline_ns = 0;
	client->heads++;
	if (!strcmp(head->method, "CONNECT")) {
		struct verdict verdict = { .action = ACTION_DENY, .reason = NP_R_NO_TUNNEL };

		request_refuse(client, stream, head, &verdict);
		return 0;
	}
	exchange_start(client, stream, head, end);
	return 0;
}

static int on_h2_body(void *ctx, struct h2_stream *stream, const char *data, size_t len)
{
	struct exchange *ex = h2_stream_user(stream);

	(void)ctx;
	if (ex)
		exchange_body(ex, data, len);
	else
		h2_consume(stream, len);
	return 0;
}

static int on_h2_end(void *ctx, struct h2_stream *stream, const struct fields *trailers)
{
	struct exchange *ex = h2_stream_user(stream);

	(void)ctx;
	if (ex)
		exchange_end(ex, trailers);
	return 0;
}

static void on_h2_drained(void *ctx, struct h2_stream *stream)
{
	struct exchange *ex = h2_stream_user(stream);

	(void)ctx;
	if (ex)
		exchange_client_drained(ex);
}

static void on_h2_closed(void *ctx, struct h2_stream *stream, uint32_t error)
{
	struct exchange *ex = h2_stream_user(stream);

	(void)ctx, (void)error;
	if (!ex)
		return;
	ex->at_client.stream = NULL;
	ex->at_client.gone = true;
	exchange_client_gone(ex);
}

static const struct h2_events h2_events = {
	.head = on_h2_head, .body = on_h2_body, .end = on_h2_end, .drained = on_h2_drained, .closed = on_h2_closed
};

/* A few requests, then it is someone else's turn; of bodies as much as there is. */
static size_t h2_feed(struct client *client, const char *data, size_t len)
{
	size_t used = 0, step = H2_STEP;

	client->heads = 0;
	while (used < len && client->heads < H2_TURN) {
		size_t n = len - used < step ? len - used : step;

		if (h2_read(client->h2, data + used, n) < 0 && !client->dead) {
			client_report(client, NP_R_BAD_HTTP, 0, h2_problem(client->h2));
			client->closing = true;
		}
		if (client->closing || client->dead)
			n = len - used; /* whatever it is, it comes too late */
		used += n;
		step *= 2;
	}
	client_dirty(client);
	if (used < len)
		channel_resume(client->channel); /* the rest is offered again, in turn */
	return used;
}

/* -- both ------------------------------------------------------------------------------------ */

int client_speak(struct client *client)
{
	client_wait(client, NP_HEAD_MS);
	if (channel_speaks_h2(client->channel) || client->prior) {
		client->state = CLIENT_H2;
		client_dirty(client); /* our settings */
		return h2_new(H2_SERVER, &h2_events, client, &client->h2);
	}
	client->state = CLIENT_H1;
	return h1_new(H1_SERVER, &h1_events, client, &client->h1);
}

size_t client_feed(struct client *client, const char *data, size_t len)
{
	switch (client->state) {
	case CLIENT_H1:
		return h1_feed(client, data, len);
	case CLIENT_H2:
		return h2_feed(client, data, len);
	default:
		return 0;
	}
}

void client_close_after(struct client *client)
{
	client->closing_after = true;
	if (!client->h2)
		return;
	h2_goaway(client->h2);
	client_dirty(client);
}

/* -- what an exchange does ------------------------------------------------------------------ */

void client_attach(struct exchange *ex, struct h2_stream *stream)
{
	struct client *client = ex->client;

	ex->at_client.stream = stream;
	if (stream)
		h2_stream_set_user(stream, ex);
	else
		client->exchange = ex;
	LIST_INSERT_HEAD(&client->exchanges, ex, at_client.of_client);
	client->sandbox->n_exchanges++;
}

static void client_detach(struct exchange *ex)
{
	LIST_REMOVE(ex, at_client.of_client);
	ex->client->sandbox->n_exchanges--;
}

void client_turn_away(struct client *client, struct h2_stream *stream)
{
	if (stream)
		h2_reset(stream, H2_ENHANCE_YOUR_CALM);
	else
		client_close(client);
}

int client_respond(struct exchange *ex, const struct head *head, bool end)
{
	struct client *client = ex->client;
	int r;

	client_dirty(client);
	if (ex->at_client.stream)
		return h2_respond(ex->at_client.stream, head, end);
	if (client->state != CLIENT_H1 || ex->at_client.gone)
		return -EPIPE;
	r = h1_write_head(client->h1, head, client->closing_after, &client->out);
	if (r == 0 && end && head->status >= 200)
		r = h1_write_end(client->h1, NULL, &client->out);
	return r;
}

int client_body(struct exchange *ex, const char *data, size_t len)
{
	struct client *client = ex->client;

	client_dirty(client);
	if (ex->at_client.stream)
		return h2_send_body(ex->at_client.stream, data, len);
	return client->state == CLIENT_H1 && !ex->at_client.gone ? h1_write_body(client->h1, data, len, &client->out)
								 : -EPIPE;
}

int client_end(struct exchange *ex, const struct fields *trailers)
{
	struct client *client = ex->client;

	client_dirty(client);
	if (ex->at_client.stream)
		return h2_send_end(ex->at_client.stream, trailers);
	return client->state == CLIENT_H1 && !ex->at_client.gone ? h1_write_end(client->h1, trailers, &client->out)
								 : -EPIPE;
}

size_t client_backlog(const struct exchange *ex)
{
	if (ex->at_client.stream)
		return h2_backlog(ex->at_client.stream);
	return ex->client->channel ? channel_backlog(ex->client->channel) + ex->client->out.len : 0;
}

size_t client_waiting(const struct exchange *ex)
{
	if (!ex->at_client.stream && ex->client->channel)
		return channel_unsent(ex->client->channel) + ex->client->out.len;
	return client_backlog(ex);
}

void client_consume(struct exchange *ex, size_t n)
{
	struct client *client = ex->client;

	if (ex->at_client.stream)
		h2_consume(ex->at_client.stream, n);
	else
		client->unread = client->unread > n ? client->unread - n : 0;
	client_dirty(client);
}

void client_abort(struct exchange *ex)
{
	if (ex->at_client.stream)
		h2_reset(ex->at_client.stream, H2_INTERNAL_ERROR);
	else
		ex->client->broken = true; /* what is short must look so */
	client_dirty(ex->client);
}

void client_done(struct exchange *ex)
{
	struct client *client = ex->client;

	client_detach(ex);
	if (ex->at_client.stream) {
		h2_stream_set_user(ex->at_client.stream, NULL); /* what it still wants to send is read and forgotten */
	} else if (client->exchange == ex) {
		client->exchange = NULL;
		client->answered = true;
		client->unread = 0;
	}
	if (LIST_EMPTY(&client->exchanges) && client->h2)
		client_wait(client, NP_IDLE_MS);
	client_dirty(client);
}

struct channel *client_take(struct exchange *ex)
{
	struct client *client = ex->client;

	if (client->out.len)
		channel_write(client->channel, client->out.data,
			      client->out.len); /* a failure shows again in the relay */
	buf_clear(&client->out);
	client_detach(ex);
	client->exchange = NULL;
	client->host = ex->host;
	client->port = ex->port;
	return client_release(client);
}
