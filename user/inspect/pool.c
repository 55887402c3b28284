/* SPDX-License-Identifier: MIT */
/* Connections to origins that are kept for the next exchange of the same session, never for another's; and all of a session
 * at once. */
#include <errno.h>
#include <stdlib.h>

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

void pool_free(struct pool *pool, struct loop *loop)
{
	struct table_node *n;

	while ((n = table_walk(&pool->hosts, NULL))) {
		table_remove(&pool->hosts, n);
		loop_cancel(loop, &container_of(n, struct pool_host, node)->resume);
		free(container_of(n, struct pool_host, node));
	}
	table_clear(&pool->hosts);
}

static uint64_t host_hash(const struct exchange *ex)
{
	const struct hash_key *key = &ex->client->worker->key;
	uint64_t hash = ex->host.is_addr ? hash_bytes(key, (const char *)&ex->host.addr, sizeof(ex->host.addr))
					 : hash_text(key, ex->host.name);

	return hash ^ hash_number(key, ex->port * 2u + ex->tls);
}

static struct pool_host *host_find(const struct pool *pool, const struct exchange *ex, uint64_t hash)
{
	for (struct table_node *n = table_first(&pool->hosts, hash); n; n = table_next(n)) {
		struct pool_host *to = container_of(n, struct pool_host, node);

		if (to->port == ex->port && to->tls == ex->tls && host_equal(&to->host, &ex->host))
			return to;
	}
	return NULL;
}

static void host_resume(void *data);

/* One user more, until host_drop(). NULL: out of memory. */
static struct pool_host *host_use(const struct exchange *ex)
{
	struct session *session = ex->client->sandbox->session;
	uint64_t hash = host_hash(ex);
	struct pool_host *to = host_find(&session->pool, ex, hash);

	if (!to) {
		to = table_reserve(&session->pool.hosts) < 0 ? NULL : calloc(1, sizeof(*to));
		if (!to)
			return NULL;
		to->worker = ex->client->worker;
		to->session = session;
		to->host = ex->host;
		to->port = ex->port;
		to->tls = ex->tls;
		TAILQ_INIT(&to->idle);
		TAILQ_INIT(&to->waiting);
		to->resume = (struct loop_task){ .fn = host_resume, .data = to, .lane = &session->lane };
		table_add(&session->pool.hosts, &to->node, hash);
	}
	to->n_users++;
	return to;
}

static void host_drop(struct pool_host *to)
{
	struct table *hosts = &to->session->pool.hosts;

	if (--to->n_users || (to->speaks_h1 && hosts->count <= NP_POOL_HOSTS))
		return;
	table_remove(hosts, &to->node);
	free(to);
}

int pool_add(struct upstream *up, const struct exchange *ex)
{
	struct pool *pool = &up->session->pool;
	struct pool_host *to = host_use(ex);

	if (!to)
		return -ENOMEM;
	up->to = to;
	if (LIST_EMPTY(&pool->upstreams))
		LIST_INSERT_HEAD(&ex->client->worker->pooling, up->session, of_pooling);
	LIST_INSERT_HEAD(&pool->upstreams, up, of_session);
	return 0;
}

void pool_forget(struct upstream *up)
{
	pool_remove(up);
	LIST_REMOVE(up, of_session);
	if (LIST_EMPTY(&up->session->pool.upstreams))
		LIST_REMOVE(up->session, of_pooling);
	if (up->leg.h2)
		LIST_REMOVE(up, of_h2);
	host_drop(up->to);
}

void pool_remove(struct upstream *up)
{
	if (!up->idle)
		return;
	up->idle = false;
	up->session->pool.n_idle--;
	up->to->n_idle--;
	TAILQ_REMOVE(&up->session->pool.idle, up, of_idle);
	TAILQ_REMOVE(&up->to->idle, up, of_host);
}

static bool upstream_serves(const struct upstream *up, const struct exchange *ex)
{
	if (leg_is_dead(&up->leg) || up->leg.life >= LEG_LAST || (up->leg.h2 && !h2_room(up->leg.h2)))
		return false;
	/* A later request may be forbidden to go where the first one did. That the address belongs to nobody on this
	 * host was checked then. */
	return judge_request(ex->client, &ex->host, ex->port, up->routed ? &up->route : NULL, &ex->head, &ex->ask)
		       .action == ACTION_ALLOW;
}

/* An idle HTTP/1.1 connection, the last used first; or one of HTTP/2, which is shared and never idle. */
static struct upstream *pool_find(const struct exchange *ex)
{
	struct pool_host *to = host_find(&ex->client->sandbox->session->pool, ex, host_hash(ex));
	struct upstream *up;

	if (!to)
		return NULL;
	TAILQ_FOREACH_REVERSE(up, &to->idle, upstream_queue, of_host)
	if (upstream_serves(up, ex))
		return up;
	LIST_FOREACH(up, &to->h2, of_h2)
		if (upstream_serves(up, ex))
			return up;
	return NULL;
}

void pool_keep(struct upstream *up)
{
	struct session *session = up->session;

	if (up->to->n_idle >= NP_POOL_PER_HOST) {
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
	up->to->n_idle++;
	TAILQ_INSERT_TAIL(&session->pool.idle, up, of_idle);
	TAILQ_INSERT_TAIL(&up->to->idle, up, of_host);
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

	/* With exchanges on it, its end is reported by itself, and `acked` stays: bytes that were acknowledged since
	 * may be of any of them. */
	while ((up = pool_find(ex)) && !up->n_exchanges && !socket_progress(channel_fd(up->leg.channel), &up->acked))
		upstream_close(up);
	return up;
}

/* True: it waits for the connection that is being made. An exchange whose rule bounds the time of a connect dials
 * for itself, to have all of that time. */
static bool host_await(struct exchange *ex)
{
	struct pool_host *to = ex->tls && !ex->timeouts.connect ? host_use(ex) : NULL;

	if (!to)
		return false;
	if (to->speaks_h1) {
		host_drop(to);
		return false;
	}
	ex->at_origin.awaits = to;
	if (!to->leader) {
		to->leader = ex;
		return false;
	}
	TAILQ_INSERT_TAIL(&to->waiting, ex, at_origin.of_waiting);
	return true;
}

/* Those that wait are resumed from the loop, not at once: the caller may be working on one of them (re-entrancy). */
static void leader_ends(struct pool_host *to, bool failed)
{
	to->leader = NULL;
	to->failed = failed;
	if (TAILQ_EMPTY(&to->waiting) || to->resume.waits_in)
		return;
	to->n_users++;
	loop_later(to->worker->loop, &to->resume);
}

void pool_learn(struct upstream *up, struct exchange *ex)
{
	struct pool_host *to = up->to;

	if (up->leg.h2)
		LIST_INSERT_HEAD(&to->h2, up, of_h2);
	if (!up->h1_only)
		to->speaks_h1 = up->leg.h1 != NULL;
	if (!ex || !ex->at_origin.awaits)
		return;
	ex->at_origin.awaits = NULL;
	leader_ends(to, false);
	host_drop(to);
}

void pool_leave(struct exchange *ex)
{
	struct pool_host *to = ex->at_origin.awaits;

	if (!to)
		return;
	ex->at_origin.awaits = NULL;
	if (to->leader == ex)
		leader_ends(to, true);
	else
		TAILQ_REMOVE(&to->waiting, ex, at_origin.of_waiting);
	host_drop(to);
}

static void host_resume(void *data)
{
	struct pool_host *to = data;
	struct worker *worker = to->worker;
	const bool failed = to->failed;
	struct exchange *ex;
	unsigned n = 0;

	TAILQ_FOREACH(ex, &to->waiting, at_origin.of_waiting)
		n++;
	/* Some may have to wait again, for the next connection: this one has fewer streams than there are exchanges. */
	while (n-- && (ex = TAILQ_FIRST(&to->waiting))) {
		pool_leave(ex);
		if (failed)
			upstream_dial(ex);
		else
			upstream_get(ex, false);
	}
	host_drop(to);
	worker_flush(worker);
}

void upstream_get(struct exchange *ex, bool upgrade)
{
	struct upstream *up = upgrade || ex->tries ? NULL : pool_take(ex);

	if (up) {
		up->used = true;
		upstream_attach(up, ex);
		return;
	}
	if (upgrade || ex->tries || !host_await(ex))
		upstream_dial(ex);
}
