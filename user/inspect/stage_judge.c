/* SPDX-License-Identifier: MIT */
/* The verdict on a request, and on how long its body may be. */
#include <string.h>

#include "http/websocket.h"
#include "inspect/capture.h"
#include "inspect/exchange.h"
#include "inspect/judge.h"
#include "inspect/stage.h"

/* What the rule says about the rest of it. */
static void judge_apply(struct exchange *ex, const struct verdict *verdict)
{
	ex->max_body = verdict->max_body;
	ex->timeouts = verdict->timeouts;
	ex->credential = verdict->rule ? verdict->rule->credential : NULL;
	if (ex->max_body != UINT64_MAX)
		stage_wants(ex, &stage_judge, WAY_REQUEST, WANT_LOOK);
}

static enum stage_result on_start(struct exchange *ex)
{
	struct client *client = ex->client;
	struct verdict verdict;
	const char *problem;

	if (ex->head.upgrade && !strcmp(ex->head.upgrade, "h2c"))
		ex->head.upgrade = NULL; /* an offer that a server may pass over, and every client can do without */
	verdict = judge_request(client, &ex->host, ex->port, NULL, &ex->head, NULL);
	report_verdict(&ex->report, client->worker, client->sandbox, &verdict);
	if (!judge_goes_on(&verdict)) {
		exchange_refuse(ex, verdict.reason, &verdict, NULL);
		return STAGE_OVER;
	}
	problem = ex->head.upgrade ? websocket_request_check(&ex->head) : NULL;
	if (problem) {
		exchange_refuse(ex, NP_R_BAD_WEBSOCKET, &verdict, problem);
		return STAGE_OVER;
	}
	judge_apply(ex, &verdict);
	if (judge_asks(&verdict))
		ask_want(&ex->ask, client, &ex->host, ex->port, &ex->head, &ex->pending, &ex->request, ex->tls);
	ex->capture = capture_new(verdict.capture);
	return STAGE_NEXT;
}

static enum stage_result on_request_body(struct exchange *ex, struct piece *piece)
{
	(void)piece;
	if (ex->body <= ex->max_body)
		return STAGE_NEXT;
	exchange_stop(ex, NP_R_BODY_TOO_LARGE, NULL, NULL);
	return STAGE_OVER;
}

/* Is it still allowed? Of one that has not gone anywhere, what is said now is what counts, and what is reported. */
static enum stage_result on_rejudge(struct exchange *ex, enum np_reason by)
{
	struct worker *worker = ex->client->worker;
	struct verdict verdict =
		judge_request(ex->client, &ex->host, ex->port, upstream_route(ex), &ex->head, &ex->ask);

	if (verdict.action == ACTION_ALLOW && ex->body <= verdict.max_body && upstream_way_stands(ex)) {
		judge_apply(ex, &verdict);
		if (hold_is_on(&ex->hold))
			report_verdict(&ex->report, worker, ex->client->sandbox, &verdict);
		return STAGE_NEXT;
	}
	/* It waits for an answer, and the rules still want one: if another, the daemon says so. It goes by that rule's bounds. */
	if (judge_asks(&verdict) && ask_waits(&ex->ask) && ex->body <= verdict.max_body) {
		judge_apply(ex, &verdict);
		capture_free(ex->capture); /* it comes behind who asks: there is nothing in it yet */
		ex->capture = capture_new(verdict.capture);
		return STAGE_NEXT;
	}
	reporter_count_cut(&worker->reporter);
	report_end(&ex->report, worker, ex->client->sandbox, by, verdict.rule);
	upstream_reset(ex);
	exchange_stop(ex, by, &verdict, NULL);
	return STAGE_OVER;
}

const struct stage stage_judge = { .name = "judge",
				   .role = STAGE_ANSWERS,
				   .start = on_start,
				   .request_body = on_request_body,
				   .rejudge = on_rejudge };
