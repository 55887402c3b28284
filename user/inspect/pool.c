/* SPDX-License-Identifier: MIT */
/* Connections to origins that are kept for the next exchange of the same session, never for another's; and all of a session
 * at once. */
#include <string.h>

#include "http/h2.h"
#include "inspect/judge.h"
#include "inspect/upstream.h"
#include "net/channel.h"
#include "net/socket_progress.h"
#include "vocab/limits.h"

void pool_init(struct pool *pool)
{
	TAILQ_INIT(&pool->idle);
}

void pool_remove(struct upstream *up)
{
	if (!up->idle)
		return;
	up->idle = false;
	up->session->pool.n_idle--;
	TAILQ_REMOVE(&up->session->pool.idle, up, of_idle);
}

static bool upstream_serves(const struct upstream *up, const struct exchange *ex)
{
	if (leg_is_dead(&up->leg) || up->handshaking || up->leg.life >= LEG_LAST || up->port != ex->port ||
	    up->tls != ex->tls || !host_equal(&up->host, &ex->host) || (up->leg.h2 && !h2_room(up->leg.h2)))
		return false;
	/* Another request may not go where the first one did. That it is nobody's of this host was seen then. */
	return judge_request(ex->client, &ex->host, ex->port, up->routed ? &up->route : NULL, &ex->head, &ex->ask)
		       .action == ACTION_ALLOW;
}

/* One of HTTP/1.1 that nobody uses, the last used first, or one of HTTP/2, which is never idle. */
static struct upstream *pool_find(const struct exchange *ex)
{
	struct session *session = ex->client->sandbox->session;
	struct upstream *up;

	TAILQ_FOREACH_REVERSE(up, &session->pool.idle, upstream_queue, of_idle)
	if (upstream_serves(up, ex))
		return up;
	LIST_FOREACH(up, &session->pool.upstreams, of_session)
		if (up->leg.h2 && upstream_serves(up, ex))
			return up;
	return NULL;
}

static unsigned pool_count(const struct upstream *like)
{
	struct upstream *up;
	unsigned n = 0;

	TAILQ_FOREACH(up, &like->session->pool.idle, of_idle)
		n += up->port == like->port && up->host.is_addr == like->host.is_addr &&
		     !memcmp(&up->host, &like->host, sizeof(up->host));
	return n;
}

void pool_keep(struct upstream *up)
{
	struct session *session = up->session;

	if (session->pool.n_idle >= NP_POOL_PER_HOST && pool_count(up) >= NP_POOL_PER_HOST) {
		upstream_part(up);
		return;
	}
	if (session->pool.n_idle >= NP_POOL_PER_SESSION) {
		struct upstream *oldest = TAILQ_FIRST(&session->pool.idle);

		pool_remove(oldest);
		upstream_part(oldest);
	}
	up->idle = true;
	up->deadline_ns = loop_now_ns() + NP_IDLE_MS * 1000000ull;
	session->pool.n_idle++;
	TAILQ_INSERT_TAIL(&session->pool.idle, up, of_idle);
}

void upstream_tick(struct session *session, uint64_t now_ns)
{
	struct upstream *up, *next;

	for (up = LIST_FIRST(&session->pool.upstreams); up; up = next) {
		next = LIST_NEXT(up, of_session);
		if (up->leg.busy)
			continue;
		if (up->left)
			up->left = leg_unsent(&up->leg) > 0;
		if (up->leg.life == LEG_CLOSING && !up->left) {
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
	struct channel *channel = up->leg.channel;
	struct exchange *ex = upstream_at_hand(up);

	if (ex)
		exchange_discard(ex);
	up->leg.channel = NULL;
	channel_reset(channel);
	upstream_fail(up, reason, words);
}

void upstream_retire(struct session *session)
{
	struct upstream *up, *next;

	for (up = LIST_FIRST(&session->pool.upstreams); up; up = next) {
		next = LIST_NEXT(up, of_session);
		leg_advance(&up->leg, LEG_LAST);
		if (!up->n_exchanges && !up->handshaking && !up->leg.busy)
			upstream_close(up);
		else if (up->left && leg_unsent(&up->leg)) /* nobody can tell what is whose any more */
			upstream_break(up, NP_R_ORIGIN_UNREACHABLE, "another request on the connection was broken off");
	}
}

void upstream_close_all(struct session *session, enum np_reason reason, const char *words)
{
	struct upstream *up, *next;

	for (up = LIST_FIRST(&session->pool.upstreams); up; up = next) {
		next = LIST_NEXT(up, of_session);
		upstream_break(up, reason, words);
	}
}

bool upstreams_owe(const struct session *session)
{
	const struct upstream *up;

	LIST_FOREACH(up, &session->pool.upstreams, of_session)
		if (up->left && leg_unsent(&up->leg))
			return true;
	return false;
}

/* -- getting one ------------------------------------------------------------------------ */

/* A kept one that its origin has not closed meanwhile, as far as that is known here. */
static struct upstream *pool_take(const struct exchange *ex)
{
	struct upstream *up;

	while ((up = pool_find(ex)) && !socket_progress(channel_fd(up->leg.channel), &up->acked)) {
		leg_advance(&up->leg, LEG_LAST); /* what is on it is told when that is read */
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
