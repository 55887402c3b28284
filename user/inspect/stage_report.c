/* SPDX-License-Identifier: MIT */
/* The event of an exchange, when it is over. */
#include "inspect/exchange.h"
#include "inspect/stage.h"

static uint64_t us_between(uint64_t from_ns, uint64_t to_ns)
{
	return from_ns && to_ns > from_ns ? (to_ns - from_ns) / 1000 : 0;
}

static void on_over(struct exchange *ex)
{
	uint64_t now = loop_now_ns();

	report_us(&ex->report.wait_us, us_between(ex->sent_ns, ex->head_ns ? ex->head_ns : now));
	report_us(&ex->report.receive_us, us_between(ex->head_ns, now));
	ex->report.question = ex->ask.question;
	exchange_report(ex->client->worker, &ex->report,
			&(struct exchange_texts){
				.head = &ex->head, .tls = ex->tls, .proxy = ex->proxy, .capture = ex->capture });
}

const struct stage stage_report = { .name = "report", .role = STAGE_OBSERVES, .over = on_over };
