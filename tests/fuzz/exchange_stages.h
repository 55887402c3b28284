/* SPDX-License-Identifier: MIT */
/*
 * The pipeline with two stages more: one that holds what comes, until somebody answers or nobody does, and one that passes
 * bodies on as they are, by all the ways that a stage has to do it. What they do follows from the input.
 */
#pragma once

#include "exchange_world.h"
#include "inspect/exchange.h"
#include "inspect/tunnel.h"

static uint32_t odd; /* the next choice */

static uint32_t choose(uint32_t of)
{
	odd = odd * 1664525 + 1013904223;
	return (odd >> 16) % of;
}

static struct hold_terms hold_terms(void)
{
	return (struct hold_terms){ .ms = 3000, .late = NP_R_NEEDS_APPROVAL, .body = choose(2) * 4096 };
}

static enum stage_result hold_start(struct exchange *ex)
{
	const struct hold_terms terms = hold_terms();

	return flags & FLAG_HOLD && choose(2) ? exchange_hold(ex, &terms) : STAGE_NEXT;
}

static enum stage_result hold_connect(struct tunnel *tunnel)
{
	const struct hold_terms terms = hold_terms();

	return flags & FLAG_HOLD && choose(2) ? tunnel_hold(tunnel, &terms) : STAGE_NEXT;
}

/* Somebody answers. */
static void hold_answer(bool resume)
{
	struct hold *hold = TAILQ_FIRST(&worker->holds.list);

	if (!hold)
		return;
	if (resume)
		hold_resume(hold);
	else
		hold_refuse(hold, NP_R_NEEDS_APPROVAL, "no");
	worker_flush(worker);
}

static const struct stage stage_hold = {
	.name = "hold", .role = STAGE_ANSWERS, .start = hold_start, .connect = hold_connect
};

static enum stage_result body_any(struct exchange *ex, struct piece *piece)
{
	(void)ex;
	switch (choose(5)) {
	case 0: /* the last bytes once more */
		piece->used -= piece->len < 4 ? piece->len : 4;
		return STAGE_NEXT;
	case 1: /* a half now, and a half later */
		piece->used = piece->len - piece->len / 2;
		buf_append(piece->out, piece->data, piece->used);
		return piece->used < piece->len ? STAGE_MORE : STAGE_REPLACED;
	case 2:
		buf_append(piece->out, piece->data, piece->len);
		return STAGE_REPLACED;
	default:
		return STAGE_NEXT;
	}
}

static const struct stage stage_body;

static enum stage_result body_start(struct exchange *ex)
{
	for (enum stage_way way = 0; flags & FLAG_FILTER && way < WAYS; way++)
		stage_wants(ex, &stage_body, way, choose(2) ? WANT_REPLACE : WANT_SAME);
	return STAGE_NEXT;
}

static const struct stage stage_body = {
	.name = "body", .role = STAGE_MODIFIES, .start = body_start, .request_body = body_any, .response_body = body_any
};

const struct stage *const stages[] = {
	&stage_place, &stage_judge,    &stage_hold,   &stage_capture, &stage_canonical,
	&stage_body,  &stage_upstream, &stage_report, NULL,
};
