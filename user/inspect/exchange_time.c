/* SPDX-License-Identifier: MIT */
/* How long an exchange waits for bytes: as its rule says (timeouts), or as everybody does. */
#include <stdio.h>

#include "inspect/exchange.h"
#include "inspect/judge.h"
#include "vocab/limits.h"

/* A reader that is slow takes none of them for long from the one that sends, but takes them. */
static bool exchange_moves(struct exchange *ex)
{
	size_t waiting = leg_waiting(&ex->at_client.turn) + upstream_waiting(ex), last = ex->waiting;

	ex->waiting = waiting;
	return waiting > 0 && waiting != last;
}

void exchange_timed_out(struct exchange *ex, const char *name, uint32_t ms)
{
	struct verdict verdict;
	char words[64];

	snprintf(words, sizeof(words), "nothing for %g s (%s)", ms / 1000.0, name);
	verdict = judge_request(ex->client, &ex->host, ex->port, NULL, &ex->head, &ex->ask); /* to name the rule */
	exchange_stop(ex, NP_R_TIMED_OUT, &verdict, words);
}

void exchange_tick(struct exchange *ex, uint64_t now_ns)
{
	const bool first = ex->request == REQUEST_SENT && ex->response == RESPONSE_AWAITED && ex->timeouts.first_byte;
	uint32_t ms = first ? ex->timeouts.first_byte : ex->timeouts.idle;

	if (!ms)
		ms = NP_STALL_MS;
	if (hold_is_on(&ex->hold) || ex->at_origin.awaits || ex->at_origin.dial || ex->at_origin.handshake ||
	    now_ns <= ex->active_ns + ms * 1000000ull)
		return; /* what leads to an answer, or to a connection, has bounds of its own */
	if (exchange_moves(ex))
		ex->active_ns = now_ns;
	else
		exchange_timed_out(ex, first ? "first_byte" : "idle", ms);
}
