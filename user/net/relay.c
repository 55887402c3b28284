/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "net/relay.h"
#include "vocab/limits.h"

#define RELAY_OUT_BYTES (8u << 20) /* that a look may make of one read: far more than any does */

struct relay {
	struct channel *ends[2]; /* the client's, the origin's */
	struct side {
		struct relay *relay;
		unsigned index;
		uint64_t passed; /* bytes of it that went to the other one */
		bool eof;	 /* it has said all */
		bool done;	 /* and has been told all that the other one said */
	} sides[2];
	const struct relay_events *events;
	void *ctx;
	bool starting, over; /* over while starting: as soon as it has started */
};

void relay_count(const struct relay *relay, uint64_t *ret_sent, uint64_t *ret_received)
{
	const uint64_t passed = relay->sides[0].passed, waits = channel_backlog(relay->ends[1]);

	*ret_sent = passed > waits ? passed - waits : 0;
	*ret_received = relay->sides[1].passed;
}

static bool is_orderly(const struct relay *relay)
{
	return relay->sides[0].done && relay->sides[1].done;
}

size_t relay_unsent(const struct relay *relay)
{
	return is_orderly(relay) ? channel_unsent(relay->ends[1]) : 0;
}

size_t relay_held(const struct relay *relay)
{
	return channel_backlog(relay->ends[0]) + channel_backlog(relay->ends[1]);
}

bool relay_owes(const struct relay *relay)
{
	return !relay->sides[1].done || channel_unsent(relay->ends[1]);
}

static void relay_over(struct relay *relay)
{
	const struct relay_events *events = relay->events;
	uint64_t sent, received;
	void *ctx = relay->ctx;

	if (relay->starting) {
		relay->over = true;
		return;
	}
	relay_count(relay, &sent, &received);
	/* Both have said all: an orderly end. Else what is short must look so. */
	if (is_orderly(relay)) {
		channel_free(relay->ends[0]);
		channel_close(relay->ends[1]);
		free(relay);
	} else {
		relay_free(relay);
	}
	events->closed(ctx, sent, received);
}

void relay_tick(struct relay *relay)
{
	if (is_orderly(relay) && !relay_unsent(relay))
		relay_over(relay);
}

static struct channel *other_side(const struct side *side)
{
	return side->relay->ends[!side->index];
}

static size_t on_data(void *ctx, const char *data, size_t len)
{
	struct side *side = ctx;
	struct relay *relay = side->relay;
	struct buf out = BUF_INIT(RELAY_OUT_BYTES);
	int r = 0;

	if (relay->over)
		return len;
	if (relay->events->look)
		r = relay->events->look(relay->ctx, side->index == 0, data, len, &out);
	if (r >= 0) {
		const char *passes = r ? out.data : data;
		const size_t n = r ? out.len : len;

		r = buf_error(&out);
		if (r == 0 && n)
			r = channel_write(other_side(side), passes, n);
		side->passed += n;
	}
	if (out.data)
		explicit_bzero(out.data, out.cap); /* there may be a secret in it */
	buf_free(&out);
	if (r < 0) {
		relay_over(relay);
		return len;
	}
	if (channel_backlog(other_side(side)) > NP_BACKLOG_HIGH)
		channel_pause(relay->ends[side->index]);
	return len;
}

static void on_eof(void *ctx)
{
	struct side *side = ctx;

	side->eof = true;
	channel_finish(other_side(side)); /* drained() tells when it has gone */
}

/* What this end had to take is gone: the other one may send more. */
static void on_drained(void *ctx)
{
	struct side *side = ctx, *from = &side->relay->sides[!side->index];

	if (!from->eof) {
		channel_resume(other_side(side));
		return;
	}
	side->done = true;
	relay_tick(side->relay);
}

static void on_broken(void *ctx, int error)
{
	struct side *side = ctx;

	(void)error;
	relay_over(side->relay);
}

static const struct channel_events relay_events = {
	.data = on_data, .eof = on_eof, .drained = on_drained, .broken = on_broken
};

int relay_start(struct channel *client, struct channel *origin, const struct buf *first,
		const struct relay_events *events, void *ctx, struct relay **ret)
{
	struct relay *relay = calloc(1, sizeof(*relay));
	int r = relay ? 0 : -ENOMEM;

	if (r == 0 && first->len)
		r = channel_write(origin, first->data, first->len);
	if (r < 0) {
		free(relay);
		channel_free(client);
		channel_free(origin);
		return r;
	}
	*relay = (struct relay){ .ends = { client, origin }, .events = events, .ctx = ctx };
	relay->sides[0].passed = first->len;
	for (unsigned i = 0; i < 2; i++) {
		relay->sides[i].relay = relay;
		relay->sides[i].index = i;
		channel_set_owner(relay->ends[i], &relay_events, &relay->sides[i]);
	}
	*ret = relay;
	relay->starting = true;
	channel_resume(client);
	if (!relay->over)
		channel_resume(origin);
	relay->starting = false;
	if (relay->over)
		relay_over(relay);
	return 0;
}

void relay_free(struct relay *relay)
{
	if (!relay)
		return;
	channel_reset(relay->ends[0]);
	channel_reset(relay->ends[1]);
	free(relay);
}
