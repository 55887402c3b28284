/* SPDX-License-Identifier: MIT */
/* A request on its way to an origin: its body as fast as it is taken, and once more where that is safe. */
#include <stdlib.h>
#include <string.h>

#include "base/table.h"
#include "inspect/exchange.h"
#include "inspect/stage.h"
#include "vocab/limits.h"

/* Bytes of its body that were given to the origin's connection. */
static void sent_add(struct exchange *ex, size_t len)
{
	ex->report.sent += len;
	ledger_add(&ex->client->sandbox->counts->bytes_out, len);
}

/* What was sent, for as long as it may have to be sent again. */
static void body_keep(struct exchange *ex, const char *data, size_t len)
{
	if (!ex->keeps || ex->has_answered)
		return;
	buf_append(&ex->again, data, len);
	if (buf_error(&ex->again)) {
		buf_free(&ex->again);
		ex->keeps = false;
	}
}

static void body_forward(struct exchange *ex, const char *data, size_t len)
{
	body_keep(ex, data, len);
	if (leg_body(&ex->at_origin.turn, data, len) < 0) {
		exchange_upstream_failed(ex, NP_R_ORIGIN_UNREACHABLE, "the connection broke");
		return;
	}
	sent_add(ex, len);
	if (leg_backlog(&ex->at_origin.turn) <= memory_mark(ex->client) && !ex->owed_client)
		leg_consume(&ex->at_client.turn, len);
	else
		ex->owed_client += len;
	if (ex->owed_client && memory_is_over(ex->client))
		exchange_upstream_failed(ex, NP_R_TOO_MUCH_UNREAD, "its origin does not read");
}

static void on_request_body(struct turn *turn, const char *data, size_t len)
{
	struct exchange *ex = container_of(turn, struct exchange, at_client.turn);

	ex->body += len;
	ex->active_ns = ex->client->worker->now_ns;
	if (stages_request_body(ex, data, len) != STAGE_NEXT)
		return;
	if (ex->at_origin.upstream) {
		body_forward(ex, data, len);
		return;
	}
	buf_append(&ex->pending, data, len); /* bounded by what the client may send without credit */
	ex->owed_client += len;
	if (buf_error(&ex->pending))
		exchange_refuse(ex, NP_R_BODY_TOO_LARGE, NULL, "it did not wait");
}

size_t exchange_kept(const struct exchange *ex)
{
	return ex->pending.len + ex->again.len;
}

/* Until there is an origin to have them, or in case there is another. */
static void trailers_keep(struct exchange *ex, const struct fields *trailers)
{
	if (!trailers || !trailers->n)
		return;
	ex->trailers = calloc(1, sizeof(*ex->trailers));
	if (!ex->trailers)
		return;
	fields_init(ex->trailers);
	fields_copy(ex->trailers, trailers); /* they came in one piece within the same bounds */
}

static void on_request_end(struct turn *turn, const struct fields *trailers)
{
	struct exchange *ex = container_of(turn, struct exchange, at_client.turn);

	ex->request_done = true;
	ex->active_ns = ex->client->worker->now_ns;
	if (!ex->has_answered)
		trailers_keep(ex, trailers);
	if (!ex->at_origin.upstream)
		return;
	ex->request_sent = true;
	if (leg_end(&ex->at_origin.turn, trailers) < 0)
		exchange_upstream_failed(ex, NP_R_ORIGIN_UNREACHABLE, "the connection broke");
}

static void on_client_drained(struct turn *turn)
{
	exchange_client_drained(container_of(turn, struct exchange, at_client.turn));
}

const struct turn_events exchange_client_events = { .body = on_request_body,
						    .end = on_request_end,
						    .drained = on_client_drained };

void exchange_upstream_ready(struct exchange *ex)
{
	bool end = ex->request_done && !ex->pending.len && !ex->trailers;
	int r;

	ex->keeps = upstream_may_decline(ex);
	ex->sent_ns = ex->active_ns = loop_now_ns();
	r = leg_head(&ex->at_origin.turn, &ex->head, end);
	if (r == 0 && ex->pending.len) {
		body_keep(ex, ex->pending.data, ex->pending.len);
		r = leg_body(&ex->at_origin.turn, ex->pending.data, ex->pending.len);
		if (r == 0)
			sent_add(ex, ex->pending.len);
		buf_free(&ex->pending);
		if (r == 0 && leg_backlog(&ex->at_origin.turn) <= NP_BACKLOG_HIGH) {
			leg_consume(&ex->at_client.turn, ex->owed_client);
			ex->owed_client = 0;
		}
	}
	if (r == 0 && ex->request_done && !end)
		r = leg_end(&ex->at_origin.turn, ex->trailers);
	ex->request_sent = ex->request_done;
	if (r < 0)
		exchange_upstream_failed(ex, NP_R_ORIGIN_UNREACHABLE, "the request could not be sent");
}

void exchange_upstream_drained(struct exchange *ex)
{
	size_t owed = ex->owed_client;

	ex->owed_client = 0;
	if (owed)
		leg_consume(&ex->at_client.turn, owed);
}

/* -- once more ------------------------------------------------------------------------ */

/* RFC 9110, 9.2.2: to do it twice is to do it once. */
static bool method_is_idempotent(const char *method)
{
	static const char *const words[] = { "GET", "HEAD", "OPTIONS", "QUERY", "PUT", "DELETE", "TRACE" };

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (!strcmp(method, words[i]))
			return true;
	return false;
}

/* May what was lost be done again? The origin has said that it did nothing, or closed a kept connection before it said
 * anything: then only what can be done twice, or what never came to be acknowledged, byte for byte. */
static bool may_go_again(const struct exchange *ex, enum lost lost)
{
	if (ex->has_answered || ex->head.upgrade || ex->tries == NP_RETRIES || (ex->body && !ex->keeps))
		return false;
	if (lost == LOST_UNANSWERED)
		return method_is_idempotent(ex->head.method);
	return lost != LOST_UNKNOWN;
}

void exchange_lost(struct exchange *ex, enum lost lost, enum np_reason reason, const char *words)
{
	if (!may_go_again(ex, lost)) {
		exchange_upstream_failed(ex, reason, words);
		return;
	}
	ex->tries++;
	ex->h1_only |= lost == LOST_WANTS_H1;
	ex->request_sent = false;
	/* Nothing was pending: it went before what is now sent again. */
	buf_free(&ex->pending);
	ex->pending = ex->again;
	ex->pending.max = 2 * NP_BACKLOG_HIGH;
	ex->again = BUF_INIT(NP_RESEND_BYTES);
	upstream_get(ex, false);
}
