/* SPDX-License-Identifier: MIT */
/* Connections to origins: their life, and what exchanges do with them. */
#include <linux/tcp.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "http/h1.h"
#include "http/h2.h"
#include "inspect/upstream.h"
#include "net/dial.h"
#include "net/socket_progress.h"
#include "vocab/limits.h"

/* -- life --------------------------------------------------------------------------- */

static void upstream_free(struct upstream *up)
{
	memory_count_upstream(up);
	pool_remove(up);
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

const struct route *upstream_route(const struct exchange *ex)
{
	const struct upstream *up = ex->at_origin.upstream ? ex->at_origin.upstream : ex->at_origin.handshake;

	return up ? &up->route : NULL;
}

bool upstream_may_decline(const struct exchange *ex)
{
	return ex->at_origin.upstream->used || ex->at_origin.upstream->h2;
}

void upstream_close(struct upstream *up)
{
	up->dead = true;
	if (!up->busy)
		upstream_free(up);
}

size_t upstream_unsent(const struct upstream *up)
{
	return up->out.len + (up->h2 ? h2_unsent(up->h2) : 0) + (up->channel ? channel_unsent(up->channel) : 0);
}

bool upstream_owes(const struct exchange *ex)
{
	return !ex->at_origin.upstream || upstream_unsent(ex->at_origin.upstream);
}

/* The origin may have answered before it read everything, and may still want it. */
void upstream_part(struct upstream *up)
{
	if (up->dead || !upstream_unsent(up)) {
		upstream_close(up);
		return;
	}
	pool_remove(up);
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
	struct upstream *up = ex->at_origin.upstream;

	ex->at_origin.upstream = NULL;
	up->n_exchanges--;
	if (up->exchange == ex)
		up->exchange = NULL;
	if (ex->at_origin.stream)
		h2_stream_set_user(ex->at_origin.stream, NULL);
	ex->at_origin.stream = NULL;
	up->left = true; /* upstream_tick() looks whether that is so */
	if (!up->n_exchanges && !up->deadline_ns)
		up->deadline_ns = loop_now_ns() + NP_IDLE_MS * 1000000ull;
}

/* Not a byte was acknowledged since its request began: its origin cannot have done anything. */
static bool upstream_is_untouched(const struct upstream *up)
{
	uint64_t acked = UINT64_MAX;

	if (up->channel)
		socket_progress(channel_fd(up->channel), &acked); /* a closed connection still tells */
	return acked != UINT64_MAX && acked == up->acked;
}

enum lost upstream_lost(const struct upstream *up)
{
	if (up->h2 && !up->dead)
		return LOST_UNKNOWN; /* the stream ended, not the connection */
	if (!up->used || up->spoke)
		return LOST_UNKNOWN;
	return upstream_is_untouched(up) ? LOST_UNTOUCHED : LOST_UNANSWERED;
}

void upstream_fail(struct upstream *up, enum np_reason reason, const char *words)
{
	struct exchange *ex = up->exchange;
	bool busy = up->busy;

	up->dead = up->busy = true; /* it must last to the end of this */
	if (ex) {
		if (ex->at_origin.upstream) {
			exchange_discard(ex);
			upstream_detach(ex);
			up->broken_off = true; /* what waits in it may be sent elsewhere */
		}
		up->exchange = NULL;
		ex->at_origin.handshake = NULL;
		exchange_lost(ex, upstream_lost(up), reason, words);
	}
	up->busy = busy;
	if (!busy)
		upstream_free(up); /* h2_free() tells the streams */
}

/* -- what an exchange does ------------------------------------------------------------------ */

void upstream_cancel(struct exchange *ex)
{
	struct upstream *up = ex->at_origin.upstream;

	if (ex->at_origin.dial)
		dial_cancel(ex->at_origin.dial);
	ex->at_origin.dial = NULL;
	if (ex->at_origin.handshake) {
		ex->at_origin.handshake->exchange = NULL;
		upstream_close(ex->at_origin.handshake);
		ex->at_origin.handshake = NULL;
	}
	if (!up)
		return;
	if (ex->at_origin.stream) {
		exchange_discard(ex);
		h2_reset(ex->at_origin.stream, H2_CANCEL);
		upstream_detach(ex);
		upstream_dirty(up);
	} else {
		upstream_reset(ex);
	}
}

void upstream_reset(struct exchange *ex)
{
	struct upstream *up = ex->at_origin.upstream;

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
	struct upstream *up = ex->at_origin.upstream;
	int r;

	upstream_dirty(up);
	if (up->h2)
		return h2_request(up->h2, head, end, ex, &ex->at_origin.stream);
	r = h1_write_head(up->h1, head, false, &up->out);
	return r == 0 && end ? h1_write_end(up->h1, NULL, &up->out) : r;
}

int upstream_body(struct exchange *ex, const char *data, size_t len)
{
	struct upstream *up = ex->at_origin.upstream;

	upstream_dirty(up);
	return up->h2 ? h2_send_body(ex->at_origin.stream, data, len) : h1_write_body(up->h1, data, len, &up->out);
}

int upstream_end(struct exchange *ex, const struct fields *trailers)
{
	struct upstream *up = ex->at_origin.upstream;

	upstream_dirty(up);
	return up->h2 ? h2_send_end(ex->at_origin.stream, trailers) : h1_write_end(up->h1, trailers, &up->out);
}

size_t upstream_backlog(const struct exchange *ex)
{
	const struct upstream *up = ex->at_origin.upstream;

	return up->h2 ? h2_backlog(ex->at_origin.stream) : channel_backlog(up->channel) + up->out.len;
}

size_t upstream_waiting(const struct exchange *ex)
{
	const struct upstream *up = ex->at_origin.upstream;
	struct tcp_info info = { 0 };
	socklen_t len = sizeof(info);

	if (!up || !up->channel || (up->h2 && !ex->at_origin.stream))
		return 0;
	if (up->h2)
		return h2_backlog(ex->at_origin.stream);
	getsockopt(channel_fd(up->channel), IPPROTO_TCP, TCP_INFO, &info, &len);
	return upstream_backlog(ex) + info.tcpi_notsent_bytes;
}

void upstream_consume(struct exchange *ex, size_t n)
{
	struct upstream *up = ex->at_origin.upstream;

	if (up->h2)
		h2_consume(ex->at_origin.stream, n);
	else
		up->unread = up->unread > n ? up->unread - n : 0;
	upstream_dirty(up);
}

void upstream_done(struct exchange *ex)
{
	struct upstream *up = ex->at_origin.upstream;

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
	struct upstream *up = ex->at_origin.upstream;
	struct channel *channel = up->channel;

	upstream_detach(ex);
	up->channel = NULL;
	upstream_close(up);
	return channel;
}

/* -- getting one ------------------------------------------------------------------------ */

void upstream_attach(struct upstream *up, struct exchange *ex)
{
	pool_remove(up);
	up->deadline_ns = 0;
	up->n_exchanges++;
	up->spoke = false;
	socket_progress(channel_fd(up->channel), &up->acked);
	if (up->h1)
		up->exchange = ex;
	ex->at_origin.upstream = up;
	exchange_upstream_ready(ex);
}
