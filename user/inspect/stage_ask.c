/* SPDX-License-Identifier: MIT */
/* What a rule asks about waits for a person, before anything of it has left. */
#include "inspect/exchange.h"
#include "inspect/stage.h"
#include "inspect/tunnel.h"

static enum stage_result on_start(struct exchange *ex)
{
	struct hold_terms terms;

	if (ex->ask.state == ASK_NOBODY)
		return STAGE_NEXT;
	terms = ask_terms(&ex->ask, ex->capture);
	if (exchange_hold(ex, &terms) != STAGE_HELD)
		return STAGE_OVER;
	if (ex->head.has_body) /* a person, or a decider, may be shown how it begins */
		stage_wants(ex, &stage_ask, WAY_REQUEST, WANT_LOOK);
	return ask_begin(&ex->ask, &ex->hold) ? STAGE_HELD : STAGE_OVER;
}

static enum stage_result on_request_body(struct exchange *ex, struct piece *piece)
{
	return !hold_is_on(&ex->hold) || ask_see(&ex->ask, &ex->hold, piece) ? STAGE_NEXT : STAGE_OVER;
}

static enum stage_result on_connect(struct tunnel *tunnel)
{
	struct ask *ask = tunnel_ask(tunnel);
	struct hold_terms terms;

	if (ask->state == ASK_NOBODY)
		return STAGE_NEXT;
	terms = ask_terms(ask, false);
	if (tunnel_hold(tunnel, &terms) != STAGE_HELD)
		return STAGE_OVER;
	return ask_begin(ask, hold_find(tunnel_client(tunnel)->worker, tunnel_hold_number(tunnel))) ? STAGE_HELD
												    : STAGE_OVER;
}

const struct stage stage_ask = {
	.name = "ask",
	.role = STAGE_ANSWERS,
	.start = on_start,
	.connect = on_connect,
	.request_body = on_request_body,
};
