/* SPDX-License-Identifier: MIT */
/* What became of requests, counted and reported to the daemon by way of the ledger. The daemon is woken for many reports
 * at once: each of its wake-ups costs more than what it reads. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "inspect/capture.h"
#include "inspect/sandboxes.h"
#include "reason.h"
#include "vocab/limits.h"

#define BATCH_BYTES \
	(NP_LEDGER_RING / 8) /* it looks by itself every 50 ms; this is for those who are faster than that */

/* One sandbox does not push the others out of the history: beyond its rate its requests are only counted. */
static bool rate_take(struct report_rate *rate, uint64_t now_ns)
{
	uint64_t add = (now_ns - rate->reported_ns) * NP_REQUEST_RATE / 1000000000;

	if (add) {
		rate->tokens = rate->tokens + add < NP_REQUEST_BURST ? rate->tokens + add : NP_REQUEST_BURST;
		rate->reported_ns = now_ns;
	}
	if (!rate->tokens)
		return false;
	rate->tokens--;
	return true;
}

void report_rate_init(struct report_rate *rate)
{
	*rate = (struct report_rate){ .reported_ns = loop_now_ns(), .tokens = NP_REQUEST_BURST };
}

/* -- the reporter ------------------------------------------------------------------- */

int reporter_init(struct reporter *reporter)
{
	struct ledger *ledger = mmap(NULL, sizeof(*ledger), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	reporter->report = BUF_INIT(LINK_BYTES_MAX);
	if (ledger == MAP_FAILED)
		return -errno;
	reporter->ledger = ledger;
	return 0;
}

void reporter_close(struct reporter *reporter)
{
	buf_free(&reporter->report);
	if (reporter->ledger)
		munmap(reporter->ledger, sizeof(*reporter->ledger));
	reporter->ledger = NULL;
}

int reporter_map(struct reporter *reporter, int fd)
{
	struct ledger *ledger;
	int r = ledger_map(fd, &ledger);

	if (r < 0)
		return r;
	munmap(reporter->ledger, sizeof(*reporter->ledger));
	reporter->ledger = ledger;
	return 0;
}

void reporter_forget_rules(struct reporter *reporter)
{
	reporter->placed = NULL;
}

void reporter_count_cut(struct reporter *reporter)
{
	ledger_add(&reporter->ledger->cut, 1);
}

struct ledger_slot *reporter_slot(struct reporter *reporter, uint32_t slot)
{
	return slot - 1 < NP_SANDBOXES_MAX ? &reporter->ledger->slots[slot - 1] : &reporter->uncounted;
}

/* -- one report --------------------------------------------------------------------- */

void report_decide(struct link_request *report, const struct worker *worker, const struct sandbox *sandbox)
{
	_Static_assert(sizeof(report->policy) == sizeof(worker->policy->hash), "a hash is a hash");
	report->cgroup_id = sandbox->cgroup_id;
	report->rung = sandbox->rung;
	memcpy(report->policy, worker->policy->hash, sizeof(report->policy));
}

void report_rule(struct link_request *report, struct worker *worker, const struct rule *rule,
		 const struct pattern *pattern)
{
	const char *list = pattern && pattern->list ? pattern->list : "";

	report->place[0] = '\0'; /* of an earlier verdict */
	memcpy(report->list, list, strlen(list) + 1);
	report->quiet = denied_quietly(rule, pattern);
	if (!rule)
		return;
	if (worker->reporter.placed != rule)
		place_format(worker->policy, &rule->at, worker->reporter.place);
	worker->reporter.placed = rule;
	memcpy(report->place, worker->reporter.place, strlen(worker->reporter.place) + 1);
}

void report_verdict(struct link_request *report, struct worker *worker, const struct sandbox *sandbox,
		    const struct verdict *verdict)
{
	report_decide(report, worker, sandbox);
	report->reason = verdict->reason;
	report_rule(report, worker, verdict->rule, verdict->pattern);
}

void report_end(struct link_request *report, struct worker *worker, const struct sandbox *sandbox, enum np_reason by,
		const struct rule *rule)
{
	char granted[sizeof(report->place)] = "";

	if (NP_REASON_ALLOWS(report->reason))
		memcpy(granted, report->place, sizeof(granted));
	report_decide(report, worker, sandbox);
	report->reason = by;
	report_rule(report, worker, rule, NULL);
	snprintf(report->text, sizeof(report->text), "%s%.200s", *granted ? "allowed until then by " : "", granted);
}

void report_us(uint32_t *to, uint64_t us)
{
	*to = us < UINT32_MAX ? (uint32_t)us : UINT32_MAX;
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
	return __atomic_load_n(&worker->reporter.ledger->read, __ATOMIC_RELAXED) < worker->reporter.announced;
}

void report_flush(struct worker *worker)
{
	if (worker->reporter.unannounced && !daemon_is_awake(worker)) {
		worker->reporter.announced = worker->reporter.ledger->written;
		link_send(worker->link, LINK_REQUESTS, NULL, 0, -1); /* a daemon that does not keep up is awake */
	}
	worker->reporter.unannounced = 0;
}

static void tail_add(struct worker *worker, struct link_request *message, enum link_tail tail,
		     const char *const parts[])
{
	size_t len = 0;

	for (; *parts && len < LINK_TAIL_MAX - 1; parts++) {
		size_t n = strnlen(*parts, LINK_TAIL_MAX - 1 - len);

		buf_append(&worker->reporter.report, *parts, n);
		len += n;
	}
	if (!len)
		return;
	buf_append(&worker->reporter.report, "", 1);
	message->tails[tail] = (uint32_t)len + 1;
}

static int report_write(struct worker *worker, const struct link_request *request, const struct report_texts *texts)
{
	struct buf *out = &worker->reporter.report;
	struct link_request message = *request;

	message.time_ns = loop_now_ns();
	buf_clear(out);
	buf_append(out, &message, sizeof(message));
	tail_add(worker, &message, LINK_METHOD, (const char *const[]){ texts->method, NULL });
	tail_add(worker, &message, LINK_URL, texts->url);
	tail_add(worker, &message, LINK_QUERY, (const char *const[]){ texts->query, NULL });
	tail_add(worker, &message, LINK_PROXY, (const char *const[]){ texts->proxy, NULL });
	for (enum link_tail i = LINK_REQUEST_HEADERS; i < LINK_TAILS; i++)
		tail_add(worker, &message, i, (const char *const[]){ capture_part(texts->capture, i), NULL });
	if (buf_error(out))
		return buf_error(out);
	memcpy(out->data, &message, sizeof(message));
	return ledger_put(worker->reporter.ledger, out->data, out->len);
}

void report_send(struct worker *worker, const struct link_request *request, const struct report_texts *texts)
{
	struct sandbox *sandbox = sandbox_find(worker, request->cgroup_id);

	if (!sandbox)
		return;
	/* Counted before it is reported: a reader between the two sees a request that is still open. */
	if (texts->query)
		ledger_add(&sandbox->counts->query_reports, 1);
	else if (!request->begun)
		ledger_add(&sandbox->counts->requests, 1);
	if (NP_REASON_REFUSES(request->reason))
		ledger_add(&sandbox->counts->refused, 1);
	if (!rate_take(&sandbox->rate, worker->now_ns) || report_write(worker, request, texts) < 0) {
		ledger_add(&sandbox->counts->suppressed, 1);
		return;
	}
	worker->reporter.unannounced += worker->reporter.report.len;
	/* What was refused is waited for by someone who wonders; the rest can wait for the next tick. */
	if (NP_REASON_REFUSES(request->reason) || worker->reporter.unannounced > BATCH_BYTES)
		report_flush(worker);
}
