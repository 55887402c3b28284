/* SPDX-License-Identifier: MIT */
/* /v1/runs */
#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "control/body.h"
#include "control/names.h"
#include "control/objects.h"
#include "control/reply.h"
#include "control/url.h"
#include "loop/loop.h"

static int id_read(const struct request *rq, uint64_t *ret, struct failure *ret_failure)
{
	if (url_number(rq->args[0], INT64_MAX, ret) < 0)
		return failure_put(ret_failure, -ENOENT, NP_R_NO_SUCH_RUN, "%.64s", rq->args[0]);
	return 0;
}

/* Texts, one at least, as compact JSON. Too long is refused, never cut: somebody approves what is written there. */
static int command_read(const json_t *command, char **ret, struct failure *ret_failure)
{
	_free_ char *text = NULL;
	const json_t *word;
	size_t i;

	if (!json_is_array(command) || !json_array_size(command))
		return failure_put(ret_failure, -EINVAL, NP_R_BAD_FIELD, "\"command\" must be an array of texts");
	json_array_foreach(command, i, word)
	{
		if (!json_is_string(word))
			return failure_put(ret_failure, -EINVAL, NP_R_BAD_FIELD, "word %zu of \"command\" is no text", i);
	}
	text = json_dumps(command, JSON_COMPACT);
	if (!text)
		return failure_put(ret_failure, -ENOMEM, NP_R_FAILED, "out of memory");
	if (strlen(text) > NP_RUN_COMMAND)
		return failure_put(ret_failure, -E2BIG, NP_R_TOO_LARGE, "\"command\" has more than %u bytes",
				   NP_RUN_COMMAND);
	*ret = take_ptr(text);
	return 0;
}

int runs_create(struct request *rq, struct answer *ret, struct failure *ret_failure)
{
	const char *session, *class_text;
	const struct body_field fields[] = {
		{ "session", true, &session },
		{ "class", true, &class_text },
		{ "command", true, NULL },
	};
	_json_ json_t *body = NULL;
	_free_ char *text = NULL;
	struct session_name name;
	struct policy_live live;
	enum run_class class;
	struct run_row run;
	int r;

	r = body_read(rq->body, rq->body_len, fields, ARRAY_SIZE(fields), &body, ret_failure);
	if (r == 0)
		r = name_read(session, &name, ret_failure);
	if (r < 0)
		return r;
	if (class_parse(class_text, &class) < 0 || class == CLASS_OPEN)
		return failure_put(ret_failure, -EINVAL, NP_R_BAD_FIELD, "\"class\" can be none, read_only or write");
	r = command_read(json_object_get(body, "command"), &text, ret_failure);
	if (r < 0)
		return r;
	rq->config->policy_live(rq->config->data, &live);
	r = service_run_ask(rq->config->service, name.text, class, text,
			    loop_wall_us() + live.policy->approval.timeout_ms * 1000, rq->peer.who, &run, ret_failure);
	return r < 0 ? r : answer_json(ret, 201, run_object(&run), ret_failure);
}

struct run_list {
	json_t *array;
	const char *state; /* NULL: all */
};

static int run_add(void *data, const struct run_row *row)
{
	struct run_list *list = data;

	if (list->state && strcmp(run_state_name(row->state), list->state) != 0)
		return 0;
	return json_array_size(list->array) >= NP_EVENTS_PAGE ? -E2BIG : array_add(list->array, run_object(row));
}

int runs_list(struct request *rq, struct answer *ret, struct failure *ret_failure)
{
	_json_ json_t *array = json_array();
	struct run_list list = { .array = array, .state = rq->query[1] };
	enum run_state ignored;
	struct session_name name;
	int r = rq->query[0] ? name_read(rq->query[0], &name, ret_failure) : 0;

	if (r < 0)
		return r;
	if (list.state && run_state_parse(list.state, &ignored) < 0)
		return failure_put(ret_failure, -EINVAL, NP_R_BAD_REQUEST, "there is no state \"%.32s\"", list.state);
	r = store_runs_each(service_store(rq->config->service), rq->query[0] ? name.text : NULL, run_add, &list);
	if (r < 0 && r != -E2BIG)
		return failure_put(ret_failure, r, NP_R_FAILED, "the runs could not be read");
	return answer_json(ret, 200, json_pack("{s:O,s:o*}", "runs", array, "truncated", r ? json_true() : NULL),
			   ret_failure);
}

/* wait=1: as soon as it is no longer as it was when the request came. */
int run_get(struct request *rq, struct answer *ret, struct failure *ret_failure)
{
	bool wait = false;
	struct run_row run;
	unsigned mark;
	uint64_t id;
	int r = id_read(rq, &id, ret_failure);

	if (r < 0)
		return r;
	if (url_flag(rq->query[0], &wait) < 0)
		return failure_put(ret_failure, -EINVAL, NP_R_BAD_REQUEST, "wait must be 0 or 1");
	r = service_run_show(rq->config->service, id, &run, ret_failure);
	if (r < 0)
		return r;
	mark = 1 + 2 * (unsigned)run.state + run.decided;
	if (wait && !rq->head && rq->may_wait && (!rq->mark || rq->mark == mark) &&
	    (run.state == RUN_PENDING || run.state == RUN_RUNNING)) {
		rq->mark = mark;
		ret->wait = true;
		return 0;
	}
	return answer_json(ret, 200, run_object(&run), ret_failure);
}

static int decide(struct request *rq, bool approved, struct answer *ret, struct failure *ret_failure)
{
	const char *reason = NULL, *problem;
	const struct body_field fields[] = { { "reason", !approved, &reason } };
	_json_ json_t *body = NULL;
	struct run_row run;
	uint64_t id;
	int r = id_read(rq, &id, ret_failure);

	if (r < 0)
		return r;
	if (rq->body_len || !approved) /* an approval needs none */
		r = body_read(rq->body, rq->body_len, fields, ARRAY_SIZE(fields), &body, ret_failure);
	if (r < 0)
		return r;
	if (reason && text_check(reason, NP_REASON_TEXT_MAX, &problem) < 0)
		return failure_put(ret_failure, -EINVAL, NP_R_BAD_FIELD, "\"reason\": %s", problem);
	r = service_run_decide(rq->config->service, id, approved, reason ? reason : "", rq->peer.who, &run,
			       ret_failure);
	return r < 0 ? r : answer_json(ret, 200, run_object(&run), ret_failure);
}

int run_approve(struct request *rq, struct answer *ret, struct failure *ret_failure)
{
	return decide(rq, true, ret, ret_failure);
}

int run_reject(struct request *rq, struct answer *ret, struct failure *ret_failure)
{
	return decide(rq, false, ret, ret_failure);
}

/* From whoever ran it. */
int run_end(struct request *rq, struct answer *ret, struct failure *ret_failure)
{
	const char *state_text;
	const struct body_field fields[] = {
		{ "state", true, &state_text },
		{ "result", true, NULL },
	};
	_json_ json_t *body = NULL;
	_free_ char *text = NULL;
	enum run_state state;
	struct run_row run;
	uint64_t id;
	int r = id_read(rq, &id, ret_failure);

	if (r == 0)
		r = body_read(rq->body, rq->body_len, fields, ARRAY_SIZE(fields), &body, ret_failure);
	if (r < 0)
		return r;
	if (run_state_parse(state_text, &state) < 0 || (state != RUN_COMPLETED && state != RUN_FAILED))
		return failure_put(ret_failure, -EINVAL, NP_R_BAD_FIELD, "\"state\" can be completed or failed");
	text = json_dumps(json_object_get(body, "result"), JSON_COMPACT);
	if (!text || strlen(text) > NP_RUN_RESULT)
		return failure_put(ret_failure, -E2BIG, NP_R_TOO_LARGE, "\"result\" has more than %u bytes",
				   NP_RUN_RESULT);
	r = service_run_end(rq->config->service, id, state, text, rq->peer.who, &run, ret_failure);
	return r < 0 ? r : answer_json(ret, 200, run_object(&run), ret_failure);
}
