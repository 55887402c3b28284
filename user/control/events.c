/* SPDX-License-Identifier: MIT */
/* /v1/events */
#include <errno.h>

#include "base/sql.h"
#include "vocab/words.h"
#include "control/args.h"
#include "control/reply.h"
#include "control/url_text.h"
#include "vocab/limits.h"

#define LIMIT_DEFAULT 100

struct events_query {
	struct session_name session;
	bool has_session;
	const char *reason;
	uint64_t after, limit;
	bool follow;
	bool forward; /* a page behind `after`, and not the newest events */
};

static int query_read(const struct request *rq, struct events_query *ret, struct failure *ret_failure)
{
	const char *session = rq->query[0], *after = rq->query[2], *limit = rq->query[3], *since = rq->query[5];
	uint64_t since_us = 0, before = 0;
	struct events_query q = { .reason = rq->query[1] };

	if (session) {
		int r = name_read(session, &q.session, ret_failure);

		if (r < 0)
			return r;
		q.has_session = true;
	}
	if (q.reason && reason_parse(q.reason) < 0)
		return failure_put(ret_failure, -EINVAL, NP_R_BAD_REQUEST, "there is no reason \"%.64s\"", q.reason);
	if (after && url_number(after, INT64_MAX, &q.after) < 0)
		return failure_put(ret_failure, -EINVAL, NP_R_BAD_REQUEST, "after must be the seq of an event");
	if (since && !time_parse(since, &since_us))
		return failure_put(ret_failure, -EINVAL, NP_R_BAD_REQUEST,
				   "since must be a time, such as 2026-01-01T00:00:00Z");
	if (since && event_log_before(rq->config->events, since_us, &before) < 0)
		return failure_put(ret_failure, -EIO, NP_R_FAILED, "the history could not be read");
	if (before > q.after)
		q.after = before;
	after = after ? after : since; /* either names a place from which on events are wanted */
	if (url_flag(rq->query[4], &q.follow) < 0)
		return failure_put(ret_failure, -EINVAL, NP_R_BAD_REQUEST, "follow must be 0 or 1");
	if (limit && url_number(limit, NP_EVENTS_PAGE, &q.limit) < 0)
		return failure_put(ret_failure, -EINVAL, NP_R_BAD_REQUEST, "limit must be a number of at most %d",
				   NP_EVENTS_PAGE);
	/* A follower who names the last event it saw wants to miss none; else it wants what is new. */
	if (!limit)
		q.limit = !q.follow ? LIMIT_DEFAULT : after ? NP_EVENTS_PAGE : 0;
	/* What a follower gets of the past joins what comes: the newest. */
	q.forward = after && !q.follow;
	*ret = q;
	return 0;
}

static int events_follow(struct request *rq, const struct events_query *q, struct buf *history, struct answer *ret,
			 struct failure *ret_failure)
{
	const struct follow_options options = {
		.session = q->has_session ? q->session.text : NULL,
		.reason = q->reason,
		.peer = rq->peer,
	};

	return follow_answer(rq, &options, history, ret, ret_failure);
}

int events_get(struct request *rq, struct answer *ret, struct failure *ret_failure)
{
	_buf_ struct buf out = BUF_INIT(NP_ANSWER_BYTES);
	struct events_query q = { 0 };
	int r = query_read(rq, &q, ret_failure);

	if (r < 0)
		return r;
	if (q.limit > 0) {
		r = (q.forward ? event_log_page : event_log_query)(rq->config->events,
								   q.has_session ? q.session.text : NULL, q.reason,
								   q.after, (unsigned)q.limit, &out);
		if (buf_error(&out) == -E2BIG)
			return failure_put(ret_failure, -E2BIG, NP_R_TOO_MANY,
					   "these events do not fit into one answer; ask with a smaller limit");
		if (r < 0 || buf_error(&out))
			return failure_put(ret_failure, -EIO, NP_R_FAILED, "the history could not be read: %s",
					   sql_strerror(r < 0 ? r : buf_error(&out)));
	}
	if (q.follow && !rq->head)
		return events_follow(rq, &q, &out, ret, ret_failure);
	return answer_text(ret, "application/x-ndjson", &out, ret_failure);
}
