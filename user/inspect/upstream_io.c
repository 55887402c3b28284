/* SPDX-License-Identifier: MIT */
/* How a connection to an origin is made, and its bytes on their way to exchanges and back. */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/table.h"
#include "http/h1.h"
#include "http/h2.h"
#include "inspect/judge.h"
#include "inspect/origin_dial.h"
#include "inspect/upstream.h"
#include "net/channel.h"
#include "tls/origin.h"
#include "vocab/limits.h"

/* -- HTTP --------------------------------------------------------------------------- */

static int on_stray(struct leg *leg, size_t len)
{
	(void)leg, (void)len;
	return -ECANCELED;
}

static int on_read(struct leg *leg)
{
	(void)leg;
	return 0;
}

static void on_closed(struct leg *leg, struct turn *turn, uint32_t error)
{
	struct upstream *up = container_of(leg, struct upstream, leg);
	struct exchange *ex = container_of(turn, struct exchange, at_origin.turn);
	enum lost lost;

	exchange_discard(ex);
	upstream_detach(ex);
	if (error == H2_REFUSED_STREAM)
		lost = LOST_REFUSED;
	else if (error == H2_HTTP_1_1_REQUIRED)
		lost = LOST_WANTS_H1;
	else
		lost = upstream_lost(up);
	exchange_lost(ex, lost, NP_R_ORIGIN_UNREACHABLE,
		      leg_is_dead(&up->leg) ? "the connection broke" : "the stream was reset");
}

static void upstream_flush(struct leg *leg);

static const struct leg_events leg_events = {
	.stray = on_stray, .read = on_read, .closed = on_closed, .flush = upstream_flush
};

/* -- bytes -------------------------------------------------------------------------- */

static size_t h1_feed(struct upstream *up, const char *data, size_t len)
{
	size_t used = 0;

	up->spoke = true;
	while (used < len && !leg_is_dead(&up->leg) && up->leg.turn) {
		ssize_t n = h1_read(up->leg.h1, data + used, len - used);

		if (n < 0 && n != -ECANCELED)
			upstream_fail(up, NP_R_ORIGIN_UNREACHABLE, h1_problem(up->leg.h1));
		if (n < 0)
			break;
		used += (size_t)n;
	}
	if (!leg_is_dead(&up->leg) && up->next)
		h1_next(up->leg.h1);
	up->next = false;
	/* Bytes that nobody asked for: whatever they are, they must not be the next one's answer. */
	if (used < len && !leg_is_dead(&up->leg) && !up->leg.turn && up->leg.life != LEG_CLOSING)
		upstream_close(up);
	else if (!leg_is_dead(&up->leg) && up->leg.unread) {
		up->leg.paused = true;
		channel_pause(up->leg.channel);
	}
	return (leg_is_dead(&up->leg) && up->leg.channel) || up->leg.life == LEG_CLOSING
		       ? len
		       : used; /* a tunnel is offered the rest */
}

static size_t on_data(void *ctx, const char *data, size_t len)
{
	struct upstream *up = ctx;
	struct worker *worker = up->leg.worker;
	size_t used = len;

	up->leg.busy = true;
	if (up->leg.h2) {
		if (h2_read(up->leg.h2, data, len) < 0 && !leg_is_dead(&up->leg))
			upstream_fail(up, NP_R_ORIGIN_UNREACHABLE, h2_problem(up->leg.h2));
		else
			leg_dirty(&up->leg);
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
	struct worker *worker = up->leg.worker;

	up->leg.busy = true;
	if (up->leg.h1 && up->leg.turn && h1_read_eof(up->leg.h1) < 0)
		upstream_fail(up, NP_R_ORIGIN_UNREACHABLE, "the origin closed the connection");
	else if (up->leg.h1)
		upstream_part(up); /* it says no more, but may still listen */
	else
		leg_advance(&up->leg, LEG_DEAD);
	upstream_leave(up);
	worker_flush(worker);
}

static void on_drained(void *ctx)
{
	struct upstream *up = ctx;
	struct worker *worker = up->leg.worker;
	struct exchange *ex = upstream_at_hand(up);

	if (ex)
		exchange_drained(ex, WAY_REQUEST);
	leg_dirty(&up->leg);
	worker_flush(worker);
}

static void on_broken(void *ctx, int error)
{
	struct upstream *up = ctx;
	struct worker *worker = up->leg.worker;
	struct exchange *ex = upstream_at_hand(up);
	const char *words = channel_problem(up->leg.channel), *untrusted;

	if (error == -ECONNABORTED && ex && h1_ends_with_connection(up->leg.h1)) {
		/* As browsers, curl and Python have it; but who reads the events can tell. */
		exchange_note(ex, "truncated-possible: the connection ended without TLS saying so, and "
				  "nothing else says where the body ends");
		on_eof(up);
		return;
	}

	untrusted = up->handshaking && error == -EPROTO ? origin_problem(channel_ssl(up->leg.channel)) : NULL;
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
	struct worker *worker = up->leg.worker;
	struct exchange *ex = up->awaited;
	int r;

	up->handshaking = false;
	up->awaited = NULL;
	r = leg_speak(&up->leg, channel_speaks_h2(up->leg.channel));
	pool_learn(up, r < 0 ? NULL : ex);
	if (!ex || r < 0) {
		upstream_close(up);
		if (ex)
			exchange_upstream_failed(ex, NP_R_ORIGIN_UNREACHABLE, "out of memory");
	} else {
		exchange_note_tls(ex, up->to->tls ? (loop_now_ns() - up->start_ns) / 1000 : 0);
		ex->at_origin.handshake = NULL;
		upstream_attach(up, ex);
	}
	worker_flush(worker);
}

static const struct channel_events upstream_events = {
	.ready = on_ready, .data = on_data, .eof = on_eof, .drained = on_drained, .broken = on_broken
};

static void upstream_flush(struct leg *leg)
{
	struct upstream *up = container_of(leg, struct upstream, leg);
	struct exchange *ex;
	int r = leg_push(leg);

	memory_count_upstream(up);
	if (r < 0) {
		upstream_fail(up, NP_R_ORIGIN_UNREACHABLE, "the connection broke");
		return;
	}
	if (up->leg.h2) {
		if (h2_is_done(up->leg.h2) && !up->n_exchanges)
			upstream_close(up);
		return;
	}
	if (up->leg.paused && !up->leg.unread) {
		up->leg.paused = false;
		channel_resume(up->leg.channel);
	}
	/* A channel that took it all at once has nothing to tell of later. */
	ex = upstream_at_hand(up);
	if (ex && channel_backlog(up->leg.channel) <= memory_mark(ex->client))
		exchange_drained(ex, WAY_REQUEST);
}

/* -- making one ----------------------------------------------------------------------- */

static bool dial_may(void *ctx, const struct route *route)
{
	const struct exchange *ex = ctx;

	return route_may(ex->client, &ex->host, ex->port, route, &ex->head, &ex->ask);
}

static int upstream_start(struct upstream *up, int fd)
{
	struct origins *origins;
	SSL *ssl = NULL;
	int r = channel_new(up->leg.worker->loop, &up->session->lane, fd, &upstream_events, up, &up->leg.channel);

	if (r < 0 || !up->to->tls)
		return r;
	origins = session_origins(up->leg.worker, up->session);
	r = origins ? origin_ssl(origins, &up->to->host, up->to->port, &ssl) : -ENOMEM;
	if (r < 0)
		return r;
	if (up->h1_only)
		SSL_set_alpn_protos(ssl, (const unsigned char *)"\x08http/1.1", 9);
	return channel_tls(up->leg.channel, ssl, NULL, 0);
}

static void on_dialled(void *ctx, const struct origin_dial_result *result)
{
	struct exchange *ex = ctx;
	struct worker *worker = ex->client->worker;
	struct upstream *up;

	ex->at_origin.dial = NULL;
	exchange_note_dial(ex, result);
	if (result->error == -ETIMEDOUT && !result->proxy && result->connect_us && ex->timeouts.connect) {
		exchange_timed_out(ex, "connect", ex->timeouts.connect);
		worker_flush(worker);
		return;
	}
	if (result->error) {
		if (result->refused)
			exchange_route_refused(ex, result->route, result->words);
		else
			exchange_upstream_failed(ex, result->reason, result->words);
		worker_flush(worker);
		return;
	}
	/* What may be dialled may have changed since it was. */
	if (!dial_may(ex, result->route)) {
		close(result->fd);
		exchange_route_refused(ex, result->route, "the address may not be reached");
		worker_flush(worker);
		return;
	}
	up = calloc(1, sizeof(*up));
	if (up)
		up->session = ex->client->sandbox->session;
	if (!up || pool_add(up, ex) < 0) {
		free(up);
		close(result->fd);
		exchange_upstream_failed(ex, NP_R_ORIGIN_UNREACHABLE, "out of memory");
		worker_flush(worker);
		return;
	}
	leg_init(&up->leg, LEG_ORIGIN, worker, &leg_events);
	if (ex->head.upgrade)
		leg_advance(&up->leg, LEG_LAST);
	up->h1_only = ex->head.upgrade || ex->h1_only;
	up->handshaking = true;
	up->routed = result->route != NULL;
	if (up->routed)
		route_set(&up->route, result->route);
	up->proxy = result->proxy;
	up->start_ns = loop_now_ns();
	up->deadline_ns = up->start_ns + NP_HANDSHAKE_MS * 1000000ull;
	up->awaited = ex;
	ex->at_origin.handshake = up;
	if (upstream_start(up, result->fd) < 0)
		upstream_fail(up, NP_R_ORIGIN_UNREACHABLE, "TLS could not be started");
	else if (!up->to->tls)
		on_ready(up);
	worker_flush(worker);
}

void upstream_dial(struct exchange *ex)
{
	const struct origin_dial_terms terms = { .host = &ex->host,
						 .port = ex->port,
						 .session = ex->client->sandbox->session,
						 .quiet = true,
						 .connect_ms = ex->timeouts.connect,
						 .may = dial_may,
						 .done = on_dialled,
						 .ctx = ex };

	if (origin_dial_start(ex->client->worker, &terms, &ex->at_origin.dial) < 0)
		exchange_upstream_failed(ex, NP_R_ORIGIN_UNREACHABLE, "out of memory");
}
