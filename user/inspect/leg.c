/* SPDX-License-Identifier: MIT */
#include "inspect/leg.h"

#include <errno.h>

#include "http/h1.h"
#include "http/h2.h"
#include "inspect/worker.h"
#include "net/channel.h"
#include "vocab/limits.h"

#define SPARE_MAX (512u << 10) /* what one push of HTTP/2 gathers, and the last frame beyond it */

/* -- what is read ----------------------------------------------------------------------- */

/* An origin that is not listened to any more is not read on. */
static int leg_goes_on(const struct leg *leg)
{
	return leg_is_dead(leg) || (leg->side == LEG_ORIGIN && !leg->turn) ? -ECANCELED : 0;
}

static int on_h1_head(void *ctx, struct head *head)
{
	struct leg *leg = ctx;
	int r = 0;

	if (leg->side == LEG_CLIENT)
		r = leg->events->request(leg, &(struct turn){ .leg = leg }, head, false);
	else if (leg->turn)
		leg->turn->events->head(leg->turn, head, false);
	if (!leg->channel)
		return 0; /* a tunnel now: what follows the head is not ours */
	return r ? r : leg_goes_on(leg);
}

static int on_h1_body(void *ctx, const char *data, size_t len)
{
	struct leg *leg = ctx;
	int r = 0;

	if (leg->turn) {
		leg->unread += len;
		leg->turn->events->body(leg->turn, data, len);
	} else {
		r = leg->events->stray(leg, len);
	}
	return r ? r : leg_goes_on(leg);
}

static int on_h1_end(void *ctx, const struct fields *trailers)
{
	struct leg *leg = ctx;
	struct turn *turn = leg->turn;
	int r = leg->events->read(leg);

	if (r == 0 && turn)
		turn->events->end(turn, trailers);
	return r == 0 && leg->side == LEG_CLIENT && leg_is_dead(leg) ? -ECANCELED : r;
}

static const struct h1_events h1_events = { .head = on_h1_head, .body = on_h1_body, .end = on_h1_end };

static int on_h2_head(void *ctx, struct h2_stream *stream, struct head *head, bool end)
{
	struct leg *leg = ctx;
	struct turn *turn = h2_stream_user(stream);

	if (leg->side == LEG_CLIENT)
		return leg->events->request(leg, &(struct turn){ .leg = leg, .stream = stream }, head, end);
	if (turn)
		turn->events->head(turn, head, end);
	return 0;
}

static int on_h2_body(void *ctx, struct h2_stream *stream, const char *data, size_t len)
{
	struct turn *turn = h2_stream_user(stream);

	(void)ctx;
	if (turn)
		turn->events->body(turn, data, len);
	else
		h2_consume(stream, len);
	return 0;
}

static int on_h2_end(void *ctx, struct h2_stream *stream, const struct fields *trailers)
{
	struct turn *turn = h2_stream_user(stream);

	(void)ctx;
	if (turn)
		turn->events->end(turn, trailers);
	return 0;
}

static void on_h2_drained(void *ctx, struct h2_stream *stream)
{
	struct turn *turn = h2_stream_user(stream);

	(void)ctx;
	if (turn)
		turn->events->drained(turn);
}

static void on_h2_closed(void *ctx, struct h2_stream *stream, uint32_t error)
{
	struct leg *leg = ctx;
	struct turn *turn = h2_stream_user(stream);

	if (turn)
		leg->events->closed(leg, turn, error);
}

static void on_h2_refused(void *ctx, const char *problem)
{
	struct leg *leg = ctx;

	leg->events->refused(leg, problem);
}

static const struct h2_events h2_events = { .head = on_h2_head,
					    .body = on_h2_body,
					    .end = on_h2_end,
					    .drained = on_h2_drained,
					    .closed = on_h2_closed,
					    .refused = on_h2_refused };

/* -- its life ----------------------------------------------------------------------------- */

void leg_init(struct leg *leg, enum leg_side side, struct worker *worker, const struct leg_events *events)
{
	*leg = (struct leg){ .side = side, .worker = worker, .events = events, .out = BUF_INIT(4 * NP_BACKLOG_HIGH) };
}

int leg_speak(struct leg *leg, bool h2)
{
	if (h2)
		return h2_new(leg->side == LEG_CLIENT ? H2_SERVER : H2_CLIENT, &h2_events, leg, &leg->h2);
	return h1_new(leg->side == LEG_CLIENT ? H1_SERVER : H1_CLIENT, &h1_events, leg, &leg->h1);
}

void leg_free(struct leg *leg)
{
	if (leg->dirty)
		LIST_REMOVE(leg, of_dirty);
	leg->dirty = false;
	h1_free(leg->h1);
	h2_free(leg->h2);
	buf_free(&leg->out);
}

void leg_advance(struct leg *leg, enum leg_life life)
{
	if (leg->life < life)
		leg->life = life;
}

bool leg_is_dead(const struct leg *leg)
{
	return leg->life == LEG_DEAD;
}

unsigned leg_version(const struct leg *leg)
{
	return leg->h2 ? 20 : leg->h1 && h1_peer_is_old(leg->h1) ? 10 : 11;
}

void leg_attach(struct turn *turn, struct leg *leg, const struct turn_events *events)
{
	turn->leg = leg;
	turn->gone = false;
	turn->events = events;
	if (turn->stream)
		h2_stream_set_user(turn->stream, turn);
	else if (leg->h1)
		leg->turn = turn;
}

void leg_detach(struct turn *turn)
{
	struct leg *leg = turn->leg;

	if (!leg)
		return;
	if (turn->stream)
		h2_stream_set_user(turn->stream, NULL);
	if (leg->turn == turn) {
		leg->turn = NULL;
		leg->unread = 0;
	}
	*turn = (struct turn){ .gone = true };
}

struct channel *leg_take(struct leg *leg)
{
	struct channel *channel = leg->channel;

	if (leg->out.len)
		channel_write(channel, leg->out.data, leg->out.len); /* a failure shows again in who takes it */
	buf_clear(&leg->out);
	leg->channel = NULL;
	return channel;
}

int leg_take_fd(struct leg *leg)
{
	int fd = leg->out.len ? -1 : channel_detach(leg->channel);

	if (fd >= 0)
		leg->channel = NULL;
	return fd;
}

/* -- what is written ------------------------------------------------------------------------ */

/* It is about to gather something, and is lent memory for it. */
static void spare_lend(struct worker *worker, struct buf *out)
{
	if (out->cap)
		return;
	out->data = worker->spare.data;
	out->cap = worker->spare.cap;
	worker->spare = (struct buf){ 0 };
}

static void spare_take_back(struct worker *worker, struct buf *out)
{
	buf_clear(out);
	if (out->cap > worker->spare.cap && out->cap <= SPARE_MAX) {
		struct buf swap = worker->spare;

		worker->spare = (struct buf){ .data = out->data, .cap = out->cap };
		out->data = swap.data;
	}
	buf_free(out);
}

void leg_dirty(struct leg *leg)
{
	if (leg->dirty || leg_is_dead(leg))
		return;
	leg->dirty = true;
	spare_lend(leg->worker, &leg->out);
	LIST_INSERT_HEAD(&leg->worker->dirty[leg->side], leg, of_dirty);
}

void leg_flush(struct leg *leg)
{
	leg->dirty = false;
	LIST_REMOVE(leg, of_dirty);
	if (!leg_is_dead(leg) && leg->channel)
		leg->events->flush(leg);
}

int leg_push(struct leg *leg)
{
	struct buf *out = &leg->out;
	int r = 0;

	for (;;) {
		if (leg->h2 && channel_backlog(leg->channel) <= NP_BACKLOG_HIGH)
			r = h2_write(leg->h2, out, NP_BACKLOG_HIGH);
		if (r < 0 || !out->len)
			break;
		r = channel_write(leg->channel, out->data, out->len);
		buf_clear(out);
		/* More, while the socket takes it all: it will not tell of room that it never lacked. */
		if (r < 0 || !leg->h2)
			break;
	}
	spare_take_back(leg->worker, out);
	return r;
}

size_t leg_held(const struct leg *leg)
{
	return (leg->h2 ? h2_unsent(leg->h2) : 0) + (leg->channel ? channel_backlog(leg->channel) : 0) + leg->out.len;
}

size_t leg_unsent(const struct leg *leg)
{
	return (leg->h2 ? h2_unsent(leg->h2) : 0) + (leg->channel ? channel_unsent(leg->channel) : 0) + leg->out.len;
}

/* -- what an exchange does -------------------------------------------------------------------- */

int leg_head(struct turn *turn, const struct head *head, bool end)
{
	struct leg *leg = turn->leg;
	bool last;
	int r;

	if (!leg || turn->gone)
		return -EPIPE;
	leg_dirty(leg);
	if (leg->h2 && leg->side == LEG_ORIGIN)
		return h2_request(leg->h2, head, end, turn, &turn->stream);
	if (leg->h2)
		return h2_respond(turn->stream, head, end);
	if (!leg->h1)
		return -EPIPE;
	last = leg->side == LEG_CLIENT && leg->life >= LEG_LAST;
	r = h1_write_head(leg->h1, head, last, &leg->out);
	if (r == 0 && end && (leg->side == LEG_ORIGIN || head->status >= 200))
		r = h1_write_end(leg->h1, NULL, &leg->out);
	return r;
}

int leg_body(struct turn *turn, const char *data, size_t len)
{
	struct leg *leg = turn->leg;

	if (!leg || turn->gone)
		return -EPIPE;
	leg_dirty(leg);
	if (leg->h2)
		return h2_send_body(turn->stream, data, len);
	return leg->h1 ? h1_write_body(leg->h1, data, len, &leg->out) : -EPIPE;
}

int leg_end(struct turn *turn, const struct fields *trailers)
{
	struct leg *leg = turn->leg;

	if (!leg || turn->gone)
		return -EPIPE;
	leg_dirty(leg);
	if (leg->h2)
		return h2_send_end(turn->stream, trailers);
	return leg->h1 ? h1_write_end(leg->h1, trailers, &leg->out) : -EPIPE;
}

size_t leg_backlog(const struct turn *turn)
{
	const struct leg *leg = turn->leg;

	if (turn->stream)
		return h2_backlog(turn->stream);
	return leg && !leg->h2 && leg->channel ? channel_backlog(leg->channel) + leg->out.len : 0;
}

size_t leg_waiting(const struct turn *turn)
{
	const struct leg *leg = turn->leg;

	if (turn->stream)
		return h2_backlog(turn->stream);
	return leg && !leg->h2 && leg->channel ? channel_unsent(leg->channel) + leg->out.len : 0;
}

void leg_consume(struct turn *turn, size_t n)
{
	struct leg *leg = turn->leg;

	if (!leg)
		return;
	if (turn->stream)
		h2_consume(turn->stream, n);
	else
		leg->unread = leg->unread > n ? leg->unread - n : 0;
	leg_dirty(leg);
}

void leg_shelve(struct turn *turn, size_t n)
{
	if (!turn->stream)
		return;
	h2_shelve(turn->stream, n);
	leg_dirty(turn->leg);
}

bool leg_may_switch(const struct turn *turn)
{
	return turn->leg && turn->leg->h1;
}

void leg_abort(struct turn *turn)
{
	struct leg *leg = turn->leg;

	if (!leg)
		return;
	if (turn->stream)
		h2_reset(turn->stream, leg->side == LEG_CLIENT ? H2_INTERNAL_ERROR : H2_CANCEL);
	else if (leg->h1)
		leg_advance(leg, LEG_BROKEN);
	leg_dirty(leg);
}
