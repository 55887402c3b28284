/* SPDX-License-Identifier: MIT */
/* /v1/sessions */
#include <errno.h>

#include "base/cleanup.h"
#include "base/sql.h"
#include "control/body.h"
#include "control/access.h"
#include "control/args.h"
#include "control/json_objects.h"
#include "control/reply.h"
#include "control/url_text.h"
#include "vocab/limits.h"
#include "vocab/words.h"

int sessions_create(struct request *rq, struct answer *ret, struct failure *ret_failure)
{
	const char *session = "", *level_text = NULL;
	bool temporary = false;
	const struct body_field fields[] = {
		{ "session", true, .ret_text = &session },
		{ "level", false, .ret_text = &level_text },
		{ "temporary", false, .ret_flag = &temporary },
	};
	enum level level = LEVEL_PUBLIC;
	struct session_row before, row;
	struct session_name name;
	struct failure ignored;
	_json_ json_t *body = NULL;
	char who[RUN_WHO_SIZE];
	bool existed;
	int r = body_read(rq->body, rq->body_len, fields, ARRAY_SIZE(fields), &body, ret_failure);

	if (r == 0)
		r = name_read(session, &name, ret_failure);
	if (r == 0 && level_text)
		r = level_read(level_text, &level, ret_failure);
	if (r < 0)
		return r;
	existed = service_session_show(rq->config->service, name.text, &before, &ignored) == 0 && !before.ended;
	r = service_session_create(rq->config->service, name.text, level, temporary, request_for(rq, who), &row,
				   ret_failure);
	return r < 0 ? r
		     : answer_json(ret, existed ? 200 : 201, session_object(&row, json_integer(row.datasets)),
				   ret_failure);
}

/* A page of the list: one more than is shown tells that there is more. */
struct session_page {
	const struct request *rq;
	json_t *array;
	size_t limit, others;
	struct session_name last; /* that is shown */
	struct session_name seen; /* perhaps another's: never told */
};

/* -E2BIG: here the page ends, and there is more, or may be. */
static int session_add(void *data, const struct session_row *row)
{
	struct session_page *page = data;

	page->seen = row->name;
	if (!access_sees(page->rq, ROLE_READER, row->name.text))
		return ++page->others < NP_LIST_OTHERS ? 0 : -E2BIG;
	if (json_array_size(page->array) >= page->limit)
		return -E2BIG;
	page->last = row->name;
	return array_add(page->array, session_object(row, json_integer(row->datasets)));
}

int sessions_list(struct request *rq, struct answer *ret, struct failure *ret_failure)
{
	const char *after = rq->query[1], *limit_text = rq->query[2];
	_json_ json_t *array = json_array();
	struct session_page page = { .rq = rq, .array = array };
	struct session_name name = { 0 };
	uint64_t limit = NP_LIST_MAX;
	bool with_ended;
	int r;

	if (url_flag(rq->query[0], &with_ended) < 0)
		return failure_put(ret_failure, -EINVAL, NP_R_BAD_REQUEST, "ended must be 0 or 1");
	r = after ? name_read(after, &name, ret_failure) : 0;
	if (r < 0)
		return r;
	if (limit_text && (url_number(limit_text, NP_LIST_MAX, &limit) < 0 || !limit))
		return failure_put(ret_failure, -EINVAL, NP_R_BAD_REQUEST, "limit must be a number from 1 to %d",
				   NP_LIST_MAX);
	page.limit = limit;
	if (rq->place.text[0])
		name = rq->place;
	r = store_sessions_page(service_store(rq->config->service), name.text, with_ended,
				(unsigned)limit + NP_LIST_OTHERS, session_add, &page);
	if (r < 0 && r != -E2BIG)
		return failure_put(ret_failure, r, NP_R_FAILED, "the sessions could not be read: %s", sql_strerror(r));
	if (r == -E2BIG && !json_array_size(array)) { /* from where it is, which is nothing to tell the caller */
		rq->place = page.seen;
		ret->goes_on = true;
		return 0;
	}
	return answer_json(ret, 200,
			   json_pack("{s:O,s:o*,s:o*}", "sessions", array, "truncated", r < 0 ? json_true() : NULL,
				     "next", r < 0 ? json_text(page.last.text) : NULL),
			   ret_failure);
}

static int dataset_add(void *data, const struct dataset_row *row)
{
	return array_add(data, dataset_object(row));
}

int session_get(struct request *rq, struct answer *ret, struct failure *ret_failure)
{
	_json_ json_t *datasets = json_array(), *object = NULL;
	struct service *service = rq->config->service;
	const char *session = rq->session.text;
	struct session_row row;
	char workspace[FS_PATH_SIZE];
	bool cut_short;
	int r = service_session_show(service, session, &row, ret_failure);

	if (r < 0)
		return r;
	r = store_datasets_each(service_store(service), session, dataset_add, datasets);
	if (r < 0 && r != -E2BIG)
		return failure_put(ret_failure, r, NP_R_FAILED, "the datasets could not be read: %s", sql_strerror(r));
	object = session_object(&row, json_incref(datasets));
	/* A failure to add makes the object incomplete, so it is none. */
	if (json_object_set_new(object, "sandboxes", sandboxes_array(service, session, &cut_short)) < 0 ||
	    json_object_set_new(object, "forwards", forwards_array(service, session)) < 0 ||
	    json_object_set_new(object, "workspace",
				workspaces_find(rq->config->workspaces, &rq->session, workspace) == 0
					? json_text(workspace)
					: json_null()) < 0)
		return failure_put(ret_failure, -ENOMEM, NP_R_FAILED, "out of memory");
	return answer_json(ret, 200, take_ptr(object), ret_failure);
}

int session_end(struct request *rq, struct answer *ret, struct failure *ret_failure)
{
	int r = service_session_end(rq->config->service, rq->session.text, rq->peer.who, ret_failure);

	return r < 0 ? r
		     : answer_json(ret, 200, json_pack("{s:s,s:b}", "session", rq->session.text, "ended", 1),
				   ret_failure);
}

/* What is left of it stays plain: the answer says what is remembered. */
int session_forget(struct request *rq, struct answer *ret, struct failure *ret_failure)
{
	bool level_too = false;
	const struct body_field fields[] = { { "level_too", false, .ret_flag = &level_too } };
	const char *session = rq->session.text;
	_json_ json_t *body = NULL;
	struct forgotten done = { 0 };
	json_t *level;
	int r = 0;

	if (rq->body_len)
		r = body_read(rq->body, rq->body_len, fields, ARRAY_SIZE(fields), &body, ret_failure);
	if (r == 0)
		r = service_session_forget(rq->config->service, session, level_too, rq->peer.who, &done, ret_failure);
	if (r < 0)
		return r;
	level = done.remembered ? json_pack("{s:s,s:s}", "level", level_name(done.level.level), "mode",
					    mode_name(done.level.mode))
				: json_null();
	return answer_json(ret, 200,
			   json_pack("{s:s,s:b,s:o}", "session", session, "forgotten", 1, "remembered", level),
			   ret_failure);
}

/* The escalation. */
int session_escalate(struct request *rq, struct answer *ret, struct failure *ret_failure)
{
	const char *level_text = NULL, *dataset = NULL, *reason = NULL;
	bool create = false;
	const struct body_field fields[] = {
		{ "level", true, .ret_text = &level_text },
		{ "dataset", false, .ret_text = &dataset },
		{ "reason", false, .ret_text = &reason },
		{ "create", false, .ret_flag = &create },
	};
	struct escalation escalation;
	_json_ json_t *body = NULL;
	enum level level = LEVEL_SECRET;
	bool existing;
	int r = body_read(rq->body, rq->body_len, fields, ARRAY_SIZE(fields), &body, ret_failure);

	if (r == 0)
		r = level_read(level_text, &level, ret_failure);
	if (r < 0)
		return r;
	existing = json_object_get(body, "create") &&
		   !create; /* a platform that does not say makes it, as it always did */
	r = service_escalate(rq->config->service, rq->session.text, level, dataset, reason, existing, rq->peer.who,
			     &escalation, ret_failure);
	return r < 0 ? r : answer_json(ret, 200, escalation_object(&escalation), ret_failure);
}

/* What a client in the sandbox has to trust, for TLS through the inspector. */
int session_ca_get(struct request *rq, struct answer *ret, struct failure *ret_failure)
{
	_buf_ struct buf pem = BUF_INIT(NP_ANSWER_BYTES);
	int r = rq->config->session_ca(rq->config->data, rq->session.text, &pem);

	if (r == -ENOENT)
		return failure_put(ret_failure, r, NP_R_NO_SUCH_SANDBOX, "%s has none, so it has no CA",
				   rq->session.text);
	if (r < 0)
		return failure_put(ret_failure, r, NP_R_NO_INSPECTOR, "no inspector is ready; try again");
	return answer_text(ret, "application/x-pem-file", &pem, ret_failure);
}
