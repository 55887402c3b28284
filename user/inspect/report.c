/* SPDX-License-Identifier: MIT */
/* What became of requests, counted and reported to the daemon by way of the ledger. The daemon is woken for many reports
 * at once: each of its wake-ups costs more than what it reads. */
#include <stdio.h>
#include <string.h>

#include "inspect/worker.h"
#include "reason.h"
#include "vocab/limits.h"

#define BATCH_BYTES (16u << 10)

/* One sandbox does not push the others out of the history: beyond its rate its requests are only counted. */
static bool sandbox_may_report(const struct worker *worker, struct sandbox *sandbox)
{
	uint64_t now = worker->now_ns, add = (now - sandbox->reported_ns) * NP_REQUEST_RATE / 1000000000;

	if (add) {
		sandbox->tokens = sandbox->tokens + add < NP_REQUEST_BURST ? sandbox->tokens + add : NP_REQUEST_BURST;
		sandbox->reported_ns = now;
	}
	if (!sandbox->tokens)
		return false;
	sandbox->tokens--;
	return true;
}

void report_decide(struct link_request *report, const struct worker *worker, const struct sandbox *sandbox)
{
	_Static_assert(sizeof(report->policy) == sizeof(worker->policy->hash), "a hash is a hash");
	report->cgroup_id = sandbox->cgroup_id;
	report->rung = sandbox->rung;
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

void report_verdict(struct link_request *report, struct worker *worker, const struct sandbox *sandbox,
		    const struct verdict *verdict)
{
	report_decide(report, worker, sandbox);
	report->reason = verdict->reason;
	report_rule(report, worker, verdict->rule);
}

void report_end(struct link_request *report, struct worker *worker, const struct sandbox *sandbox, enum np_reason by,
		const struct rule *rule)
{
	char granted[sizeof(report->place)] = "";

	if (NP_REASON_ALLOWS(report->reason))
		memcpy(granted, report->place, sizeof(granted));
	report_decide(report, worker, sandbox);
	report->reason = by;
	report_rule(report, worker, rule);
	snprintf(report->text, sizeof(report->text), "%s%.200s", *granted ? "allowed until then by " : "", granted);
}

void report_begin(struct link_request *report, const struct worker *worker, struct sandbox *sandbox)
{
	report_decide(report, worker, sandbox);
	report->begun = 1;
	ledger_add(&sandbox->counts->requests, 1);
}

void report_withdraw(struct link_request *report, struct sandbox *sandbox)
{
	if (report->begun)
		ledger_add(&sandbox->counts->requests, -1ull);
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

static void tail_add(struct worker *worker, struct link_request *message, enum link_tail tail,
		     const char *const parts[])
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
	message->tails[tail] = (uint32_t)len + 1;
}

static int report_write(struct worker *worker, const struct link_request *request, const struct report_texts *texts)
{
	struct buf *out = &worker->report;
	struct link_request message = *request;

	message.time_ns = loop_now_ns();
	buf_clear(out);
	buf_append(out, &message, sizeof(message));
	tail_add(worker, &message, LINK_METHOD, (const char *const[]){ texts->method, NULL });
	tail_add(worker, &message, LINK_URL, texts->url);
	tail_add(worker, &message, LINK_QUERY, (const char *const[]){ texts->query, NULL });
	for (enum link_tail i = LINK_REQUEST_HEADERS; i < LINK_TAILS; i++)
		tail_add(worker, &message, i, (const char *const[]){ capture_part(texts->capture, i), NULL });
	if (buf_error(out))
		return buf_error(out);
	memcpy(out->data, &message, sizeof(message));
	return ledger_put(worker->ledger, out->data, out->len);
}

void report_send(struct worker *worker, const struct link_request *request, const struct report_texts *texts)
{
	struct sandbox *sandbox = sandbox_find(worker, request->cgroup_id);

	if (!sandbox)
		return;
	/* Counted before it is reported: who looks between the two sees one that is open. */
	if (texts->query)
		ledger_add(&sandbox->counts->query_reports, 1);
	else if (!request->begun)
		ledger_add(&sandbox->counts->requests, 1);
	if (NP_REASON_REFUSES(request->reason))
		ledger_add(&sandbox->counts->refused, 1);
	if (!sandbox_may_report(worker, sandbox) || report_write(worker, request, texts) < 0) {
		ledger_add(&sandbox->counts->suppressed, 1);
		return;
	}
	worker->unannounced += worker->report.len;
	/* What was refused is waited for by someone who wonders; the rest can wait for the next tick. */
	if (NP_REASON_REFUSES(request->reason) || worker->unannounced > BATCH_BYTES)
		report_flush(worker);
}
