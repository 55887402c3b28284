/* SPDX-License-Identifier: MIT */
/* How long an exchange waits for bytes: as its rule says (timeouts), or as everybody does. */
#include <stdio.h>

#include "inspect/exchange.h"
#include "vocab/limits.h"

/* Bytes that wait to be taken. Of HTTP/2 those of its streams alone: others' bytes move whether or not its own do. */
static size_t exchange_waiting(const struct exchange *ex)
{
	size_t near = client_backlog(ex);

	if (!ex->stream && ex->client->channel)
		near = channel_unsent(ex->client->channel) + ex->client->out.len;
	return near + upstream_waiting(ex);
}

/* A reader that is slow takes none of them for long from the one that sends, but takes them. */
static bool exchange_moves(struct exchange *ex)
{
	size_t waiting = exchange_waiting(ex), last = ex->waiting;

	ex->waiting = waiting;
	return waiting > 0 && waiting != last;
}

void exchange_timed_out(struct exchange *ex, const char *name, uint32_t ms)
{
	struct verdict verdict;
	char words[64];

	snprintf(words, sizeof(words), "nothing for %g s (%s)", ms / 1000.0, name);
	if (ex->responded) {
		ex->report.reason = NP_R_TIMED_OUT;
		snprintf(ex->report.text, sizeof(ex->report.text), "%s", words);
		exchange_break(ex);
		return;
	}
	verdict = client_judge(ex->client, &ex->host, ex->port, NULL, &ex->head); /* to name the rule */
	exchange_refuse(ex, NP_R_TIMED_OUT, &verdict, words);
}

void exchange_tick(struct exchange *ex, uint64_t now_ns)
{
	const bool first = ex->request_sent && !ex->has_answered && ex->timeouts.first_byte;
	uint32_t ms = first ? ex->timeouts.first_byte : ex->timeouts.idle;

	if (!ms)
		ms = NP_STALL_MS;
	if (ex->dial || ex->handshake || now_ns <= ex->active_ns + ms * 1000000ull)
		return; /* what leads to a connection has bounds of its own */
	if (exchange_moves(ex))
		ex->active_ns = now_ns;
	else
		exchange_timed_out(ex, first ? "first_byte" : "idle", ms);
}
