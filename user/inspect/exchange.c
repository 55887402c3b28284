/* SPDX-License-Identifier: MIT */
/* One request and its response: judged, led to an origin, and both bodies passed on as fast as the slower side takes
 * them. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "vocab/words.h"
#include "base/table.h"
#include "inspect/capture.h"
#include "inspect/exchange.h"
#include "inspect/judge.h"
#include "inspect/refuse.h"
#include "inspect/stage.h"
#include "inspect/tunnel.h"
#include "http/websocket.h"
#include "vocab/limits.h"

/* -- the report ------------------------------------------------------------------- */

void exchange_discard(struct exchange *ex)
{
	uint64_t unsent = upstream_waiting(ex);

	if (unsent > ex->report.sent)
		unsent = ex->report.sent;
	ex->report.sent -= unsent;
	ledger_add(&ex->client->sandbox->counts->bytes_out, -unsent);
}

void exchange_note_dial(struct exchange *ex, uint64_t dns_us, uint64_t connect_us)
{
	report_us(&ex->report.dns_us, dns_us);
	report_us(&ex->report.connect_us, connect_us);
}

void exchange_note_tls(struct exchange *ex, uint64_t us)
{
	report_us(&ex->report.tls_us, us);
}

void exchange_note(struct exchange *ex, const char *words)
{
	snprintf(ex->report.text, sizeof(ex->report.text), "%s", words);
}

void exchange_report(struct worker *worker, const struct link_request *report, const struct head *head, bool tls,
		     const struct capture *capture)
{
	struct report_texts texts = {
		.method = head->method,
		.url = { tls ? "https://" : "http://", head->authority, head->target },
		.capture = capture,
	};

	if (!strcmp(head->method, "CONNECT"))
		texts.url[0] = head->authority, texts.url[1] = NULL;
	report_send(worker, report, &texts);
}

/* -- the end ------------------------------------------------------------------------ */

void exchange_free(struct exchange *ex)
{
	head_free(&ex->head);
	buf_free(&ex->pending);
	buf_free(&ex->again);
	capture_free(ex->capture);
	if (ex->trailers)
		fields_free(ex->trailers);
	free(ex->trailers);
	free(ex);
}

/* Both sides have been told. */
static void exchange_over(struct exchange *ex)
{
	stages_over(ex);
	client_done(ex);
	exchange_free(ex);
}

void exchange_break(struct exchange *ex)
{
	upstream_cancel(ex);
	leg_abort(&ex->at_client.turn);
	exchange_over(ex);
}

static int answer_send(struct turn *turn, const struct head *head, const struct buf *body)
{
	int r = leg_head(turn, head, false);

	if (r == 0)
		r = leg_body(turn, body->data, body->len);
	return r ? r : leg_end(turn, NULL);
}

void exchange_refuse(struct exchange *ex, enum np_reason reason, const struct verdict *verdict, const char *detail)
{
	_buf_ struct buf body = BUF_INIT(16u << 10);
	struct head head;
	int r;

	upstream_cancel(ex);
	ex->report.reason = reason;
	if (!detail && reason == NP_R_NOT_IN_POLICY && judge_knows_host(ex->client, &ex->host))
		detail = "there are rules for this host, but for other methods, paths or the like";
	if (detail)
		exchange_note(ex, detail);
	head_init(&head);
	r = refusal_make(ex->client, reason, &ex->head, &ex->host, verdict, detail, &head, &body);
	ex->report.status = head.status;
	if (r == 0 && ex->head.method && !strcmp(ex->head.method, "HEAD"))
		r = leg_head(&ex->at_client.turn, &head, true);
	else if (r == 0)
		r = answer_send(&ex->at_client.turn, &head, &body);
	head_free(&head);
	if (r < 0)
		leg_abort(&ex->at_client.turn);
	exchange_over(ex);
}

/* -- the request -------------------------------------------------------------------- */

static struct exchange *exchange_new(struct client *client, const struct turn *turn, struct head *head)
{
	struct exchange *ex = calloc(1, sizeof(*ex));

	if (!ex)
		return NULL;
	ex->client = client;
	ex->pending = BUF_INIT(2 * NP_BACKLOG_HIGH);
	ex->again = BUF_INIT(NP_RESEND_BYTES);
	ex->max_body = UINT64_MAX;
	ex->active_ns = client->worker->now_ns;
	head_move(&ex->head, head);
	client_attach(ex, turn);
	return ex;
}

void exchange_start(struct client *client, const struct turn *turn, struct head *head, bool end)
{
	struct exchange *ex = exchange_new(client, turn, head);

	if (!ex) {
		client_turn_away(client, turn);
		return;
	}
	ex->request_done = end;
	report_begin(&ex->report, client->worker, client->sandbox);
	stages_go_on(ex);
}

void request_refuse(struct client *client, const struct turn *turn, struct head *head, const struct verdict *verdict)
{
	struct exchange *ex = exchange_new(client, turn, head);
	struct authority to;

	if (!ex) {
		client_close(client);
		return;
	}
	ex->request_done = true;
	/* It is refused for where it wants to go, not for where the proxy would be. */
	if (authority_parse(ex->head.authority, strlen(ex->head.authority), true, &to) == 0) {
		ex->host = to.host;
		ex->port = to.port;
	}
	report_begin(&ex->report, client->worker, client->sandbox);
	ex->report.port = ex->port;
	if (ex->host.is_addr)
		addr_format(&ex->host.addr, ex->report.address);
	report_rule(&ex->report, client->worker, verdict->rule);
	exchange_refuse(ex, verdict->reason, verdict, NULL);
}

void exchange_upstream_failed(struct exchange *ex, enum np_reason reason, const char *words)
{
	if (reason == NP_R_ENDED_BY_RAISE || reason == NP_R_ENDED_BY_REMOVAL || reason == NP_R_ENDED_BY_STOP) {
		report_end(&ex->report, ex->client->worker, ex->client->sandbox, reason, NULL);
		exchange_break(ex);
		return;
	}
	if (ex->responded) {
		/* The client has the status and will miss the rest. */
		ex->report.reason = NP_R_RESPONSE_BROKEN;
		exchange_note(ex, words);
		exchange_break(ex);
		return;
	}
	exchange_refuse(ex, reason, NULL, words);
}

/* -- the response --------------------------------------------------------------------- */

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
	ex->responded = true;
	if (leg_head(&ex->at_client.turn, head, true) < 0) {
		exchange_break(ex);
		return;
	}
	tunnel_switch(ex, deflate);
}

/* The origin has said all, and the client has it. */
static void exchange_finish(struct exchange *ex)
{
	if (ex->request_sent)
		upstream_done(ex);
	else
		upstream_cancel(ex); /* it answered before it had heard all: the rest is of no interest */
	exchange_over(ex);
}

static void on_response(struct turn *turn, struct head *head, bool end)
{
	struct exchange *ex = container_of(turn, struct exchange, at_origin.turn);

	ex->has_answered = true;
	buf_free(&ex->again);
	if (head->status == 101) {
		exchange_switch(ex, head);
		return;
	}
	ex->active_ns = ex->client->worker->now_ns;
	if (head->status < 200) {
		if (++ex->interims > NP_INTERIM_MAX)
			exchange_upstream_failed(ex, NP_R_ORIGIN_UNREACHABLE, "it does not come to the point");
		else if (leg_head(&ex->at_client.turn, head, false) < 0)
			exchange_break(ex);
		return;
	}
	ex->head_ns = loop_now_ns();
	if (stages_response(ex, head) != STAGE_NEXT)
		return;
	ex->responded = true;
	ex->report.status = head->status;
	ex->response_done = end || !head->has_body;
	if (leg_head(&ex->at_client.turn, head, ex->response_done) < 0) {
		exchange_break(ex);
		return;
	}
	if (end)
		exchange_finish(ex);
}

static void on_response_body(struct turn *turn, const char *data, size_t len)
{
	struct exchange *ex = container_of(turn, struct exchange, at_origin.turn);

	ex->report.received += len;
	ledger_add(&ex->client->sandbox->counts->bytes_in, len);
	ex->active_ns = ex->client->worker->now_ns;
	if (stages_response_body(ex, data, len) != STAGE_NEXT)
		return;
	if (leg_body(&ex->at_client.turn, data, len) < 0) {
		exchange_break(ex);
		return;
	}
	memory_count_client(ex->client);
	if (leg_backlog(&ex->at_client.turn) <= memory_mark(ex->client) && !ex->owed_origin) {
		leg_consume(&ex->at_origin.turn, len);
		return;
	}
	ex->owed_origin += len;
	if (!memory_is_over(ex->client))
		return;
	ex->report.reason = NP_R_TOO_MUCH_UNREAD;
	exchange_break(ex);
}

static void on_response_end(struct turn *turn, const struct fields *trailers)
{
	struct exchange *ex = container_of(turn, struct exchange, at_origin.turn);

	if (!ex->response_done && leg_end(&ex->at_client.turn, trailers) < 0) {
		exchange_break(ex);
		return;
	}
	exchange_finish(ex);
}

static void on_upstream_drained(struct turn *turn)
{
	exchange_upstream_drained(container_of(turn, struct exchange, at_origin.turn));
}

const struct turn_events exchange_origin_events = {
	.head = on_response, .body = on_response_body, .end = on_response_end, .drained = on_upstream_drained
};

void exchange_client_drained(struct exchange *ex)
{
	size_t owed = ex->owed_origin;

	ex->owed_origin = 0;
	if (owed)
		leg_consume(&ex->at_origin.turn, owed);
}

void exchange_client_gone(struct exchange *ex)
{
	struct client *client = ex->client;
	const enum np_reason by = client_ended_by(client);

	upstream_cancel(ex);
	if (by)
		report_end(&ex->report, client->worker, client->sandbox, by, NULL);
	else
		exchange_note(ex, "the client went away");
	exchange_over(ex);
}

void exchange_route_refused(struct exchange *ex, const struct route *route, const char *words)
{
	struct client *client = ex->client;
	struct verdict verdict = route_refusal(client, &ex->host, ex->port, route, &ex->head);

	report_verdict(&ex->report, client->worker, client->sandbox, &verdict);
	addr_format(&route->addr, ex->report.address);
	exchange_refuse(ex, NP_R_ADDRESS_REFUSED, &verdict, words);
}

void exchange_rejudge(struct exchange *ex, enum np_reason by)
{
	struct verdict verdict = judge_request(ex->client, &ex->host, ex->port, upstream_route(ex), &ex->head);

	if (verdict.action == ACTION_ALLOW && ex->body <= verdict.max_body) {
		ex->max_body = verdict.max_body;
		ex->timeouts = verdict.timeouts;
		return;
	}
	reporter_count_cut(&ex->client->worker->reporter);
	report_end(&ex->report, ex->client->worker, ex->client->sandbox, by, verdict.rule);
	upstream_reset(ex);
	if (ex->responded)
		exchange_break(ex);
	else
		exchange_refuse(ex, by, &verdict, NULL);
}
