/* SPDX-License-Identifier: MIT */
/* An exchange that waits for an answer from outside. Nothing of it has gone to an origin, nor is a name looked up for it. */
#include "base/table.h"
#include "inspect/exchange.h"
#include "inspect/judge.h"
#include "inspect/stage.h"

static void on_resume(struct hold *hold)
{
	struct exchange *ex = container_of(hold, struct exchange, hold);
	struct verdict verdict = judge_request(ex->client, &ex->host, ex->port, NULL, &ex->head, &ex->ask);

	/* The rules may have changed meanwhile: the verdict of now decides, and is the one that is reported. */
	report_verdict(&ex->report, ex->client->worker, ex->client->sandbox, &verdict);
	if (verdict.action != ACTION_ALLOW) {
		exchange_refuse(ex, verdict.reason, &verdict, NULL);
		return;
	}
	ex->active_ns = ex->client->worker->now_ns;
	leg_consume(&ex->at_client.turn, 0); /* its body may be read again */
	stages_go_on(ex);
}

static void on_refuse(struct hold *hold, enum np_reason reason, const char *words)
{
	struct exchange *ex = container_of(hold, struct exchange, hold);
	struct verdict verdict =
		judge_request(ex->client, &ex->host, ex->port, NULL, &ex->head, NULL); /* to name the rule */

	exchange_refuse(ex, reason, &verdict, words);
}

/* A client with "Expect: 100-continue" sends no body before it gets a 100, and there is no origin yet that would send one. */
static int continue_send(struct exchange *ex)
{
	struct head head;
	int r;

	if (!ex->head.expects_continue)
		return 0;
	ex->head.expects_continue = false;
	head_init(&head);
	head.status = 100;
	r = leg_head(&ex->at_client.turn, &head, false);
	head_free(&head);
	return r;
}

static void on_read(struct hold *hold)
{
	struct exchange *ex = container_of(hold, struct exchange, hold);

	if (continue_send(ex) == 0)
		leg_consume(&ex->at_client.turn, 0); /* its body may be read again */
	else
		exchange_break(ex);
}

static const struct hold_events hold_events = { .resume = on_resume, .refuse = on_refuse, .read = on_read };

enum stage_result exchange_hold(struct exchange *ex, const struct hold_terms *terms)
{
	if (hold_begin(&ex->hold, ex->client->worker, ex->client->sandbox, terms, &hold_events) < 0) {
		exchange_refuse(ex, NP_R_TOO_MANY_REQUESTS, NULL, "too many of them wait for an answer");
		return STAGE_OVER;
	}
	if (!terms->body || continue_send(ex) == 0)
		return STAGE_HELD;
	exchange_break(ex);
	return STAGE_OVER;
}
