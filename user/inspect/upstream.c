/* SPDX-License-Identifier: MIT */
/* Connections to origins: their life, and what exchanges do with them. */
#include <linux/tcp.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "base/table.h"
#include "http/h1.h"
#include "http/h2.h"
#include "inspect/judge.h"
#include "inspect/origin_dial.h"
#include "inspect/upstream.h"
#include "net/channel.h"
#include "net/socket_progress.h"
#include "vocab/limits.h"

/* -- life --------------------------------------------------------------------------- */

static void upstream_free(struct upstream *up)
{
	memory_count_upstream(up);
	pool_forget(up);
	leg_free(&up->leg);
	if (up->broken_off)
		channel_reset(up->leg.channel);
	else
		channel_close(up->leg.channel);
	route_clear(&up->route);
	free(up);
}

struct exchange *upstream_at_hand(const struct upstream *up)
{
	return up->leg.turn ? container_of(up->leg.turn, struct exchange, at_origin.turn) : NULL;
}

const struct route *upstream_route(const struct exchange *ex)
{
	const struct upstream *up = ex->at_origin.upstream ? ex->at_origin.upstream : ex->at_origin.handshake;

	return up && up->routed ? &up->route : NULL;
}

bool upstream_way_stands(const struct exchange *ex)
{
	const struct upstream *up = ex->at_origin.upstream ? ex->at_origin.upstream : ex->at_origin.handshake;
	const struct worker *worker = ex->client->worker;

	if (!up && !ex->at_origin.dial)
		return true;
	return judge_same_way(worker, &ex->host, ex->port, up ? up->proxy : origin_dial_proxy(ex->at_origin.dial));
}

bool upstream_may_decline(const struct exchange *ex)
{
	return ex->at_origin.upstream->used || ex->at_origin.upstream->leg.h2;
}

void upstream_close(struct upstream *up)
{
	leg_advance(&up->leg, LEG_DEAD);
	if (!up->leg.busy)
		upstream_free(up);
}

bool upstream_owes(const struct exchange *ex)
{
	return !hold_is_on(&ex->hold) && (!ex->at_origin.upstream || leg_unsent(&ex->at_origin.upstream->leg));
}

/* The origin may have answered before it read everything, and may still want it. */
void upstream_part(struct upstream *up)
{
	if (leg_is_dead(&up->leg) || !leg_unsent(&up->leg)) {
		upstream_close(up);
		return;
	}
	pool_remove(up);
	leg_advance(&up->leg, LEG_CLOSING);
	up->left = true;
	up->deadline_ns = loop_now_ns() + NP_IDLE_MS * 1000000ull;
	if (up->leg.channel)
		channel_resume(
			up->leg.channel); /* what it still says is thrown away, but that it is gone must be heard */
}

void upstream_leave(struct upstream *up)
{
	up->leg.busy = false;
	if (leg_is_dead(&up->leg))
		upstream_free(up);
}

void upstream_detach(struct exchange *ex)
{
	struct upstream *up = ex->at_origin.upstream;

	ex->at_origin.upstream = NULL;
	up->n_exchanges--;
	leg_detach(&ex->at_origin.turn);
	up->left = true; /* upstream_tick() looks whether that is so */
	if (!up->n_exchanges && !up->deadline_ns)
		up->deadline_ns = loop_now_ns() + NP_IDLE_MS * 1000000ull;
}

/* Not a byte was acknowledged since its request began: its origin cannot have done anything. */
static bool upstream_is_untouched(const struct upstream *up)
{
	uint64_t acked = UINT64_MAX;

	if (up->leg.channel)
		socket_progress(channel_fd(up->leg.channel), &acked); /* a closed connection still tells */
	return acked != UINT64_MAX && acked == up->acked;
}

enum lost upstream_lost(const struct upstream *up)
{
	if (up->leg.h2 && !leg_is_dead(&up->leg))
		return LOST_UNKNOWN; /* the stream ended, not the connection */
	if (!up->used || up->spoke)
		return LOST_UNKNOWN;
	return upstream_is_untouched(up) ? LOST_UNTOUCHED : LOST_UNANSWERED;
}

void upstream_fail(struct upstream *up, enum np_reason reason, const char *words)
{
	struct exchange *ex = upstream_at_hand(up);
	bool busy = up->leg.busy;

	leg_advance(&up->leg, LEG_DEAD);
	up->leg.busy = true; /* it must last to the end of this */
	if (ex) {
		exchange_discard(ex);
		upstream_detach(ex);
		up->broken_off = true; /* what waits in it may be sent elsewhere */
	} else {
		ex = up->awaited;
	}
	up->awaited = NULL;
	if (ex) {
		ex->at_origin.handshake = NULL;
		exchange_lost(ex, upstream_lost(up), reason, words);
	}
	up->leg.busy = busy;
	if (!busy)
		upstream_free(up); /* h2_free() tells the streams */
}

/* -- what an exchange does ------------------------------------------------------------------ */

void upstream_cancel(struct exchange *ex)
{
	struct upstream *up = ex->at_origin.upstream;

	pool_leave(ex);
	origin_dial_cancel(ex->at_origin.dial);
	ex->at_origin.dial = NULL;
	if (ex->at_origin.handshake) {
		ex->at_origin.handshake->awaited = NULL;
		upstream_close(ex->at_origin.handshake);
		ex->at_origin.handshake = NULL;
	}
	if (!up)
		return;
	if (ex->at_origin.turn.stream) {
		exchange_discard(ex);
		leg_abort(&ex->at_origin.turn);
		upstream_detach(ex);
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

size_t upstream_waiting(const struct exchange *ex)
{
	const struct upstream *up = ex->at_origin.upstream;
	struct tcp_info info = { 0 };
	socklen_t len = sizeof(info);

	if (!up || !up->leg.channel)
		return 0;
	if (!up->leg.h2)
		getsockopt(channel_fd(up->leg.channel), IPPROTO_TCP, TCP_INFO, &info, &len);
	return leg_backlog(&ex->at_origin.turn) + info.tcpi_notsent_bytes;
}

void upstream_done(struct exchange *ex)
{
	struct upstream *up = ex->at_origin.upstream;

	upstream_detach(ex);
	if (up->leg.h2) {
		if (up->leg.life >= LEG_LAST && !up->n_exchanges)
			upstream_part(up);
		return;
	}
	up->leg.unread = 0;
	up->leg.paused = false;
	if (up->leg.life >= LEG_LAST || !h1_persists(up->leg.h1)) {
		upstream_part(up);
		return;
	}
	if (up->leg.busy)
		up->next = true;
	else
		h1_next(up->leg.h1);
	pool_keep(up);
}

struct channel *upstream_take(struct exchange *ex)
{
	struct upstream *up = ex->at_origin.upstream;
	struct channel *channel = leg_take(&up->leg);

	upstream_detach(ex);
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
	ex->at_origin.upstream = up;
	exchange_note_proxy(ex, up->proxy);
	leg_attach(&ex->at_origin.turn, &up->leg, &exchange_origin_events);
	exchange_upstream_ready(ex);
}
