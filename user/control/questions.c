/* SPDX-License-Identifier: MIT */
/* /v1/questions */
#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/sql.h"
#include "control/access.h"
#include "control/args.h"
#include "control/body.h"
#include "control/json_objects.h"
#include "control/reply.h"
#include "control/url_text.h"
#include "policy/grant.h"
#include "policy/warnings.h"
#include "vocab/limits.h"
#include "vocab/words.h"

static int id_read(const struct request *rq, uint64_t *ret, struct failure *ret_failure)
{
	if (url_number(rq->args[0], INT64_MAX, ret) < 0)
		return failure_put(ret_failure, -ENOENT, NP_R_NO_SUCH_QUESTION, "%.64s", rq->args[0]);
	return 0;
}

static int dataset_name_add(void *data, const struct dataset_row *row)
{
	return json_array_append_new(data, json_text(row->name)) < 0 ? -ENOMEM : 0;
}

static json_t *warnings_array(const struct policy *policy, const struct question_row *row, bool asked_before)
{
	const struct warning_facts facts = { .host = row->host,
					     .method = row->method,
					     .url = row->url,
					     .write = row->write,
					     .body = row->body,
					     .asked_before = asked_before };
	json_t *array = json_array();
	struct warnings warnings;

	warnings_find(policy, &facts, &warnings);
	for (size_t i = 0; i < warnings.n; i++)
		json_array_append_new(array, json_text(warnings.text[i]));
	return array;
}

/* What a person needs to know to answer: with what the session holds, and what was said about this host before. */
static json_t *question_shown(const struct request *rq, const struct question_row *row)
{
	struct service *service = rq->config->service;
	struct store *store = service_store(service);
	_json_ json_t *object = question_object(row);
	json_t *datasets = json_array();
	unsigned allowed = 0, denied = 0;
	struct policy_loaded loaded;

	rq->config->policy_loaded(rq->config->data, &loaded);
	store_questions_before(store, row, &allowed, &denied);
	store_datasets_each(store, row->session.text, dataset_name_add, datasets);
	if (json_object_set_new(object, "datasets", datasets) < 0 ||
	    json_object_set_new(object, "before",
				json_pack("{s:i,s:i}", "allowed", (int)allowed, "denied", (int)denied)) < 0 ||
	    json_object_set_new(object, "warnings", warnings_array(loaded.policy, row, allowed + denied > 0)) < 0 ||
	    json_object_set_new(object, "waiting", json_integer(service_question_waiting(service, row))) < 0 ||
	    (row->state == QUESTION_PENDING &&
	     json_object_set_new(object, "policy", json_string(loaded.policy->hash)) < 0))
		return NULL;
	return take_ptr(object);
}

struct question_list {
	const struct request *rq;
	json_t *array;
	bool any; /* state is not asked for */
	enum question_state state;
	uint64_t after;
};

static int question_add(void *data, const struct question_row *row)
{
	struct question_list *list = data;

	if (row->id <= list->after || (!list->any && row->state != list->state) ||
	    !access_sees(list->rq, ROLE_APPROVER | ROLE_INBOX | ROLE_READER, row->session.text))
		return 0;
	return json_array_size(list->array) >= NP_EVENTS_PAGE ? -E2BIG
							      : array_add(list->array, question_shown(list->rq, row));
}

/* wait=1: as soon as there is one. */
int questions_list(struct request *rq, struct answer *ret, struct failure *ret_failure)
{
	_json_ json_t *array = json_array();
	struct question_list list = { .rq = rq, .array = array, .any = !rq->query[1] };
	struct session_name name;
	bool wait = false;
	int r = rq->query[0] ? name_read(rq->query[0], &name, ret_failure) : 0;

	if (r < 0)
		return r;
	if (rq->query[1] && question_state_parse(rq->query[1], &list.state) < 0)
		return failure_put(ret_failure, -EINVAL, NP_R_BAD_REQUEST,
				   "there is no state \"%.32s\"; there are pending, allowed, denied, expired and void, "
				   "and without it all are listed",
				   rq->query[1]);
	if (rq->query[2] && url_number(rq->query[2], INT64_MAX, &list.after) < 0)
		return failure_put(ret_failure, -EINVAL, NP_R_BAD_REQUEST, "after must be the id of a question");
	if (url_flag(rq->query[3], &wait) < 0)
		return failure_put(ret_failure, -EINVAL, NP_R_BAD_REQUEST, "wait must be 0 or 1");
	r = store_questions_each(service_store(rq->config->service), rq->query[0] ? name.text : NULL,
				 !list.any && list.state == QUESTION_PENDING, question_add, &list);
	if (r < 0 && r != -E2BIG)
		return failure_put(ret_failure, r, NP_R_FAILED, "the questions could not be read: %s", sql_strerror(r));
	if (wait && !rq->head && rq->may_wait && !json_array_size(array)) {
		ret->wait = true;
		return 0;
	}
	return answer_json(ret, 200, json_pack("{s:O,s:o*}", "questions", array, "truncated", r ? json_true() : NULL),
			   ret_failure);
}

int question_get(struct request *rq, struct answer *ret, struct failure *ret_failure)
{
	struct question_row row;
	uint64_t id;
	int r = id_read(rq, &id, ret_failure);

	if (r == 0)
		r = service_question_show(rq->config->service, id, &row, ret_failure);
	if (r == 0 && !access_sees(rq, ROLE_APPROVER | ROLE_INBOX | ROLE_READER, row.session.text))
		r = failure_put(ret_failure, -ENOENT, NP_R_NO_SUCH_QUESTION, "%.64s", rq->args[0]);
	return r < 0 ? r : answer_json(ret, 200, question_shown(rq, &row), ret_failure);
}

/* What was answered, in words that the service takes. */
static int given_read(const char *answer, const char *duration, struct question_given *given,
		      struct failure *ret_failure)
{
	if (question_answer_parse(answer, &given->answer) < 0 || given->answer == ANSWER_NONE)
		return failure_put(ret_failure, -EINVAL, NP_R_BAD_FIELD,
				   "\"answer\" can be deny, once, host, domain or always");
	if (duration && given->answer == ANSWER_ALWAYS)
		return failure_put(ret_failure, -EINVAL, NP_R_BAD_FIELD, "what is for always has no \"for\"");
	if (duration && (!duration_parse(duration, &given->for_ms) || given->for_ms > NP_GRANT_MAX_MS))
		return failure_put(ret_failure, -EINVAL, NP_R_BAD_FIELD,
				   "\"for\" is written as in \"30m\" or \"8h\", and is 720h at most");
	return 0;
}

/*
 * For always: it is in the policy's grants before anybody hears of it. Until then, and if that fails, it holds for this session
 * and host, as the record says, and the caller is told.
 */
static int always_write(struct request *rq, struct question_row *row, struct failure *ret_failure)
{
	int r = rq->config->grant_change(rq->config->data, row, true, rq->peer.who, ret_failure);
	char why[sizeof(ret_failure->text)];

	if (r == 0)
		return service_question_show(rq->config->service, row->id, row, ret_failure);
	memcpy(why, ret_failure->text, sizeof(why));
	return failure_put(ret_failure, r, ret_failure->reason, "the answer holds for this session alone: %.500s", why);
}

/* May it be given at all? Where the policy names no file for grants, it may not. */
static int always_check(const struct request *rq, uint64_t id, struct failure *ret_failure)
{
	struct policy_loaded loaded;
	struct question_row row;
	int r = service_question_show(rq->config->service, id, &row, ret_failure);

	if (r < 0)
		return r;
	if (!grant_host_is_plain(row.host))
		return failure_put(ret_failure, -EINVAL, NP_R_BAD_FIELD, "the host cannot be written into a policy");

	rq->config->policy_loaded(rq->config->data, &loaded);
	/* A grant answers where a rule asks. A decider is asked first, grant or none: it would be a line that opens nothing. */
	for (size_t i = 0; i < loaded.policy->n_rules; i++)
		if (loaded.policy->rules[i].mark == row.rule && loaded.policy->rules[i].action == ACTION_DECIDE)
			return failure_put(
				ret_failure, -EINVAL, NP_R_BAD_FIELD,
				"a decider has a person asked about it, and decides about the next; answer host");
	if (!loaded.policy->approval.grants)
		return failure_put(ret_failure, -EINVAL, NP_R_BAD_FIELD,
				   "the policy names no file for \"always\" (approval: grants:); answer host");
	return 0;
}

/* Of a grant, which the policy has. The record of its question was closed when it had been written: the answer says who. */
static int grant_revoke(struct request *rq, struct question_row *row, struct failure *ret_failure)
{
	int r = rq->config->grant_change(rq->config->data, row, false, rq->peer.who, ret_failure);

	if (r == 0)
		snprintf(row->ended_by, sizeof(row->ended_by), "%s", rq->peer.who);
	return r;
}

/* Takes it back. */
int question_revoke(struct request *rq, struct answer *ret, struct failure *ret_failure)
{
	const char *reason = NULL, *problem;
	const struct body_field fields[] = { { "reason", false, .ret_text = &reason } };
	_json_ json_t *body = NULL;
	struct question_row row;
	uint64_t id;
	int r = id_read(rq, &id, ret_failure);

	if (r == 0 && rq->body_len)
		r = body_read(rq->body, rq->body_len, fields, ARRAY_SIZE(fields), &body, ret_failure);
	if (r < 0)
		return r;
	if (reason && text_check(reason, NP_REASON_TEXT_MAX, &problem) < 0)
		return failure_put(ret_failure, -EINVAL, NP_R_BAD_FIELD, "\"reason\": %s", problem);
	r = service_question_show(rq->config->service, id, &row, ret_failure);
	if (r == 0 && row.answer == ANSWER_ALWAYS && row.over_us) /* the policy has it now */
		r = grant_revoke(rq, &row, ret_failure);
	else if (r == 0)
		r = service_question_revoke(rq->config->service, id, reason ? reason : "", rq->peer.who, &row,
					    ret_failure);
	return r < 0 ? r : answer_json(ret, 200, question_shown(rq, &row), ret_failure);
}

int question_answer(struct request *rq, struct answer *ret, struct failure *ret_failure)
{
	const char *answer = "", *duration = NULL, *reason = NULL, *policy = NULL, *problem;
	uint64_t generation = 0;
	const struct body_field fields[] = {
		{ "answer", true, .ret_text = &answer },
		{ "for", false, .ret_text = &duration },
		{ "reason", false, .ret_text = &reason },
		{ "policy", false, .ret_text = &policy },
		{ "generation", false, .ret_number = &generation },
	};
	_json_ json_t *body = NULL;
	struct question_given given = { 0 };
	struct question_row row;
	uint64_t id;
	int r = id_read(rq, &id, ret_failure);

	if (r == 0)
		r = body_read(rq->body, rq->body_len, fields, ARRAY_SIZE(fields), &body, ret_failure);
	if (r == 0)
		r = given_read(answer, duration, &given, ret_failure);
	if (r < 0)
		return r;
	if (reason && text_check(reason, NP_REASON_TEXT_MAX, &problem) < 0)
		return failure_put(ret_failure, -EINVAL, NP_R_BAD_FIELD, "\"reason\": %s", problem);
	given.reason = reason ? reason : "";
	given.policy = policy;
	given.generation = generation;
	given.has_generation = json_object_get(body, "generation");
	r = given.answer == ANSWER_ALWAYS ? always_check(rq, id, ret_failure) : 0;
	if (r == 0)
		r = service_question_answer(rq->config->service, id, &given, rq->peer.who, &row, ret_failure);
	if (r == 0 && given.answer == ANSWER_ALWAYS)
		r = always_write(rq, &row, ret_failure);
	return r < 0 ? r : answer_json(ret, 200, question_shown(rq, &row), ret_failure);
}
