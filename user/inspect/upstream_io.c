/* SPDX-License-Identifier: MIT */
/* How a connection to an origin is made, and its bytes on their way to exchanges and back. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "http/h1.h"
#include "http/h2.h"
#include "inspect/judge.h"
#include "inspect/upstream.h"
#include "net/dial.h"
#include "tls/origin.h"
#include "vocab/limits.h"

/* -- HTTP --------------------------------------------------------------------------- */

static int on_h1_head(void *ctx, struct head *head)
{
	struct upstream *up = ctx;

	if (up->exchange)
		exchange_response(up->exchange, head, false);
	if (!up->channel)
		return 0; /* a tunnel now: what follows the head is not ours */
	return up->dead || !up->exchange ? -ECANCELED : 0;
}

static int on_h1_body(void *ctx, const char *data, size_t len)
{
	struct upstream *up = ctx;

	up->unread += len;
	exchange_response_body(up->exchange, data, len);
	return up->dead || !up->exchange ? -ECANCELED : 0;
}

static int on_h1_end(void *ctx, const struct fields *trailers)
{
	struct upstream *up = ctx;

	exchange_response_end(up->exchange, trailers);
	return 0;
}

static const struct h1_events h1_events = { .head = on_h1_head, .body = on_h1_body, .end = on_h1_end };

static int on_h2_head(void *ctx, struct h2_stream *stream, struct head *head, bool end)
{
	struct exchange *ex = h2_stream_user(stream);

	(void)ctx;
	if (ex)
		exchange_response(ex, head, end);
	return 0;
}

static int on_h2_body(void *ctx, struct h2_stream *stream, const char *data, size_t len)
{
	struct exchange *ex = h2_stream_user(stream);

	(void)ctx;
	if (ex)
		exchange_response_body(ex, data, len);
	else
		h2_consume(stream, len);
	return 0;
}

static int on_h2_end(void *ctx, struct h2_stream *stream, const struct fields *trailers)
{
	struct exchange *ex = h2_stream_user(stream);

	(void)ctx;
	if (ex)
		exchange_response_end(ex, trailers);
	return 0;
}

static void on_h2_drained(void *ctx, struct h2_stream *stream)
{
	struct exchange *ex = h2_stream_user(stream);

	(void)ctx;
	if (ex)
		exchange_upstream_drained(ex);
}

static void on_h2_closed(void *ctx, struct h2_stream *stream, uint32_t error)
{
	struct upstream *up = ctx;
	struct exchange *ex = h2_stream_user(stream);
	enum lost lost;

	if (!ex)
		return;
	exchange_discard(ex);
	upstream_detach(ex);
	if (error == H2_REFUSED_STREAM)
		lost = LOST_REFUSED;
	else if (error == H2_HTTP_1_1_REQUIRED)
		lost = LOST_WANTS_H1;
	else
		lost = upstream_lost(up);
	exchange_lost(ex, lost, NP_R_ORIGIN_UNREACHABLE, up->dead ? "the connection broke" : "the stream was reset");
}

static const struct h2_events h2_events = {
	.head = on_h2_head, .body = on_h2_body, .end = on_h2_end, .drained = on_h2_drained, .closed = on_h2_closed
};

/* -- bytes -------------------------------------------------------------------------- */

static size_t h1_feed(struct upstream *up, const char *data, size_t len)
{
	size_t used = 0;

	up->spoke = true;
	while (used < len && !up->dead && up->exchange) {
		ssize_t n = h1_read(up->h1, data + used, len - used);

		if (n < 0 && n != -ECANCELED)
			upstream_fail(up, NP_R_ORIGIN_UNREACHABLE, h1_problem(up->h1));
		if (n < 0)
			break;
		used += (size_t)n;
	}
	if (!up->dead && up->next)
		h1_next(up->h1);
	up->next = false;
	/* Bytes that nobody asked for: whatever they are, they must not be the next one's answer. */
	if (used < len && !up->dead && !up->exchange && !up->parting)
		upstream_close(up);
	else if (!up->dead && up->unread) {
		up->paused = true;
		channel_pause(up->channel);
	}
	return (up->dead && up->channel) || up->parting ? len : used; /* a tunnel is offered the rest */
}

static size_t on_data(void *ctx, const char *data, size_t len)
{
	struct upstream *up = ctx;
	struct worker *worker = up->worker;
	size_t used = len;

	up->busy = true;
	if (up->h2) {
		if (h2_read(up->h2, data, len) < 0 && !up->dead)
			upstream_fail(up, NP_R_ORIGIN_UNREACHABLE, h2_problem(up->h2));
		else
			upstream_dirty(up);
	} else {
		used = h1_feed(up, data, len);
	}
	upstream_leave(up);
	worker_flush(worker);
	return used;
}

static void on_eof(void *ctx)
{
	struct upstream *up = ctx;
	struct worker *worker = up->worker;

	up->busy = true;
	if (up->h1 && up->exchange && h1_read_eof(up->h1) < 0)
		upstream_fail(up, NP_R_ORIGIN_UNREACHABLE, "the origin closed the connection");
	else if (up->h1)
		upstream_part(up); /* it says no more, but may still listen */
	else
		up->dead = true;
	upstream_leave(up);
	worker_flush(worker);
}

static void on_drained(void *ctx)
{
	struct upstream *up = ctx;
	struct worker *worker = up->worker;

	if (up->exchange && up->h1)
		exchange_upstream_drained(up->exchange);
	upstream_dirty(up);
	worker_flush(worker);
}

static void on_broken(void *ctx, int error)
{
	struct upstream *up = ctx;
	struct worker *worker = up->worker;
	const char *words = channel_problem(up->channel), *untrusted;

	if (error == -ECONNABORTED && up->h1 && up->exchange && h1_ends_with_connection(up->h1)) {
		/* As browsers, curl and Python have it; but who reads the events can tell. */
		exchange_note(up->exchange, "truncated-possible: the connection ended without TLS saying so, and "
					    "nothing else says where the body ends");
		on_eof(up);
		return;
	}

	untrusted = up->handshaking && error == -EPROTO ? origin_problem(channel_ssl(up->channel)) : NULL;
	if (untrusted)
		upstream_fail(up, NP_R_ORIGIN_UNTRUSTED, untrusted);
	else if (up->handshaking && error == -EPROTO)
		upstream_fail(up, NP_R_ORIGIN_TLS, words);
	else
		upstream_fail(up, NP_R_ORIGIN_UNREACHABLE, words && *words ? words : "the connection broke");
	worker_flush(worker);
}

static void on_ready(void *ctx)
{
	struct upstream *up = ctx;
	struct worker *worker = up->worker;
	struct exchange *ex = up->exchange;
	int r;

	up->handshaking = false;
	up->exchange = NULL;
	if (channel_speaks_h2(up->channel))
		r = h2_new(H2_CLIENT, &h2_events, up, &up->h2);
	else
		r = h1_new(H1_CLIENT, &h1_events, up, &up->h1);
	if (!ex || r < 0) {
		upstream_close(up);
		if (ex)
			exchange_upstream_failed(ex, NP_R_ORIGIN_UNREACHABLE, "out of memory");
	} else {
		exchange_note_tls(ex, up->tls ? (loop_now_ns() - up->start_ns) / 1000 : 0);
		ex->at_origin.handshake = NULL;
		upstream_attach(up, ex);
	}
	worker_flush(worker);
}

static const struct channel_events upstream_events = {
	.ready = on_ready, .data = on_data, .eof = on_eof, .drained = on_drained, .broken = on_broken
};

void upstream_flush(struct upstream *up)
{
	int r;

	up->dirty = false;
	LIST_REMOVE(up, of_dirty);
	if (up->dead || !up->channel)
		return;
	r = worker_push(up->worker, up->h2, up->channel, &up->out);
	memory_count_upstream(up);
	if (r < 0) {
		upstream_fail(up, NP_R_ORIGIN_UNREACHABLE, "the connection broke");
		return;
	}
	if (up->h2) {
		if (h2_is_done(up->h2) && !up->n_exchanges)
			upstream_close(up);
		return;
	}
	if (up->paused && !up->unread) {
		up->paused = false;
		channel_resume(up->channel);
	}
	/* A channel that took it all at once has nothing to tell of later. */
	if (up->exchange && up->h1 && channel_backlog(up->channel) <= memory_mark(up->exchange->client))
		exchange_upstream_drained(up->exchange);
}

/* -- making one ----------------------------------------------------------------------- */

static bool dial_may(void *ctx, const struct route *route)
{
	const struct exchange *ex = ctx;

	return route_may(ex->client, &ex->host, ex->port, route, &ex->head);
}

static int upstream_start(struct upstream *up, int fd)
{
	SSL *ssl = NULL;
	int r = channel_new(up->worker->loop, fd, &upstream_events, up, &up->channel);

	if (r < 0 || !up->tls)
		return r;
	r = origin_ssl(up->session->origins, &up->host, up->port, &ssl);
	if (r < 0)
		return r;
	if (up->h1_only)
		SSL_set_alpn_protos(ssl, (const unsigned char *)"\x08http/1.1", 9);
	return channel_tls(up->channel, ssl, NULL, 0);
}

static void on_dialled(void *ctx, const struct dial_result *result)
{
	struct exchange *ex = ctx;
	struct worker *worker = ex->client->worker;
	struct upstream *up;

	ex->at_origin.dial = NULL;
	exchange_note_dial(ex, result->dns_us, result->connect_us);
	if (result->error == -ETIMEDOUT && result->connect_us && ex->timeouts.connect) {
		exchange_timed_out(ex, "connect", ex->timeouts.connect);
		worker_flush(worker);
		return;
	}
	if (result->error) {
		if (result->refused)
			exchange_route_refused(ex, &result->route, result->words);
		else
			exchange_upstream_failed(ex, NP_R_ORIGIN_UNREACHABLE, result->words);
		worker_flush(worker);
		return;
	}
	/* What may be dialled may have changed since it was. */
	if (!dial_may(ex, &result->route)) {
		close(result->fd);
		exchange_route_refused(ex, &result->route, "the address may not be reached");
		worker_flush(worker);
		return;
	}
	up = calloc(1, sizeof(*up));
	if (!up) {
		close(result->fd);
		exchange_upstream_failed(ex, NP_R_ORIGIN_UNREACHABLE, "out of memory");
		worker_flush(worker);
		return;
	}
	up->worker = worker;
	up->session = ex->client->sandbox->session;
	up->host = ex->host;
	up->port = ex->port;
	up->tls = ex->tls;
	up->alone = ex->head.upgrade != NULL;
	up->h1_only = up->alone || ex->h1_only;
	up->out = BUF_INIT(4 * NP_BACKLOG_HIGH);
	up->handshaking = true;
	route_set(&up->route, &result->route);
	up->start_ns = loop_now_ns();
	up->deadline_ns = up->start_ns + NP_HANDSHAKE_MS * 1000000ull;
	up->exchange = ex;
	ex->at_origin.handshake = up;
	LIST_INSERT_HEAD(&up->session->pool.upstreams, up, of_session);
	if (upstream_start(up, result->fd) < 0)
		upstream_fail(up, NP_R_ORIGIN_UNREACHABLE, "TLS could not be started");
	else if (!up->tls)
		on_ready(up);
	worker_flush(worker);
}

void upstream_dial(struct exchange *ex)
{
	struct dialer *dialer = ex->client->worker->dialer;

	if (dial_start(dialer, &ex->host, ex->port, dial_may, on_dialled, ex, &ex->at_origin.dial) < 0)
		exchange_upstream_failed(ex, NP_R_ORIGIN_UNREACHABLE, "out of memory");
	else if (ex->timeouts.connect)
		dial_set_connect(ex->at_origin.dial, ex->timeouts.connect);
}
