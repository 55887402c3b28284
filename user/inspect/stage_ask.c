/* SPDX-License-Identifier: MIT */
/* What a rule asks about waits for a person, before anything of it has left. */
#include "inspect/exchange.h"
#include "inspect/stage.h"
#include "inspect/tunnel.h"

static enum stage_result on_start(struct exchange *ex)
{
	struct hold_terms terms;

	if (!ex->ask.wanted)
		return STAGE_NEXT;
	terms = ask_terms(&ex->ask);
	if (exchange_hold(ex, &terms) != STAGE_HELD)
		return STAGE_OVER;
	return ask_send(&ex->ask, &ex->hold) ? STAGE_HELD : STAGE_OVER;
}

static enum stage_result on_connect(struct tunnel *tunnel)
{
	struct ask *ask = tunnel_ask(tunnel);
	struct hold_terms terms;

	if (!ask->wanted)
		return STAGE_NEXT;
	terms = ask_terms(ask);
	if (tunnel_hold(tunnel, &terms) != STAGE_HELD)
		return STAGE_OVER;
	return ask_send(ask, hold_find(tunnel_client(tunnel)->worker, tunnel_hold_number(tunnel))) ? STAGE_HELD
												   : STAGE_OVER;
}

const struct stage stage_ask = { .name = "ask", .role = STAGE_ANSWERS, .start = on_start, .connect = on_connect };
