/* SPDX-License-Identifier: MIT */
/* Connections to origins: made for an exchange, kept for the next one of the same session, never for another's. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <netinet/in.h>

#include "addr.h"
#include "base/cleanup.h"
#include "inspect/worker.h"

struct upstream {
	LIST_ENTRY(upstream) of_site, of_dirty;
	TAILQ_ENTRY(upstream) of_idle;
	struct worker *worker;
	struct site *site;
	struct host host;
	uint16_t port;
	bool tls;
	struct channel *channel;
	struct h1 *h1;
	struct h2 *h2;
	struct buf out;
	struct exchange *exchange; /* h1, or whom a handshake is for */
	unsigned n_exchanges;
	size_t unread;	     /* h1: bytes of a response that the client has not taken */
	struct np_addr addr; /* where it leads */
	bool handshaking, used, alone;
	bool idle, dirty, paused, busy, dead;
	bool next;  /* h1: the codec is to be made ready for the next request, once it has returned */
	bool spoke; /* bytes of a response came since the last request */
	uint64_t deadline_ns, start_ns;
};

/* -- addresses ---------------------------------------------------------------------- */

/* The host's own addresses: a packet to one comes from that very one. Nothing is sent to find out. */
static bool addr_is_own(const struct np_addr *addr)
{
	union {
		struct sockaddr sa;
		struct sockaddr_in v4;
		struct sockaddr_in6 v6;
	} to = { 0 }, from;
	socklen_t len = np_addr_is_v4(addr) ? sizeof(to.v4) : sizeof(to.v6), from_len = sizeof(from);
	_close_ int fd = -1;

	if (np_addr_is_v4(addr)) {
		to.v4 = (struct sockaddr_in){ .sin_family = AF_INET,
					      .sin_port = htons(9),
					      .sin_addr.s_addr = addr->w[3] };
	} else {
		to.v6 = (struct sockaddr_in6){ .sin6_family = AF_INET6, .sin6_port = htons(9) };
		memcpy(&to.v6.sin6_addr, addr, 16);
	}
	fd = socket(to.sa.sa_family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return true;
	if (connect(fd, &to.sa, len) < 0)
		return errno == ECONNREFUSED; /* the gate says so; else it cannot be dialled in any case */
	if (getsockname(fd, &from.sa, &from_len) < 0)
		return true;
	if (to.sa.sa_family == AF_INET)
		return from.v4.sin_addr.s_addr == to.v4.sin_addr.s_addr;
	return !memcmp(&from.v6.sin6_addr, &to.v6.sin6_addr, 16);
}

bool address_may(const struct client *client, const struct host *host, uint16_t port, const struct np_addr *addr,
		 const struct head *head)
{
	struct np_addr carried = np_addr_carried(addr);

	if (np_addr_is_loopback(&carried) || np_addr_is_any(&carried) || np_addr_is_many(&carried) ||
	    (np_addr_is_v4(&carried) && !carried.b[12]))
		return false;
	if (addr_is_own(addr) || addr_is_own(&carried))
		return false;
	return client_judge(client, host, port, addr, head).action == ACTION_ALLOW;
}

/* -- life --------------------------------------------------------------------------- */

static void idle_remove(struct upstream *up)
{
	if (!up->idle)
		return;
	up->idle = false;
	up->site->n_idle--;
	TAILQ_REMOVE(&up->site->idle, up, of_idle);
}

static void upstream_free(struct upstream *up)
{
	idle_remove(up);
	LIST_REMOVE(up, of_site);
	if (up->dirty)
		LIST_REMOVE(up, of_dirty);
	h1_free(up->h1);
	h2_free(up->h2);
	buf_free(&up->out);
	channel_free(up->channel);
	free(up);
}

void channel_reset(struct channel *channel)
{
	const struct linger now = { .l_onoff = 1 };

	if (channel)
		setsockopt(channel_fd(channel), SOL_SOCKET, SO_LINGER, &now, sizeof(now));
	channel_free(channel);
}

const struct np_addr *upstream_addr(const struct upstream *up)
{
	return &up->addr;
}

static void upstream_close(struct upstream *up)
{
	up->dead = true;
	if (!up->busy)
		upstream_free(up);
}

static bool upstream_leave(struct upstream *up)
{
	up->busy = false;
	if (!up->dead)
		return true;
	upstream_free(up);
	return false;
}

static void upstream_dirty(struct upstream *up)
{
	if (up->dirty || up->dead)
		return;
	up->dirty = true;
	LIST_INSERT_HEAD(&up->worker->dirty_upstreams, up, of_dirty);
}

static void upstream_detach(struct exchange *ex)
{
	struct upstream *up = ex->upstream;

	ex->upstream = NULL;
	up->n_exchanges--;
	if (up->exchange == ex)
		up->exchange = NULL;
	if (ex->origin_stream)
		h2_stream_set_user(ex->origin_stream, NULL);
	ex->origin_stream = NULL;
	if (!up->n_exchanges && !up->deadline_ns)
		up->deadline_ns = loop_now_ns() + NP_IDLE_MS * 1000000ull;
}

/* The exchange of an HTTP/1.1 connection, told that there will be no answer. A request that may be sent again, over a
 * kept connection that its origin closed meanwhile, is. */
static void exchange_lost(struct exchange *ex, const struct upstream *up, enum np_reason reason, const char *words)
{
	bool safe = !strcmp(ex->head.method, "GET") || !strcmp(ex->head.method, "HEAD") ||
		    !strcmp(ex->head.method, "OPTIONS");
	bool again = safe && up->used && !up->spoke && !ex->retried && !ex->responded && ex->request_done &&
		     !ex->report.sent && !ex->head.upgrade;

	if (!again) {
		exchange_upstream_failed(ex, reason, words);
		return;
	}
	ex->retried = true;
	upstream_get(ex, false);
}

static void upstream_fail(struct upstream *up, enum np_reason reason, const char *words)
{
	struct exchange *ex = up->exchange;
	bool busy = up->busy;

	up->dead = up->busy = true; /* it must last to the end of this */
	if (ex) {
		if (ex->upstream)
			upstream_detach(ex);
		up->exchange = NULL;
		ex->handshake = NULL;
		exchange_lost(ex, up, reason, words);
	}
	up->busy = busy;
	if (!busy)
		upstream_free(up); /* h2_free() tells the streams */
}

/* -- the pool ----------------------------------------------------------------------- */

static bool host_is(const struct upstream *up, const struct exchange *ex)
{
	return up->port == ex->port && up->tls == ex->tls && host_equal(&up->host, &ex->host);
}

static struct upstream *pool_find(const struct exchange *ex)
{
	struct site *site = ex->client->box->site;
	struct upstream *up;

	LIST_FOREACH(up, &site->upstreams, of_site)
	if (!up->dead && !up->handshaking && host_is(up, ex) && (up->h2 ? h2_room(up->h2) > 0 && !up->alone : up->idle))
		return up;
	return NULL;
}

static unsigned pool_count(const struct upstream *like)
{
	struct upstream *up;
	unsigned n = 0;

	TAILQ_FOREACH(up, &like->site->idle, of_idle)
	n += up->port == like->port && up->host.is_addr == like->host.is_addr &&
	     !memcmp(&up->host, &like->host, sizeof(up->host));
	return n;
}

static void pool_keep(struct upstream *up)
{
	struct site *site = up->site;

	if (pool_count(up) >= NP_POOL_PER_HOST) {
		upstream_close(up);
		return;
	}
	if (site->n_idle >= NP_POOL_PER_SESSION) {
		struct upstream *oldest = TAILQ_FIRST(&site->idle);

		idle_remove(oldest);
		upstream_close(oldest);
	}
	up->idle = true;
	up->deadline_ns = loop_now_ns() + NP_IDLE_MS * 1000000ull;
	site->n_idle++;
	TAILQ_INSERT_TAIL(&site->idle, up, of_idle);
}

void upstream_tick(struct site *site, uint64_t now_ns)
{
	struct upstream *up, *next;

	for (up = LIST_FIRST(&site->upstreams); up; up = next) {
		next = LIST_NEXT(up, of_site);
		if (!up->deadline_ns || now_ns < up->deadline_ns || up->busy)
			continue;
		if (up->handshaking || up->n_exchanges)
			upstream_fail(up, NP_R_ORIGIN_UNREACHABLE, "timed out");
		else
			upstream_close(up);
	}
}

void upstream_retire(struct site *site)
{
	struct upstream *up, *next;

	for (up = LIST_FIRST(&site->upstreams); up; up = next) {
		next = LIST_NEXT(up, of_site);
		up->alone = true;
		if (!up->n_exchanges && !up->handshaking && !up->busy)
			upstream_close(up);
	}
}

void upstream_close_all(struct site *site)
{
	struct upstream *up, *next;

	for (up = LIST_FIRST(&site->upstreams); up; up = next) {
		struct channel *channel = up->channel;

		next = LIST_NEXT(up, of_site);
		up->channel = NULL;
		channel_reset(channel);
		upstream_fail(up, NP_R_MODE_NONE, "the session was closed");
	}
}

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

	if (!ex)
		return;
	upstream_detach(ex);
	/* REFUSED_STREAM: it was not looked at, so it may go again. */
	up->spoke = error != 7;
	exchange_lost(ex, up, NP_R_ORIGIN_UNREACHABLE, up->dead ? "the connection broke" : "the stream was reset");
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
	if (used < len && !up->dead && !up->exchange)
		upstream_close(up);
	else if (!up->dead && up->unread > NP_BACKLOG_HIGH) {
		up->paused = true;
		channel_pause(up->channel);
	}
	return up->dead && up->channel ? len : used; /* a tunnel is offered the rest */
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
	const char *words = channel_problem(up->channel);

	if (up->handshaking && error == -EPROTO)
		upstream_fail(up, NP_R_ORIGIN_UNTRUSTED, origin_problem(channel_ssl(up->channel)) ?: words);
	else
		upstream_fail(up, NP_R_ORIGIN_UNREACHABLE, words && *words ? words : "the connection broke");
	worker_flush(worker);
}

static void upstream_attach(struct upstream *up, struct exchange *ex)
{
	idle_remove(up);
	up->deadline_ns = 0;
	up->n_exchanges++;
	up->spoke = false;
	if (up->h1)
		up->exchange = ex;
	exchange_upstream_ready(ex, up);
}

static void on_ready(void *ctx)
{
	struct upstream *up = ctx;
	struct worker *worker = up->worker;
	struct exchange *ex = up->exchange;
	const unsigned char *alpn = NULL;
	unsigned len = 0;
	int r;

	up->handshaking = false;
	up->exchange = NULL;
	if (channel_ssl(up->channel))
		SSL_get0_alpn_selected(channel_ssl(up->channel), &alpn, &len);
	if (len == 2 && !memcmp(alpn, "h2", 2))
		r = h2_new(H2_CLIENT, &h2_events, up, &up->h2);
	else
		r = h1_new(H1_CLIENT, &h1_events, up, &up->h1);
	if (!ex || r < 0) {
		upstream_close(up);
		if (ex)
			exchange_upstream_failed(ex, NP_R_ORIGIN_UNREACHABLE, "out of memory");
	} else {
		ex->report.tls_us = up->tls ? (uint32_t)((loop_now_ns() - up->start_ns) / 1000) : 0;
		ex->handshake = NULL;
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
	r = h2_push(up->h2, up->channel, &up->out);
	if (r < 0)
		upstream_fail(up, NP_R_ORIGIN_UNREACHABLE, "the connection broke");
	else if (up->h2 && h2_is_done(up->h2) && !up->n_exchanges)
		upstream_close(up);
	else if (up->paused && up->unread < NP_BACKLOG_LOW) {
		up->paused = false;
		channel_resume(up->channel);
	}
}

/* -- making one ----------------------------------------------------------------------- */

static bool dial_may(void *ctx, const struct np_addr *addr)
{
	const struct exchange *ex = ctx;

	return address_may(ex->client, &ex->host, ex->port, addr, &ex->head);
}

static int upstream_start(struct upstream *up, int fd)
{
	SSL *ssl = NULL;
	int r = channel_new(up->worker->loop, fd, &upstream_events, up, &up->channel);

	if (r < 0 || !up->tls)
		return r;
	r = origin_ssl(up->site->origins, &up->host, up->port, &ssl);
	if (r < 0)
		return r;
	if (up->alone)
		SSL_set_alpn_protos(ssl, (const unsigned char *)"\x08http/1.1", 9);
	return channel_tls(up->channel, ssl, NULL, 0);
}

static void on_dialled(void *ctx, const struct dial_result *result)
{
	struct exchange *ex = ctx;
	struct worker *worker = ex->client->worker;
	struct upstream *up;

	ex->dial = NULL;
	ex->report.dns_us = (uint32_t)result->dns_us;
	ex->report.connect_us = (uint32_t)result->connect_us;
	if (result->error) {
		exchange_upstream_failed(ex, result->refused ? NP_R_ADDRESS_REFUSED : NP_R_ORIGIN_UNREACHABLE,
					 result->words);
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
	up->site = ex->client->box->site;
	up->host = ex->host;
	up->port = ex->port;
	up->tls = ex->tls;
	up->alone = ex->head.upgrade != NULL;
	up->out = BUF_INIT(4 * NP_BACKLOG_HIGH);
	up->handshaking = true;
	up->addr = result->addr;
	up->start_ns = loop_now_ns();
	up->deadline_ns = up->start_ns + NP_HANDSHAKE_MS * 1000000ull;
	up->exchange = ex;
	ex->handshake = up;
	LIST_INSERT_HEAD(&up->site->upstreams, up, of_site);
	if (upstream_start(up, result->fd) < 0)
		upstream_fail(up, NP_R_ORIGIN_UNREACHABLE, "TLS could not be started");
	else if (!up->tls)
		on_ready(up);
	worker_flush(worker);
}

void upstream_get(struct exchange *ex, bool upgrade)
{
	struct worker *worker = ex->client->worker;
	struct upstream *up = upgrade || ex->retried ? NULL : pool_find(ex);

	if (up) {
		up->used = true;
		upstream_attach(up, ex);
		return;
	}
	if (dial_start(worker->dialer, &ex->host, ex->port, dial_may, on_dialled, ex, &ex->dial) < 0)
		exchange_upstream_failed(ex, NP_R_ORIGIN_UNREACHABLE, "out of memory");
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
		h2_reset(ex->origin_stream, 8 /* CANCEL */);
		upstream_detach(ex);
		upstream_dirty(up);
	} else {
		upstream_reset(ex);
	}
}

void upstream_reset(struct exchange *ex)
{
	const struct linger now = { .l_onoff = 1 };
	struct upstream *up = ex->upstream;

	if (!up)
		return;
	upstream_detach(ex);
	setsockopt(channel_fd(up->channel), SOL_SOCKET, SO_LINGER, &now, sizeof(now));
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
			upstream_close(up);
		return;
	}
	up->unread = 0;
	up->paused = false;
	if (up->alone || !h1_persists(up->h1)) {
		upstream_close(up);
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
