/* SPDX-License-Identifier: MIT */
/* /v1/questions */
#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/sql.h"
#include "control/args.h"
#include "control/body.h"
#include "control/inbox.h"
#include "control/json_objects.h"
#include "control/reply.h"
#include "control/url_text.h"
#include "policy/grant.h"
#include "policy/warnings.h"
#include "vocab/limits.h"
#include "vocab/words.h"

static int no_such(const struct request *rq, struct failure *ret_failure)
{
	return failure_put(ret_failure, -ENOENT, NP_R_NO_SUCH_QUESTION, "%.64s", rq->args[0]);
}

/* Of a question, or "run-3" of a run that waits, which is one as well. */
static int ref_read(const struct request *rq, struct inbox_ref *ret, struct failure *ret_failure)
{
	return inbox_ref_read(rq->args[0], ret) < 0 ? no_such(rq, ret_failure) : 0;
}

static json_t *warnings_array(const struct policy *policy, const struct question_row *row, bool asked_before)
{
	const struct warning_facts facts = { .host = row->host,
					     .method = row->method,
					     .url = row->url,
					     .write = row->write,
					     .body = row->body,
					     .preview = row->preview,
					     .preview_len = row->preview_len,
					     .asked_before = asked_before };
	json_t *array = json_array();
	struct warnings warnings;

	warnings_find(policy, &facts, &warnings);
	for (size_t i = 0; i < warnings.n; i++)
		json_array_append_new(array, json_text(warnings.text[i]));
	return array;
}

json_t *question_shown(const struct request *rq, const struct question_row *row)
{
	struct service *service = rq->config->service;
	struct store *store = service_store(service);
	_json_ json_t *object = question_object(row);
	unsigned allowed = 0, denied = 0;
	struct policy_loaded loaded;

	rq->config->policy_loaded(rq->config->data, &loaded);
	store_questions_before(store, row, &allowed, &denied);
	if (json_object_set_new(object, "datasets", dataset_names(store, row->session.text)) < 0 ||
	    json_object_set_new(object, "before",
				json_pack("{s:i,s:i}", "allowed", (int)allowed, "denied", (int)denied)) < 0 ||
	    json_object_set_new(object, "warnings", warnings_array(loaded.policy, row, allowed + denied > 0)) < 0 ||
	    json_object_set_new(object, "waiting", json_integer(service_question_waiting(service, row))) < 0 ||
	    (row->state == QUESTION_PENDING &&
	     json_object_set_new(object, "held_until",
				 json_time(row->created_us + loaded.policy->approval.hold_ms * 1000)) < 0) ||
	    (row->state == QUESTION_PENDING &&
	     json_object_set_new(object, "policy", json_string(loaded.policy->hash)) < 0))
		return NULL;
	return take_ptr(object);
}

static int query_read(const struct request *rq, struct session_name *name, struct inbox_query *ret,
		      struct failure *ret_failure)
{
	int r = rq->query[0] ? name_read(rq->query[0], name, ret_failure) : 0;

	if (r < 0)
		return r;
	*ret = (struct inbox_query){ .session = rq->query[0] ? name->text : NULL, .any = !rq->query[1] };
	if (rq->query[1] && question_state_parse(rq->query[1], &ret->state) < 0)
		return failure_put(ret_failure, -EINVAL, NP_R_BAD_REQUEST,
				   "there is no state \"%.32s\"; there are pending, allowed, denied, expired and void, "
				   "and without it all are listed",
				   rq->query[1]);
	if (rq->query[2] && url_number(rq->query[2], INT64_MAX, &ret->after) < 0)
		return failure_put(ret_failure, -EINVAL, NP_R_BAD_REQUEST, "after must be the number of a question");
	return 0;
}

static int list_answer(const struct request *rq, const struct inbox_query *query, const struct inbox *inbox, bool cut,
		       struct answer *ret, struct failure *ret_failure)
{
	const bool waits = !query->any && query->state == QUESTION_PENDING;
	_json_ json_t *array = json_array();
	int r = 0;

	for (size_t i = 0; i < inbox->n && r == 0; i++) {
		/* The newest comes first in every list: what waits longest, or is next to be answered, is last. */
		const struct inbox_item *item = &inbox->items[waits ? inbox->n - 1 - i : i];
		enum question_state ignored;
		json_t *object = NULL;

		r = inbox_show(rq, &item->ref, query, &object, &ignored);
		if (r == 0 && object)
			r = array_add(array, object);
	}
	if (r < 0)
		return failure_put(ret_failure, r, NP_R_FAILED, "the questions could not be read: %s", sql_strerror(r));
	return answer_json(ret, 200, json_pack("{s:O,s:o*}", "questions", array, "truncated", cut ? json_true() : NULL),
			   ret_failure);
}

/* wait=1: as soon as there is one. follow=1: what waits, and then what changes. */
int questions_list(struct request *rq, struct answer *ret, struct failure *ret_failure)
{
	cleanup(inbox_free) struct inbox inbox = { 0 };
	bool wait = false, follow = false, cut = false;
	struct inbox_query query;
	struct session_name name;
	int r = query_read(rq, &name, &query, ret_failure);

	if (r < 0)
		return r;
	if (url_flag(rq->query[3], &wait) < 0 || url_flag(rq->query[4], &follow) < 0)
		return failure_put(ret_failure, -EINVAL, NP_R_BAD_REQUEST, "wait and follow must be 0 or 1");
	if (follow && (wait || rq->query[2]))
		return failure_put(ret_failure, -EINVAL, NP_R_BAD_REQUEST,
				   "follow begins with what waits: it goes with neither wait nor after");
	if (follow && !rq->head)
		return inbox_follow(rq, &query, ret, ret_failure);
	r = inbox_read(rq, &query, &inbox, &cut);
	if (r < 0)
		return failure_put(ret_failure, r, NP_R_FAILED, "the questions could not be read: %s", sql_strerror(r));
	if (wait && !rq->head && rq->may_wait && !inbox.n) {
		ret->wait = true;
		return 0;
	}
	return list_answer(rq, &query, &inbox, cut, ret, ret_failure);
}

int question_get(struct request *rq, struct answer *ret, struct failure *ret_failure)
{
	const struct inbox_query query = { .any = true };
	enum question_state ignored;
	struct inbox_ref ref;
	json_t *object = NULL;
	int r = ref_read(rq, &ref, ret_failure);

	if (r < 0)
		return r;
	r = inbox_show(rq, &ref, &query, &object, &ignored);
	if (r < 0)
		return failure_put(ret_failure, r, NP_R_FAILED, "question %.64s: %s", rq->args[0], sql_strerror(r));
	return object ? answer_json(ret, 200, object, ret_failure) : no_such(rq, ret_failure);
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
	struct question_row row = {};
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

/* Of a grant, which the policy has. */
static int grant_revoke(struct request *rq, struct question_row *row, struct failure *ret_failure)
{
	int r = rq->config->grant_change(rq->config->data, row, false, rq->peer.who, ret_failure);

	return r < 0 ? r : service_grant_revoked(rq->config->service, row, rq->peer.who, ret_failure);
}

/* Takes it back. */
int question_revoke(struct request *rq, struct answer *ret, struct failure *ret_failure)
{
	const char *reason = NULL, *problem;
	const struct body_field fields[] = { { "reason", false, .ret_text = &reason } };
	_json_ json_t *body = NULL;
	struct question_row row = {};
	struct inbox_ref ref;
	uint64_t id;
	int r = ref_read(rq, &ref, ret_failure);

	id = ref.id;
	if (r == 0 && ref.run)
		r = failure_put(ret_failure, -EINVAL, NP_R_BAD_FIELD,
				"what a run was answered is not taken back; it can be cancelled (netpawl cancel)");
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

/* A run that waits: once approves it, deny rejects it. */
static int run_answer(struct request *rq, uint64_t id, const struct question_given *given, struct answer *ret,
		      struct failure *ret_failure)
{
	struct service *service = rq->config->service;
	struct policy_loaded loaded;
	struct session_row session;
	struct run_row run;
	int r = service_run_show(service, id, &run, ret_failure);

	if (r < 0 || !run_is_asked(&run))
		return no_such(rq, ret_failure);
	if ((given->answer != ANSWER_ONCE && given->answer != ANSWER_DENY) || given->for_ms)
		return failure_put(ret_failure, -EINVAL, NP_R_BAD_FIELD,
				   "a run is answered once (approved) or deny (rejected), and for no time");
	rq->config->policy_loaded(rq->config->data, &loaded);
	r = given->has_generation ? service_session_show(service, run.session.text, &session, ret_failure) : 0;
	if (r < 0)
		return r;
	if ((given->policy && strcmp(given->policy, loaded.policy->hash) != 0) ||
	    (given->has_generation && given->generation != session.rung.generation))
		return failure_put(ret_failure, -ESTALE, NP_R_QUESTION_CHANGED, "run %llu", (unsigned long long)id);
	r = service_run_decide(service, id, given->answer == ANSWER_ONCE, given->reason, rq->peer.who, &run,
			       ret_failure);
	return r < 0 ? r : answer_json(ret, 200, run_asked_object(rq, &run), ret_failure);
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
	struct question_row row = {};
	struct inbox_ref ref;
	uint64_t id;
	int r = ref_read(rq, &ref, ret_failure);

	id = ref.id;
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
	if (ref.run)
		return run_answer(rq, id, &given, ret, ret_failure);
	r = given.answer == ANSWER_ALWAYS ? always_check(rq, id, ret_failure) : 0;
	if (r == 0)
		r = service_question_answer(rq->config->service, id, &given, rq->peer.who, &row, ret_failure);
	if (r == 0 && given.answer == ANSWER_ALWAYS)
		r = always_write(rq, &row, ret_failure);
	return r < 0 ? r : answer_json(ret, 200, question_shown(rq, &row), ret_failure);
}
