/* SPDX-License-Identifier: MIT */
/* The life of an exchange, and its end. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "vocab/words.h"
#include "inspect/capture.h"
#include "inspect/exchange.h"
#include "inspect/judge.h"
#include "inspect/origin_dial.h"
#include "inspect/refuse.h"
#include "inspect/stage.h"
#include "vocab/limits.h"

/* -- the report ------------------------------------------------------------------- */

void exchange_discard(struct exchange *ex)
{
	uint64_t unsent = upstream_waiting(ex);

	if (unsent > ex->report.sent)
		unsent = ex->report.sent;
	ex->report.sent -= unsent;
	ledger_add(&ex->client->sandbox->counts->sent, -unsent);
}

void exchange_note_dial(struct exchange *ex, const struct origin_dial_result *result)
{
	report_us(&ex->report.dns_us, result->dns_us);
	report_us(&ex->report.connect_us, result->connect_us);
	exchange_note_proxy(ex, result->proxy);
}

void exchange_note_proxy(struct exchange *ex, const char *url)
{
	ex->proxy = url;
}

void exchange_note_tls(struct exchange *ex, uint64_t us)
{
	report_us(&ex->report.tls_us, us);
}

void exchange_note(struct exchange *ex, const char *words)
{
	snprintf(ex->report.text, sizeof(ex->report.text), "%s", words);
}

void exchange_report(struct worker *worker, const struct link_request *report, const struct exchange_texts *of)
{
	const struct head *head = of->head;
	struct report_texts texts = {
		.method = head->method,
		.url = { of->tls ? "https://" : "http://", head->authority, head->target },
		.proxy = of->proxy,
		.capture = of->capture,
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
	hold_end(&ex->hold);
	stages_forget(ex);
	fields_delete(&ex->trailers);
	if (ex->outgoing)
		head_free(ex->outgoing);
	free(ex->outgoing);
	free(ex);
}

void exchange_over(struct exchange *ex)
{
	stages_over(ex);
	client_done(ex);
	exchange_free(ex);
}

void exchange_stop(struct exchange *ex, enum np_reason reason, const struct verdict *verdict, const char *words)
{
	if (ex->response < RESPONSE_GOES) {
		exchange_refuse(ex, reason, verdict, words);
		return;
	}
	ex->report.reason = reason; /* the client has the status and will miss the rest */
	if (words)
		exchange_note(ex, words);
	exchange_break(ex);
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
	r = refusal_make(ex->client, reason, &ex->head, &ex->host, verdict, ex->ask.question, detail, &head, &body);
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
	ex->report.http = (uint8_t)leg_version(turn->leg);
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
	ex->request = end ? REQUEST_WHOLE : REQUEST_COMES;
	report_begin(&ex->report, client->worker, client->sandbox);
	ex->report.pid = client->flow.pid;
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
	ex->request = REQUEST_WHOLE;
	/* It is refused for where it wants to go, not for where the proxy would be. */
	if (authority_parse(ex->head.authority, strlen(ex->head.authority), true, &to) == 0) {
		ex->host = to.host;
		ex->port = to.port;
	}
	report_begin(&ex->report, client->worker, client->sandbox);
	ex->report.pid = client->flow.pid;
	ex->report.port = ex->port;
	if (ex->host.is_addr)
		addr_format(&ex->host.addr, ex->report.address);
	report_rule(&ex->report, client->worker, verdict->rule, verdict->pattern);
	exchange_refuse(ex, verdict->reason, verdict, NULL);
}

void exchange_upstream_failed(struct exchange *ex, enum np_reason reason, const char *words)
{
	const enum np_reason by = ex->client->worker->rejudging;

	/* One on the same connection was cut: if it would be next, that is what ended it. */
	if (by && stages_rejudge(ex, by) != STAGE_NEXT)
		return;
	if (reason == NP_R_ENDED_BY_RAISE || reason == NP_R_ENDED_BY_REMOVAL || reason == NP_R_ENDED_BY_STOP) {
		report_end(&ex->report, ex->client->worker, ex->client->sandbox, reason, NULL);
		exchange_break(ex);
		return;
	}
	exchange_stop(ex, ex->response >= RESPONSE_GOES ? NP_R_RESPONSE_BROKEN : reason, NULL, words);
}

/* -- what others do to it -------------------------------------------------------------- */

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
	struct verdict verdict = route_refusal(client, &ex->host, ex->port, route, &ex->head, &ex->ask);

	report_verdict(&ex->report, client->worker, client->sandbox, &verdict);
	if (route)
		addr_format(&route->addr, ex->report.address);
	exchange_refuse(ex, NP_R_ADDRESS_REFUSED, &verdict, words);
}
