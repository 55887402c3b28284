/* SPDX-License-Identifier: MIT */
/* What became of requests, told to the daemon: many at once, for each of its wake-ups costs more than what it hears. */
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
	report->generation = box->generation;
	report->mode = (uint8_t)box->mode;
	report->level = (uint8_t)box->level;
	report->reads_only = box->reads_only;
	memcpy(report->policy, worker->policy->hash, sizeof(report->policy));
}

/* None is forgotten: the next one of its sandbox says how many there were. */
static void reports_lost(struct worker *worker)
{
	const char *data = worker->reports.data, *tails[LINK_TAILS];
	size_t len = worker->reports.len;
	struct link_request lost;

	for (ssize_t n; len && (n = link_request_next(data, len, &lost, tails)) > 0; data += n, len -= (size_t)n) {
		struct box *box = box_find(worker, lost.cgroup_id);

		if (box)
			box->suppressed += 1 + lost.suppressed;
	}
	buf_clear(&worker->reports);
}

void report_flush(struct worker *worker)
{
	struct buf *out = &worker->reports;

	if (out->len && link_send(worker->link, LINK_REQUESTS, out->data, out->len, -1) < 0)
		reports_lost(worker);
	buf_clear(out);
}

static void tail_add(struct worker *worker, struct link_request *told, enum link_tail tail, const char *const parts[])
{
	size_t len = 0;

	for (; *parts && len < LINK_TAIL_MAX - 1; parts++) {
		size_t n = strnlen(*parts, LINK_TAIL_MAX - 1 - len);

		buf_append(&worker->reports, *parts, n);
		len += n;
	}
	if (!len)
		return;
	buf_append(&worker->reports, "", 1);
	told->tails[tail] = (uint32_t)len + 1;
}

void report_tell(struct worker *worker, const struct link_request *request, const struct report_texts *texts)
{
	struct box *box = box_find(worker, request->cgroup_id);
	struct buf *out = &worker->reports;
	struct link_request told;
	size_t at = out->len;

	if (!box)
		return;
	if (!box_may_tell(worker, box)) {
		box->suppressed++;
		return;
	}
	told = *request;
	told.suppressed = box->suppressed;
	box->suppressed = 0;
	buf_append(out, &told, sizeof(told));
	tail_add(worker, &told, LINK_METHOD, (const char *const[]){ texts->method, NULL });
	tail_add(worker, &told, LINK_URL, texts->url);
	tail_add(worker, &told, LINK_LOOKUP, (const char *const[]){ texts->lookup, NULL });
	for (enum link_tail i = LINK_REQUEST_HEADERS; i < LINK_TAILS; i++)
		tail_add(worker, &told, i, (const char *const[]){ capture_part(texts->capture, i), NULL });
	if (buf_error(out)) {
		reports_lost(worker);
		return;
	}
	memcpy(out->data + at, &told, sizeof(told));
	/* What was refused is waited for by someone who wonders; the rest can wait for the next tick. */
	if (!NP_REASON_ALLOWS(told.reason) || out->len > BATCH_BYTES)
		report_flush(worker);
}
