/* SPDX-License-Identifier: MIT */
/* /v1/sessions/USER/SESSION/notices */
#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/sql.h"
#include "control/body.h"
#include "control/json_objects.h"
#include "control/reply.h"
#include "control/url_text.h"
#include "session/notice_file.h"
#include "vocab/limits.h"

struct notices_query {
	const char *reader;
	uint32_t after;
	bool follow;
};

static int reader_read(const char *reader, struct failure *ret_failure)
{
	const char *problem;

	if (reader_name_check(reader, &problem) < 0)
		return failure_put(ret_failure, -EINVAL, NP_R_BAD_NAME, "%s", problem);
	return 0;
}

/* Where it starts: after the number that is named, else where the reader is, else at the first. */
static int query_read(const struct request *rq, struct notices_query *q, struct failure *ret_failure)
{
	struct service *service = rq->config->service;
	struct session_row row;
	uint64_t after = 0;
	int r = service_session_show(service, rq->session.text, &row, ret_failure);

	q->reader = rq->query[0];
	if (r == 0 && q->reader)
		r = reader_read(q->reader, ret_failure);
	if (r < 0)
		return r;
	if (rq->query[1] && url_number(rq->query[1], UINT32_MAX, &after) < 0)
		return failure_put(ret_failure, -EINVAL, NP_R_BAD_REQUEST, "after must be the number of a notice");
	if (url_flag(rq->query[2], &q->follow) < 0)
		return failure_put(ret_failure, -EINVAL, NP_R_BAD_REQUEST, "follow must be 0 or 1");
	q->after = (uint32_t)after;
	if (q->reader && !rq->query[1])
		r = store_reader_get(service_store(service), rq->session.text, q->reader, &q->after);
	return r < 0 ? failure_put(ret_failure, r, NP_R_FAILED, "the reader's place could not be read") : 0;
}

struct taking {
	const char *session;
	uint32_t *after;
	struct buf *out;
};

static int notice_take(void *data, const struct notice_row *row)
{
	const struct taking *taking = data;

	notice_to_json(taking->session, row, taking->out);
	if (buf_error(taking->out))
		return buf_error(taking->out);
	*taking->after = row->number;
	return 0;
}

struct notices_state {
	struct session_name session;
	uint32_t after;
};

static int notices_more(const struct server_config *config, void *state, struct buf *out)
{
	struct notices_state *notices = state;

	return store_notices_each(service_store(config->service), notices->session.text, notices->after, notice_take,
				  &(struct taking){ notices->session.text, &notices->after, out });
}

static const struct follow_subject notices_subject = {
	.matches = { "\"kind\":\"change\"" },
	.more = notices_more,
	.free = free,
};

static int notices_follow(struct request *rq, const struct notices_query *q, struct answer *ret,
			  struct failure *ret_failure)
{
	_free_ struct notices_state *state = calloc(1, sizeof(*state));
	_buf_ struct buf first = BUF_INIT(NP_FEED_BYTES);
	const struct follow_options options = {
		.session = rq->session.text,
		.subject = &notices_subject,
		.state = state,
		.peer = rq->peer,
	};
	int r;

	if (!state)
		return failure_put(ret_failure, -ENOMEM, NP_R_FAILED, "out of memory");
	*state = (struct notices_state){ rq->session, q->after };
	r = notices_more(rq->config, state, &first);
	if (r < 0)
		return failure_put(ret_failure, r, NP_R_FAILED, "the notices could not be read: %s", sql_strerror(r));
	r = follow_answer(rq, &options, &first, ret, ret_failure);
	if (r == 0)
		take_ptr(state); /* the follower's */
	return r;
}

struct listing {
	json_t *array;
	const char *session;
};

static int notice_add(void *data, const struct notice_row *row)
{
	const struct listing *listing = data;
	_buf_ struct buf line = BUF_INIT(NP_NOTICE_LINE);

	notice_to_json(listing->session, row, &line);
	return buf_error(&line) ? buf_error(&line)
				: array_add(listing->array, json_loadb(line.data, line.len, 0, NULL));
}

int notices_get(struct request *rq, struct answer *ret, struct failure *ret_failure)
{
	struct service *service = rq->config->service;
	const char *session = rq->session.text;
	_json_ json_t *array = json_array();
	struct notices_query q = { 0 };
	char path[FS_PATH_SIZE];
	int r = query_read(rq, &q, ret_failure);

	if (r < 0)
		return r;
	if (q.follow && !rq->head)
		return notices_follow(rq, &q, ret, ret_failure);
	r = store_notices_each(service_store(service), session, q.after, notice_add,
			       &(struct listing){ array, session });
	if (r < 0)
		return failure_put(ret_failure, r, NP_R_FAILED, "the notices could not be read: %s", sql_strerror(r));
	r = service_notices_path(service, session, path);
	return answer_json(ret, 200,
			   json_pack("{s:o,s:s*,s:I,s:o,s:O}", "session", json_text(session), "reader", q.reader,
				     "after", (json_int_t)q.after, "file", r < 0 ? json_null() : json_text(path),
				     "notices", array),
			   ret_failure);
}

/* A reader moves on when it says so, not when it was answered: an answer may be lost on its way. */
int notices_ack(struct request *rq, struct answer *ret, struct failure *ret_failure)
{
	const char *reader = NULL;
	uint64_t upto = 0;
	const struct body_field fields[] = {
		{ "reader", true, .ret_text = &reader },
		{ "upto", true, .ret_number = &upto },
	};
	struct store *store = service_store(rq->config->service);
	const char *session = rq->session.text;
	_json_ json_t *body = NULL;
	uint32_t stands = 0;
	int r = body_read(rq->body, rq->body_len, fields, ARRAY_SIZE(fields), &body, ret_failure);

	if (r == 0)
		r = reader_read(reader, ret_failure);
	if (r < 0)
		return r;
	r = upto > UINT32_MAX ? -ERANGE : store_reader_put(store, session, reader, (uint32_t)upto);
	if (r == -ENOENT)
		return failure_put(ret_failure, r, NP_R_NO_SUCH_SESSION, "%s", session);
	if (r == -ERANGE)
		return failure_put(ret_failure, r, NP_R_BAD_FIELD, "%s has no notice %llu yet", session,
				   (unsigned long long)upto);
	if (r == -E2BIG)
		return failure_put(ret_failure, r, NP_R_TOO_MANY, "%s has %d readers of notices already", session,
				   NP_NOTICE_READERS);
	if (r == 0)
		r = store_reader_get(store, session, reader, &stands);
	if (r < 0)
		return failure_put(ret_failure, r, NP_R_NOT_RECORDED, "the place of %s in %s", reader, session);
	return answer_json(
		ret, 200,
		json_pack("{s:o,s:s,s:I}", "session", json_text(session), "reader", reader, "upto", (json_int_t)stands),
		ret_failure);
}
