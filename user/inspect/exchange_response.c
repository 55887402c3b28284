/* SPDX-License-Identifier: MIT */
/* A response on its way to the client: its body as fast as it is taken. */
#include "base/table.h"
#include "http/websocket.h"
#include "inspect/exchange.h"
#include "inspect/tunnel.h"
#include "vocab/limits.h"

/* After a 101 both connections carry a websocket. */
static void exchange_switch(struct exchange *ex, struct head *head)
{
	const char *problem;
	bool deflate = false;

	if (!ex->head.upgrade || !leg_may_switch(&ex->at_client.turn)) {
		exchange_upstream_failed(ex, NP_R_ORIGIN_UNREACHABLE, "it switched protocols without being asked");
		return;
	}
	problem = websocket_response_check(&ex->head, head, &deflate);
	if (problem) {
		exchange_upstream_failed(ex, NP_R_WEBSOCKET_BROKEN, problem);
		return;
	}
	ex->report.status = 101;
	ex->response = RESPONSE_GOES;
	if (leg_head(&ex->at_client.turn, head, true) < 0) {
		exchange_break(ex);
		return;
	}
	tunnel_switch(ex, deflate);
}

/* The origin is not needed any more; the client may still have to get some. */
static void exchange_finish(struct exchange *ex)
{
	ex->origin_done = true;
	if (ex->request == REQUEST_SENT)
		upstream_done(ex);
	else
		upstream_cancel(ex); /* it answered before it had heard all: the rest is of no interest */
	if (ex->response == RESPONSE_GONE)
		exchange_over(ex);
}

static void on_response(struct turn *turn, struct head *head, bool end)
{
	struct exchange *ex = container_of(turn, struct exchange, at_origin.turn);

	if (ex->response == RESPONSE_AWAITED)
		ex->response = RESPONSE_BEGUN;
	buf_free(&ex->again);
	ex->active_ns = ex->client->worker->now_ns;
	if (stages_response(ex, head) != STAGE_NEXT)
		return;
	if (head->status == 101) {
		exchange_switch(ex, head);
		return;
	}
	if (head->status < 200) {
		if (++ex->interims > NP_INTERIM_MAX)
			exchange_upstream_failed(ex, NP_R_ORIGIN_UNREACHABLE, "it does not come to the point");
		else if (leg_head(&ex->at_client.turn, head, false) < 0)
			exchange_break(ex);
		return;
	}
	ex->head_ns = loop_now_ns();
	ex->report.status = head->status;
	ex->response = end || !head->has_body ? RESPONSE_GONE : RESPONSE_GOES;
	if (ex->bodies[WAY_RESPONSE].resized)
		head->has_length = false, head->length = BODY_UNKNOWN;
	if (leg_head(&ex->at_client.turn, head, ex->response == RESPONSE_GONE) < 0) {
		exchange_break(ex);
		return;
	}
	if (end)
		exchange_finish(ex);
}

static enum stage_result response_pass(struct exchange *ex, const struct piece *piece)
{
	int r = piece->len ? leg_body(&ex->at_client.turn, piece->data, piece->len) : 0;

	if (r == 0 && piece->end)
		r = leg_end(&ex->at_client.turn, piece->trailers);
	if (r < 0) {
		exchange_break(ex);
		return STAGE_OVER;
	}
	if (piece->end)
		ex->response = RESPONSE_GONE;
	return STAGE_NEXT;
}

/* -- either way ------------------------------------------------------------------------ */

enum stage_result exchange_pass(struct exchange *ex, enum stage_way way, const struct piece *piece)
{
	return way == WAY_REQUEST ? exchange_request_pass(ex, piece) : response_pass(ex, piece);
}

bool exchange_has_room(const struct exchange *ex, enum stage_way way)
{
	if (way == WAY_REQUEST && !ex->at_origin.upstream)
		return ex->pending.len < NP_BACKLOG_HIGH;
	return leg_backlog(way == WAY_REQUEST ? &ex->at_origin.turn : &ex->at_client.turn) <= memory_mark(ex->client);
}

bool exchange_give_back(struct exchange *ex, enum stage_way way, size_t len)
{
	if ((way == WAY_REQUEST && !ex->at_origin.upstream) || ex->owed[way] || !exchange_has_room(ex, way) ||
	    stages_body_due(ex, way)) {
		ex->owed[way] += len;
		return false;
	}
	leg_consume(way == WAY_REQUEST ? &ex->at_client.turn : &ex->at_origin.turn, len);
	return true;
}

bool exchange_drained(struct exchange *ex, enum stage_way way)
{
	size_t owed = ex->owed[way];

	if (stages_body_more(ex, way) != STAGE_NEXT)
		return false;
	if (stages_body_due(ex, way))
		return true;
	ex->owed[way] = 0;
	if (owed)
		leg_consume(way == WAY_REQUEST ? &ex->at_client.turn : &ex->at_origin.turn, owed);
	if (way == WAY_REQUEST || !ex->origin_done || ex->response != RESPONSE_GONE)
		return true;
	exchange_over(ex);
	return false;
}

/* -- what the origin says --------------------------------------------------------------- */

static void on_response_body(struct turn *turn, const char *data, size_t len)
{
	struct exchange *ex = container_of(turn, struct exchange, at_origin.turn);

	ex->report.received += len;
	ledger_add(&ex->client->sandbox->counts->received, len);
	ex->active_ns = ex->client->worker->now_ns;
	if (stages_body(ex, WAY_RESPONSE, &(struct piece){ .data = data, .len = len }) != STAGE_NEXT)
		return;
	memory_count_client(ex->client);
	if (exchange_give_back(ex, WAY_RESPONSE, len) || !memory_is_over(ex->client))
		return;
	ex->report.reason = NP_R_TOO_MUCH_UNREAD;
	exchange_break(ex);
}

static void on_response_end(struct turn *turn, const struct fields *trailers)
{
	struct exchange *ex = container_of(turn, struct exchange, at_origin.turn);

	if (ex->response == RESPONSE_GONE ||
	    stages_body(ex, WAY_RESPONSE, &(struct piece){ .end = true, .trailers = trailers }) == STAGE_NEXT)
		exchange_finish(ex);
}

static void on_upstream_drained(struct turn *turn)
{
	exchange_drained(container_of(turn, struct exchange, at_origin.turn), WAY_REQUEST);
}

const struct turn_events exchange_origin_events = {
	.head = on_response, .body = on_response_body, .end = on_response_end, .drained = on_upstream_drained
};
