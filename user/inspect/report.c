/* SPDX-License-Identifier: MIT */
/* What became of requests, counted and reported to the daemon by way of the ledger. The daemon is woken for many reports
 * at once: each of its wake-ups costs more than what it reads. */
#include <stdio.h>
#include <string.h>

#include "inspect/worker.h"
#include "reason.h"

#define BATCH_BYTES (16u << 10)

/* One sandbox does not push the others out of the history: beyond its rate its requests are only counted. */
static bool box_may_tell(const struct worker *worker, struct box *box)
{
	uint64_t now = worker->now_ns, add = (now - box->told_ns) * NP_REQUEST_RATE / 1000000000;

	if (add) {
		box->tokens = box->tokens + add < NP_REQUEST_BURST ? box->tokens + add : NP_REQUEST_BURST;
		box->told_ns = now;
	}
	if (!box->tokens)
		return false;
	box->tokens--;
	return true;
}

void report_decide(struct link_request *report, const struct worker *worker, const struct box *box)
{
	_Static_assert(sizeof(report->policy) == sizeof(worker->policy->hash), "a hash is a hash");
	report->cgroup_id = box->cgroup_id;
	report->rung = box->rung;
	memcpy(report->policy, worker->policy->hash, sizeof(report->policy));
}

void report_rule(struct link_request *report, struct worker *worker, const struct rule *rule)
{
	report->place[0] = '\0'; /* of an earlier verdict */
	if (!rule)
		return;
	if (worker->placed != rule)
		place_format(worker->policy, &rule->at, worker->place);
	worker->placed = rule;
	memcpy(report->place, worker->place, strlen(worker->place) + 1);
}

void report_verdict(struct link_request *report, struct worker *worker, const struct box *box,
		    const struct verdict *verdict)
{
	report_decide(report, worker, box);
	report->reason = verdict->reason;
	report_rule(report, worker, verdict->rule);
}

void report_end(struct link_request *report, struct worker *worker, const struct box *box, enum np_reason by,
		const struct rule *rule)
{
	char granted[sizeof(report->place)] = "";

	if (NP_REASON_ALLOWS(report->reason))
		memcpy(granted, report->place, sizeof(granted));
	report_decide(report, worker, box);
	report->reason = by;
	report_rule(report, worker, rule);
	snprintf(report->text, sizeof(report->text), "%s%.200s", *granted ? "allowed until then by " : "", granted);
}

void report_begin(struct link_request *report, const struct worker *worker, struct box *box)
{
	report_decide(report, worker, box);
	report->begun = 1;
	ledger_add(&box->counts->requests, 1);
}

void report_withdraw(struct link_request *report, struct box *box)
{
	if (report->begun)
		ledger_add(&box->counts->requests, -1ull);
	report->begun = 0;
}

/* It has been woken for reports that it has not taken yet, and will go on to those that were written since. */
static bool daemon_is_awake(const struct worker *worker)
{
	__atomic_thread_fence(__ATOMIC_SEQ_CST); /* the pair of the one in ledgers_drain() */
	return __atomic_load_n(&worker->ledger->read, __ATOMIC_RELAXED) < worker->announced;
}

void report_flush(struct worker *worker)
{
	if (worker->unannounced && !daemon_is_awake(worker)) {
		worker->announced = worker->ledger->written;
		link_send(worker->link, LINK_REQUESTS, NULL, 0, -1); /* a daemon that does not keep up is awake */
	}
	worker->unannounced = 0;
}

static void tail_add(struct worker *worker, struct link_request *told, enum link_tail tail, const char *const parts[])
{
	size_t len = 0;

	for (; *parts && len < LINK_TAIL_MAX - 1; parts++) {
		size_t n = strnlen(*parts, LINK_TAIL_MAX - 1 - len);

		buf_append(&worker->report, *parts, n);
		len += n;
	}
	if (!len)
		return;
	buf_append(&worker->report, "", 1);
	told->tails[tail] = (uint32_t)len + 1;
}

static int report_write(struct worker *worker, const struct link_request *request, const struct report_texts *texts)
{
	struct buf *out = &worker->report;
	struct link_request told = *request;

	told.time_ns = loop_now_ns();
	buf_clear(out);
	buf_append(out, &told, sizeof(told));
	tail_add(worker, &told, LINK_METHOD, (const char *const[]){ texts->method, NULL });
	tail_add(worker, &told, LINK_URL, texts->url);
	tail_add(worker, &told, LINK_LOOKUP, (const char *const[]){ texts->lookup, NULL });
	for (enum link_tail i = LINK_REQUEST_HEADERS; i < LINK_TAILS; i++)
		tail_add(worker, &told, i, (const char *const[]){ capture_part(texts->capture, i), NULL });
	if (buf_error(out))
		return buf_error(out);
	memcpy(out->data, &told, sizeof(told));
	return ledger_put(worker->ledger, out->data, out->len);
}

void report_tell(struct worker *worker, const struct link_request *request, const struct report_texts *texts)
{
	struct box *box = box_find(worker, request->cgroup_id);

	if (!box)
		return;
	/* Counted before it is reported: who looks between the two sees one that is open. */
	if (texts->lookup)
		ledger_add(&box->counts->query_reports, 1);
	else if (!request->begun)
		ledger_add(&box->counts->requests, 1);
	if (NP_REASON_REFUSES(request->reason))
		ledger_add(&box->counts->refused, 1);
	if (!box_may_tell(worker, box) || report_write(worker, request, texts) < 0) {
		ledger_add(&box->counts->suppressed, 1);
		return;
	}
	worker->unannounced += worker->report.len;
	/* What was refused is waited for by someone who wonders; the rest can wait for the next tick. */
	if (NP_REASON_REFUSES(request->reason) || worker->unannounced > BATCH_BYTES)
		report_flush(worker);
}
