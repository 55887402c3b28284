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
	ledger_add(&ex->client->sandbox->counts->sent, len);
}

/* What was sent, for as long as it may have to be sent again. */
static void body_keep(struct exchange *ex, const char *data, size_t len)
{
	if (!ex->keeps || ex->response != RESPONSE_AWAITED)
		return;
	buf_append(&ex->again, data, len);
	if (buf_error(&ex->again)) {
		buf_free(&ex->again);
		ex->keeps = false;
	}
}

/* Until there is an origin to have them, or in case there is another. They came in one piece within the same bounds. */
static void trailers_keep(struct exchange *ex, const struct fields *trailers)
{
	if (trailers && trailers->n && ex->response == RESPONSE_AWAITED)
		fields_clone(&ex->trailers, trailers);
}

static enum stage_result body_put_off(struct exchange *ex, const struct piece *piece)
{
	buf_append(&ex->pending, piece->data, piece->len); /* bounded by what the client may send without credit */
	if (!buf_error(&ex->pending))
		return STAGE_NEXT;
	exchange_refuse(ex, NP_R_BODY_TOO_LARGE, NULL, "it did not wait");
	return STAGE_OVER;
}

static int body_forward(struct exchange *ex, const struct piece *piece)
{
	int r = 0;

	if (piece->len) {
		body_keep(ex, piece->data, piece->len);
		r = leg_body(&ex->at_origin.turn, piece->data, piece->len);
		if (r == 0)
			sent_add(ex, piece->len);
	}
	if (r < 0 || !piece->end)
		return r;
	ex->request = REQUEST_SENT;
	return leg_end(&ex->at_origin.turn, piece->trailers);
}

enum stage_result exchange_request_pass(struct exchange *ex, const struct piece *piece)
{
	if (ex->origin_done)
		return STAGE_NEXT;
	if (piece->end) {
		ex->request = REQUEST_WHOLE;
		trailers_keep(ex, piece->trailers);
	}
	if (!ex->at_origin.upstream)
		return body_put_off(ex, piece);
	if (body_forward(ex, piece) == 0)
		return STAGE_NEXT;
	exchange_upstream_failed(ex, NP_R_ORIGIN_UNREACHABLE, "the connection broke");
	return STAGE_OVER;
}

/* What waits with an exchange that is held is in nobody's way, as long as there is enough of memory. */
static void body_hold(struct exchange *ex, size_t len)
{
	memory_keep(ex->client, len);
	if (memory_is_over(ex->client))
		exchange_refuse(ex, NP_R_TOO_MUCH_UNREAD, NULL, "it did not wait for an answer");
	else if (memory_mark(ex->client) == NP_BACKLOG_HIGH)
		leg_shelve(&ex->at_client.turn, len);
}

static void on_request_body(struct turn *turn, const char *data, size_t len)
{
	struct exchange *ex = container_of(turn, struct exchange, at_client.turn);

	ex->body += len;
	ex->active_ns = ex->client->worker->now_ns;
	if (ex->origin_done) { /* it has answered, and wants no more of it */
		leg_consume(turn, len);
		return;
	}
	if (stages_body(ex, WAY_REQUEST, &(struct piece){ .data = data, .len = len }) != STAGE_NEXT)
		return;
	if (exchange_give_back(ex, WAY_REQUEST, len))
		return;
	if (hold_is_on(&ex->hold))
		body_hold(ex, len);
	else if (ex->at_origin.upstream && memory_is_over(ex->client))
		exchange_upstream_failed(ex, NP_R_TOO_MUCH_UNREAD, "its origin does not read");
}

size_t exchange_kept(const struct exchange *ex)
{
	return ex->pending.len + ex->again.len + stages_body_withheld(ex);
}

static void on_request_end(struct turn *turn, const struct fields *trailers)
{
	struct exchange *ex = container_of(turn, struct exchange, at_client.turn);
	const struct piece piece = { .end = true, .trailers = trailers };

	ex->active_ns = ex->client->worker->now_ns;
	if (ex->head.has_body)
		stages_body(ex, WAY_REQUEST, &piece);
	else
		exchange_request_pass(ex, &piece);
}

static void on_client_drained(struct turn *turn)
{
	exchange_drained(container_of(turn, struct exchange, at_client.turn), WAY_RESPONSE);
}

const struct turn_events exchange_client_events = { .body = on_request_body,
						    .end = on_request_end,
						    .drained = on_client_drained };

struct head *exchange_outgoing(struct exchange *ex)
{
	if (ex->outgoing || !ex->canonical)
		return ex->outgoing;
	ex->outgoing = malloc(sizeof(*ex->outgoing));
	if (ex->outgoing && head_copy(ex->outgoing, &ex->head) < 0) {
		free(ex->outgoing);
		ex->outgoing = NULL;
	}
	return ex->outgoing;
}

/* The head that goes: its body may have come to have another length. */
static struct head request_head(const struct exchange *ex)
{
	struct head head = ex->outgoing ? *ex->outgoing : ex->head; /* lent */

	if (ex->bodies[WAY_REQUEST].resized && head.has_body) {
		head.has_length = ex->request == REQUEST_WHOLE &&
				  !ex->trailers; /* HTTP/1.1 has none of them behind a known length */
		head.length = head.has_length ? ex->pending.len : BODY_UNKNOWN;
	}
	return head;
}

void exchange_upstream_ready(struct exchange *ex)
{
	const struct head head = request_head(ex);
	const bool whole = ex->request == REQUEST_WHOLE, end = whole && !ex->pending.len && !ex->trailers;
	_buf_ struct buf body = ex->pending;
	int r;

	ex->pending = BUF_INIT(body.max);
	ex->keeps = upstream_may_decline(ex);
	ex->sent_ns = ex->active_ns = loop_now_ns();
	r = leg_head(&ex->at_origin.turn, &head, end);
	if (r == 0 && !end)
		r = body_forward(
			ex,
			&(struct piece){ .data = body.data, .len = body.len, .end = whole, .trailers = ex->trailers });
	if (whole)
		ex->request = REQUEST_SENT;
	if (r < 0)
		exchange_upstream_failed(ex, NP_R_ORIGIN_UNREACHABLE, "the request could not be sent");
	else if (leg_backlog(&ex->at_origin.turn) <= NP_BACKLOG_HIGH)
		exchange_drained(ex, WAY_REQUEST);
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
	if (ex->response != RESPONSE_AWAITED || ex->head.upgrade || ex->tries == NP_RETRIES || (ex->body && !ex->keeps))
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
	if (ex->request == REQUEST_SENT)
		ex->request = REQUEST_WHOLE;
	/* Nothing was pending: it went before what is now sent again. */
	buf_free(&ex->pending);
	ex->pending = ex->again;
	ex->pending.max = 2 * NP_BACKLOG_HIGH;
	ex->again = BUF_INIT(NP_RESEND_BYTES);
	upstream_get(ex, false);
}
