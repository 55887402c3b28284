/* SPDX-License-Identifier: MIT */
/* Connections to origins: made for an exchange, kept for the next one of the same session, never for another's. */
#include <linux/tcp.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "net/socket_progress.h"
#include "inspect/upstream.h"
#include "vocab/limits.h"

/* -- life --------------------------------------------------------------------------- */

static void idle_remove(struct upstream *up)
{
	if (!up->idle)
		return;
	up->idle = false;
	up->session->n_idle--;
	TAILQ_REMOVE(&up->session->idle, up, of_idle);
}

static void upstream_free(struct upstream *up)
{
	memory_count_upstream(up);
	idle_remove(up);
	LIST_REMOVE(up, of_session);
	if (up->dirty)
		LIST_REMOVE(up, of_dirty);
	h1_free(up->h1);
	h2_free(up->h2);
	buf_free(&up->out);
	if (up->broken_off)
		channel_reset(up->channel);
	else
		channel_close(up->channel);
	route_clear(&up->route);
	free(up);
}

const struct route *upstream_route(const struct upstream *up)
{
	return &up->route;
}

void upstream_close(struct upstream *up)
{
	up->dead = true;
	if (!up->busy)
		upstream_free(up);
}

/* Bytes that are on their way to the origin. */
static size_t upstream_unsent(const struct upstream *up)
{
	return up->out.len + (up->h2 ? h2_unsent(up->h2) : 0) + (up->channel ? channel_unsent(up->channel) : 0);
}

bool upstream_owes(const struct exchange *ex)
{
	return !ex->upstream || upstream_unsent(ex->upstream);
}

bool upstreams_owe(const struct session *session)
{
	const struct upstream *up;

	LIST_FOREACH(up, &session->upstreams, of_session)
		if (up->left && upstream_unsent(up))
			return true;
	return false;
}

/* The origin may have answered before it read everything, and may still want it. */
void upstream_part(struct upstream *up)
{
	if (up->dead || !upstream_unsent(up)) {
		upstream_close(up);
		return;
	}
	idle_remove(up);
	up->parting = up->alone = up->left = true;
	up->deadline_ns = loop_now_ns() + NP_IDLE_MS * 1000000ull;
	if (up->channel)
		channel_resume(up->channel); /* what it still says is thrown away, but that it is gone must be heard */
}

void upstream_leave(struct upstream *up)
{
	up->busy = false;
	if (up->dead)
		upstream_free(up);
}

void upstream_dirty(struct upstream *up)
{
	if (up->dirty || up->dead)
		return;
	up->dirty = true;
	worker_lend(up->worker, &up->out);
	LIST_INSERT_HEAD(&up->worker->dirty_upstreams, up, of_dirty);
}

void upstream_detach(struct exchange *ex)
{
	struct upstream *up = ex->upstream;

	ex->upstream = NULL;
	up->n_exchanges--;
	if (up->exchange == ex)
		up->exchange = NULL;
	if (ex->origin_stream)
		h2_stream_set_user(ex->origin_stream, NULL);
	ex->origin_stream = NULL;
	up->left = true; /* upstream_tick() looks whether that is so */
	if (!up->n_exchanges && !up->deadline_ns)
		up->deadline_ns = loop_now_ns() + NP_IDLE_MS * 1000000ull;
}

void upstream_fail(struct upstream *up, enum np_reason reason, const char *words)
{
	struct exchange *ex = up->exchange;
	bool busy = up->busy;

	up->dead = up->busy = true; /* it must last to the end of this */
	if (ex) {
		if (ex->upstream) {
			exchange_discard(ex);
			upstream_detach(ex);
			up->broken_off = true; /* what waits in it may be sent elsewhere */
		}
		up->exchange = NULL;
		ex->handshake = NULL;
		exchange_lost(ex, up, LOST_UNKNOWN, reason, words);
	}
	up->busy = busy;
	if (!busy)
		upstream_free(up); /* h2_free() tells the streams */
}

/* -- the pool ----------------------------------------------------------------------- */

static bool upstream_serves(const struct upstream *up, const struct exchange *ex)
{
	if (up->dead || up->handshaking || up->alone || up->port != ex->port || up->tls != ex->tls ||
	    !host_equal(&up->host, &ex->host) || (up->h2 && !h2_room(up->h2)))
		return false;
	/* Another request may not go where the first one did. That it is nobody's of this host was seen then. */
	return client_judge(ex->client, &ex->host, ex->port, &up->route, &ex->head).action == ACTION_ALLOW;
}

/* One of HTTP/1.1 that nobody uses, the last used first, or one of HTTP/2, which is never idle. */
static struct upstream *pool_find(const struct exchange *ex)
{
	struct session *session = ex->client->sandbox->session;
	struct upstream *up;

	TAILQ_FOREACH_REVERSE(up, &session->idle, upstream_queue, of_idle)
	if (upstream_serves(up, ex))
		return up;
	LIST_FOREACH(up, &session->upstreams, of_session)
		if (up->h2 && upstream_serves(up, ex))
			return up;
	return NULL;
}

static unsigned pool_count(const struct upstream *like)
{
	struct upstream *up;
	unsigned n = 0;

	TAILQ_FOREACH(up, &like->session->idle, of_idle)
		n += up->port == like->port && up->host.is_addr == like->host.is_addr &&
		     !memcmp(&up->host, &like->host, sizeof(up->host));
	return n;
}

static void pool_keep(struct upstream *up)
{
	struct session *session = up->session;

	if (session->n_idle >= NP_POOL_PER_HOST && pool_count(up) >= NP_POOL_PER_HOST) {
		upstream_part(up);
		return;
	}
	if (session->n_idle >= NP_POOL_PER_SESSION) {
		struct upstream *oldest = TAILQ_FIRST(&session->idle);

		idle_remove(oldest);
		upstream_part(oldest);
	}
	up->idle = true;
	up->deadline_ns = loop_now_ns() + NP_IDLE_MS * 1000000ull;
	session->n_idle++;
	TAILQ_INSERT_TAIL(&session->idle, up, of_idle);
}

void upstream_tick(struct session *session, uint64_t now_ns)
{
	struct upstream *up, *next;

	for (up = LIST_FIRST(&session->upstreams); up; up = next) {
		next = LIST_NEXT(up, of_session);
		if (up->busy)
			continue;
		if (up->left)
			up->left = upstream_unsent(up) > 0;
		if (up->parting && !up->left) {
			upstream_close(up);
			continue;
		}
		if (!up->deadline_ns || now_ns < up->deadline_ns)
			continue;
		if (up->handshaking || up->n_exchanges)
			upstream_fail(up, NP_R_ORIGIN_UNREACHABLE, "timed out");
		else
			upstream_close(up);
	}
}

/* At once, whoever else is at work on it: its exchanges fail. */
static void upstream_break(struct upstream *up, enum np_reason reason, const char *words)
{
	struct channel *channel = up->channel;

	if (up->exchange)
		exchange_discard(up->exchange);
	up->channel = NULL;
	channel_reset(channel);
	upstream_fail(up, reason, words);
}

void upstream_retire(struct session *session)
{
	struct upstream *up, *next;

	for (up = LIST_FIRST(&session->upstreams); up; up = next) {
		next = LIST_NEXT(up, of_session);
		up->alone = true;
		if (!up->n_exchanges && !up->handshaking && !up->busy)
			upstream_close(up);
		else if (up->left && upstream_unsent(up)) /* nobody can tell what is whose any more */
			upstream_break(up, NP_R_ORIGIN_UNREACHABLE, "another request on the connection was broken off");
	}
}

void upstream_close_all(struct session *session, enum np_reason reason, const char *words)
{
	struct upstream *up, *next;

	for (up = LIST_FIRST(&session->upstreams); up; up = next) {
		next = LIST_NEXT(up, of_session);
		upstream_break(up, reason, words);
	}
}

/* -- what an exchange does ------------------------------------------------------------------ */

void upstream_cancel(struct exchange *ex)
{
	struct upstream *up = ex->upstream;

	if (ex->dial)
		dial_cancel(ex->dial);
	ex->dial = NULL;
	if (ex->handshake) {
		ex->handshake->exchange = NULL;
		upstream_close(ex->handshake);
		ex->handshake = NULL;
	}
	if (!up)
		return;
	if (ex->origin_stream) {
		exchange_discard(ex);
		h2_reset(ex->origin_stream, 8 /* CANCEL */);
		upstream_detach(ex);
		upstream_dirty(up);
	} else {
		upstream_reset(ex);
	}
}

void upstream_reset(struct exchange *ex)
{
	struct upstream *up = ex->upstream;

	if (!up)
		return;
	exchange_discard(ex);
	upstream_detach(ex);
	up->broken_off = true;
	if (up->n_exchanges)
		upstream_fail(up, NP_R_ORIGIN_UNREACHABLE, "another request on the connection was broken off");
	else
		upstream_close(up);
}

int upstream_request(struct exchange *ex, const struct head *head, bool end)
{
	struct upstream *up = ex->upstream;
	int r;

	upstream_dirty(up);
	if (up->h2)
		return h2_request(up->h2, head, end, ex, &ex->origin_stream);
	r = h1_write_head(up->h1, head, false, &up->out);
	return r == 0 && end ? h1_write_end(up->h1, NULL, &up->out) : r;
}

int upstream_body(struct exchange *ex, const char *data, size_t len)
{
	struct upstream *up = ex->upstream;

	upstream_dirty(up);
	return up->h2 ? h2_send_body(ex->origin_stream, data, len) : h1_write_body(up->h1, data, len, &up->out);
}

int upstream_end(struct exchange *ex, const struct fields *trailers)
{
	struct upstream *up = ex->upstream;

	upstream_dirty(up);
	return up->h2 ? h2_send_end(ex->origin_stream, trailers) : h1_write_end(up->h1, trailers, &up->out);
}

size_t upstream_backlog(const struct exchange *ex)
{
	const struct upstream *up = ex->upstream;

	return up->h2 ? h2_backlog(ex->origin_stream) : channel_backlog(up->channel) + up->out.len;
}

size_t upstream_waiting(const struct exchange *ex)
{
	const struct upstream *up = ex->upstream;
	struct tcp_info info = { 0 };
	socklen_t len = sizeof(info);

	if (!up || !up->channel || (up->h2 && !ex->origin_stream))
		return 0;
	if (up->h2)
		return h2_backlog(ex->origin_stream);
	getsockopt(channel_fd(up->channel), IPPROTO_TCP, TCP_INFO, &info, &len);
	return upstream_backlog(ex) + info.tcpi_notsent_bytes;
}

void upstream_consume(struct exchange *ex, size_t n)
{
	struct upstream *up = ex->upstream;

	if (up->h2)
		h2_consume(ex->origin_stream, n);
	else
		up->unread = up->unread > n ? up->unread - n : 0;
	upstream_dirty(up);
}

void upstream_done(struct exchange *ex)
{
	struct upstream *up = ex->upstream;

	upstream_detach(ex);
	if (up->h2) {
		if (up->alone && !up->n_exchanges)
			upstream_part(up);
		return;
	}
	up->unread = 0;
	up->paused = false;
	if (up->alone || !h1_persists(up->h1)) {
		upstream_part(up);
		return;
	}
	if (up->busy)
		up->next = true;
	else
		h1_next(up->h1);
	pool_keep(up);
}

struct channel *upstream_take(struct exchange *ex)
{
	struct upstream *up = ex->upstream;
	struct channel *channel = up->channel;

	upstream_detach(ex);
	up->channel = NULL;
	upstream_close(up);
	return channel;
}

/* -- getting one ------------------------------------------------------------------------ */

void upstream_attach(struct upstream *up, struct exchange *ex)
{
	idle_remove(up);
	up->deadline_ns = 0;
	up->n_exchanges++;
	up->spoke = false;
	socket_progress(channel_fd(up->channel), &up->acked);
	if (up->h1)
		up->exchange = ex;
	exchange_upstream_ready(ex, up);
}

bool upstream_is_untouched(const struct upstream *up)
{
	uint64_t acked = UINT64_MAX;

	if (up->channel)
		socket_progress(channel_fd(up->channel), &acked); /* a closed connection still tells */
	return acked != UINT64_MAX && acked == up->acked;
}

/* A kept one that its origin has not closed meanwhile, as far as that is known here. */
static struct upstream *pool_take(const struct exchange *ex)
{
	struct upstream *up;
	uint64_t acked;

	while ((up = pool_find(ex)) && !socket_progress(channel_fd(up->channel), &acked)) {
		up->alone = true; /* what is on it is told when that is read */
		if (!up->n_exchanges)
			upstream_close(up);
	}
	return up;
}

void upstream_get(struct exchange *ex, bool upgrade)
{
	struct upstream *up = upgrade || ex->tries ? NULL : pool_take(ex);

	if (up) {
		up->used = true;
		upstream_attach(up, ex);
		return;
	}
	upstream_dial(ex);
}
