/* SPDX-License-Identifier: MIT */
/* Two legs, one at each end of a wire: what is written on one is read on the other. The channel is a fake, the codecs are
 * not. */
#pragma once

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/table.h"
#include "http/h1.h"
#include "http/h2.h"

/* -- the channel ------------------------------------------------------------------------ */

struct channel {
	struct buf written;
	bool held; /* what is written stays in it */
	int error;
};

int channel_write(struct channel *channel, const void *data, size_t len)
{
	buf_append(&channel->written, data, len);
	return channel->error;
}

size_t channel_backlog(const struct channel *channel)
{
	return channel->held ? channel->written.len : 0;
}

size_t channel_unsent(const struct channel *channel)
{
	return channel->written.len;
}

int channel_detach(struct channel *channel)
{
	return channel->written.len ? -1 : 7;
}

/* -- the ends --------------------------------------------------------------------------- */

struct end {
	struct leg leg;
	struct channel channel;
	struct turn turn; /* of the one exchange */
	char seen[512];	  /* what came, in words */
	bool refuses;	  /* its exchange is over as soon as it began */
	size_t owed;	  /* bytes of bodies that it has not consumed */
	bool keeps;	  /* it does not consume */
	int stray;	  /* what stray bytes get */
	unsigned flushes;
};

static struct worker worker;
static struct end near, far; /* the client's leg of an inspector; and a peer that speaks to it with an origin's leg */

static void note(struct end *end, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void note(struct end *end, const char *format, ...)
{
	size_t at = strlen(end->seen);
	va_list args;

	va_start(args, format);
	vsnprintf(end->seen + at, sizeof(end->seen) - at, format, args);
	va_end(args);
}

static void on_turn_head(struct turn *turn, struct head *head, bool end)
{
	note(container_of(turn, struct end, turn), "%u%s ", head->status, end ? "." : "");
}

static void on_turn_body(struct turn *turn, const char *data, size_t len)
{
	struct end *end = container_of(turn, struct end, turn);

	note(end, "%.*s ", len < 20 ? (int)len : 20, data);
	end->owed += len;
	if (!end->keeps) {
		leg_consume(turn, end->owed);
		end->owed = 0;
	}
}

static void on_turn_end(struct turn *turn, const struct fields *trailers)
{
	note(container_of(turn, struct end, turn), "end%s ", trailers->n ? "+" : "");
}

static void on_turn_drained(struct turn *turn)
{
	note(container_of(turn, struct end, turn), "drained ");
}

static const struct turn_events turn_events = {
	.head = on_turn_head, .body = on_turn_body, .end = on_turn_end, .drained = on_turn_drained
};

static int on_request(struct leg *leg, const struct turn *turn, struct head *head, bool end)
{
	struct end *at = container_of(leg, struct end, leg);

	note(at, "%s %s%s ", head->method, head->target, end ? "." : "");
	if (at->refuses) {
		if (turn->stream)
			h2_stream_set_user(turn->stream, NULL);
		return 0;
	}
	at->turn = *turn;
	leg_attach(&at->turn, leg, &turn_events);
	return 0;
}

static int on_stray(struct leg *leg, size_t len)
{
	struct end *end = container_of(leg, struct end, leg);

	note(end, "stray:%zu ", len);
	return end->stray;
}

static int on_read(struct leg *leg)
{
	note(container_of(leg, struct end, leg), "read ");
	return 0;
}

static void on_closed(struct leg *leg, struct turn *turn, uint32_t error)
{
	note(container_of(leg, struct end, leg), "closed:%u ", error);
	leg_detach(turn);
}

static void on_flush(struct leg *leg)
{
	struct end *end = container_of(leg, struct end, leg);

	end->flushes++;
	leg_push(leg);
}

static const struct leg_events leg_events = {
	.request = on_request, .stray = on_stray, .read = on_read, .closed = on_closed, .flush = on_flush
};

static void end_start(struct end *end, enum leg_side side, bool h2)
{
	*end = (struct end){ .channel = { .written = BUF_INIT(8u << 20) } };
	leg_init(&end->leg, side, &worker, &leg_events);
	end->leg.channel = &end->channel;
	assert_int_equal(leg_speak(&end->leg, h2), 0);
}

static void pair_start(bool h2)
{
	end_start(&near, LEG_CLIENT, h2);
	end_start(&far, LEG_ORIGIN, h2);
	leg_attach(&far.turn, &far.leg, &turn_events);
}

static void end_stop(struct end *end)
{
	leg_free(&end->leg);
	buf_free(&end->channel.written);
}

static void pair_stop(void)
{
	end_stop(&near);
	end_stop(&far);
	assert_true(LIST_EMPTY(&worker.dirty[LEG_CLIENT]) && LIST_EMPTY(&worker.dirty[LEG_ORIGIN]));
	buf_free(&worker.spare);
}

/* What a worker does at the end of whatever its loop called. */
static void flush_all(void)
{
	struct leg *leg;

	while ((leg = LIST_FIRST(&worker.dirty[LEG_ORIGIN])) || (leg = LIST_FIRST(&worker.dirty[LEG_CLIENT])))
		leg_flush(leg);
}

/* 0, or how reading ended. */
static ssize_t carry(struct end *from, struct end *to)
{
	struct buf bytes = from->channel.written;
	size_t used = 0;
	ssize_t r = 0;

	from->channel.written = BUF_INIT(8u << 20);
	if (to->leg.h2)
		r = h2_read(to->leg.h2, bytes.data, bytes.len);
	else
		while (used < bytes.len && (r = h1_read(to->leg.h1, bytes.data + used, bytes.len - used)) > 0)
			used += (size_t)r;
	if (r > 0)
		r = 0;
	buf_free(&bytes);
	leg_dirty(&to->leg);
	flush_all();
	return r;
}

static ssize_t glue(void)
{
	ssize_t r = 0;

	flush_all();
	for (int i = 0; i < 500 && r == 0 && (far.channel.written.len || near.channel.written.len); i++) {
		if (far.channel.written.len)
			r = carry(&far, &near);
		if (r == 0 && near.channel.written.len && !near.channel.held)
			r = carry(&near, &far);
	}
	return r;
}

static int request_send(const char *method, bool body)
{
	struct head head;
	int r;

	head_init(&head);
	assert_int_equal(head_set_method(&head, method, strlen(method)) ?: head_set_target(&head, "/a", 2)
				 ?: head_set_authority(&head, "o.test", 6) ?: head_set_scheme(&head, "https", 5),
			 0);
	head.has_body = body;
	r = leg_head(&far.turn, &head, !body);
	head_free(&head);
	return r;
}

static int response_send(unsigned status, bool body)
{
	struct head head;
	int r;

	head_init(&head);
	head.status = status;
	head.has_body = body;
	r = leg_head(&near.turn, &head, !body);
	head_free(&head);
	return r;
}
