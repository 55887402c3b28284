/* SPDX-License-Identifier: MIT */
/* The verdict on a request, and on how long its body may be. */
#include <string.h>

#include "http/websocket.h"
#include "inspect/capture.h"
#include "inspect/exchange.h"
#include "inspect/judge.h"
#include "inspect/stage.h"

static enum stage_result on_start(struct exchange *ex)
{
	struct client *client = ex->client;
	struct verdict verdict;
	const char *problem;

	if (ex->head.upgrade && !strcmp(ex->head.upgrade, "h2c"))
		ex->head.upgrade = NULL; /* an offer that a server may pass over, and every client can do without */
	verdict = judge_request(client, &ex->host, ex->port, NULL, &ex->head);
	report_verdict(&ex->report, client->worker, client->sandbox, &verdict);
	if (verdict.action != ACTION_ALLOW) {
		exchange_refuse(ex, verdict.reason, &verdict, NULL);
		return STAGE_OVER;
	}
	problem = ex->head.upgrade ? websocket_request_check(&ex->head) : NULL;
	if (problem) {
		exchange_refuse(ex, NP_R_BAD_WEBSOCKET, &verdict, problem);
		return STAGE_OVER;
	}
	ex->max_body = verdict.max_body;
	ex->timeouts = verdict.timeouts;
	ex->capture = capture_new(verdict.capture);
	return STAGE_NEXT;
}

static enum stage_result on_request_body(struct exchange *ex, const char *data, size_t len)
{
	(void)data, (void)len;
	if (ex->body <= ex->max_body)
		return STAGE_NEXT;
	if (ex->responded)
		exchange_break(ex);
	else
		exchange_refuse(ex, NP_R_BODY_TOO_LARGE, NULL, NULL);
	return STAGE_OVER;
}

const struct stage stage_judge = {
	.name = "judge", .role = STAGE_ANSWERS, .start = on_start, .request_body = on_request_body
};
