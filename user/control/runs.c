/* SPDX-License-Identifier: MIT */
/* /v1/runs */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
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
			return failure_put(ret_failure, -EINVAL, NP_R_BAD_FIELD, "word %zu of \"command\" is no text",
					   i);
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

/* What a launch may say: limits, and where to start. The rest is the policy's. */
static const char *const launch_options[] = { "memory", "cpus", "pids", "timeout", "output_limit", "disk", "chdir" };

struct launch_words {
	char *options[ARRAY_SIZE(launch_options) + 3]; /* --keep, and a NULL */
	size_t n;
};

static void launch_words_free(struct launch_words *words)
{
	for (size_t i = 0; i < words->n; i++)
		free(words->options[i]);
}

static int option_add(struct launch_words *words, const char *name, const char *value, struct failure *ret_failure)
{
	char *word = NULL;

	if (asprintf(&word, "--%s=%s", name, value) < 0)
		return failure_put(ret_failure, -ENOMEM, NP_R_FAILED, "out of memory");
	for (char *c = word; *c != '='; c++)
		if (*c == '_')
			*c = '-';
	words->options[words->n++] = word;
	return 0;
}

/* "keep": true, for the session's kept sandbox. */
static int keep_read(const json_t *keep, struct launch_words *ret, struct failure *ret_failure)
{
	if (keep && !json_is_boolean(keep))
		return failure_put(ret_failure, -EINVAL, NP_R_BAD_FIELD, "\"keep\" must be true or false");
	if (!json_is_true(keep))
		return 0;
	ret->options[ret->n] = strdup("--keep");
	return ret->options[ret->n++] ? 0 : failure_put(ret_failure, -ENOMEM, NP_R_FAILED, "out of memory");
}

static int launch_read(json_t *launch, struct launch_words *ret, struct failure *ret_failure)
{
	int r = keep_read(json_object_get(launch, "keep"), ret, ret_failure);

	if (r < 0)
		return r;

	for (void *at = json_object_iter(launch); at; at = json_object_iter_next(launch, at)) {
		const char *name = json_object_iter_key(at);
		bool known = !strcmp(name, "keep");

		for (size_t i = 0; i < ARRAY_SIZE(launch_options); i++)
			known = known || !strcmp(launch_options[i], name);
		if (!known)
			return failure_put(ret_failure, -EINVAL, NP_R_UNKNOWN_FIELD, "\"%.64s\" of \"launch\"", name);
		if (!strcmp(name, "keep"))
			continue;
		if (!json_is_string(json_object_iter_value(at)))
			return failure_put(ret_failure, -EINVAL, NP_R_BAD_FIELD, "\"%s\" must be a string", name);
		r = option_add(ret, name, json_string_value(json_object_iter_value(at)), ret_failure);
		if (r < 0)
			return r;
	}
	if (!json_object_get(launch, "chdir"))
		r = option_add(ret, "chdir", "/workspace", ret_failure);
	/* So that it is the launcher who throws a flood away. */
	if (r == 0 && !json_object_get(launch, "output_limit"))
		r = option_add(ret, "output_limit", "1MiB", ret_failure);
	return r;
}

/* A run that cannot be started is no run: it is rejected at once. */
static int launch(struct request *rq, const struct run_row *run, const struct launch_words *words,
		  struct failure *ret_failure)
{
	const struct run_launch what = { .id = run->id, .session = run->session.text, .options = words->options };
	struct run_row ignored_row;
	struct failure ignored;
	int r = rq->config->run_launch(rq->config->data, &what, ret_failure);

	if (r < 0)
		service_run_decide(rq->config->service, run->id, false, "it could not be started", "daemon",
				   &ignored_row, &ignored);
	return r;
}

int runs_create(struct request *rq, struct answer *ret, struct failure *ret_failure)
{
	const char *session = "", *class_text = NULL;
	const struct body_field fields[] = {
		{ "session", true, .ret_text = &session },
		{ "class", false, .ret_text = &class_text },
		{ "command", true, .is_nested = true },
		{ "launch", false, .is_nested = true },
	};
	_json_ json_t *body = NULL;
	_free_ char *text = NULL;
	struct session_name name;
	struct policy_live live;
	cleanup(launch_words_free) struct launch_words words = { 0 };
	enum run_class class = CLASS_OPEN;
	struct run_row run;
	json_t *how;
	int r;

	r = body_read(rq->body, rq->body_len, fields, ARRAY_SIZE(fields), &body, ret_failure);
	if (r == 0)
		r = name_read(session, &name, ret_failure);
	if (r < 0)
		return r;
	if (class_text && (class_parse(class_text, &class) < 0 || class == CLASS_OPEN))
		return failure_put(ret_failure, -EINVAL, NP_R_BAD_FIELD, "\"class\" can be none, read_only or write");
	r = command_read(json_object_get(body, "command"), &text, ret_failure);
	if (r < 0)
		return r;
	how = json_object_get(body, "launch");
	if (how && !json_is_object(how))
		return failure_put(ret_failure, -EINVAL, NP_R_BAD_FIELD, "\"launch\" must be an object");
	if (class != CLASS_OPEN && json_is_true(json_object_get(how, "keep")))
		return failure_put(ret_failure, -EINVAL, NP_R_BAD_FIELD, "a run with a class has a sandbox of its own");
	if (how)
		r = launch_read(how, &words, ret_failure);
	if (r < 0)
		return r;
	rq->config->policy_live(rq->config->data, &live);
	r = service_run_ask(rq->config->service, name.text, class, text,
			    loop_wall_us() + live.policy->approval.timeout_ms * 1000, rq->peer.who, &run, ret_failure);
	if (r == 0 && how)
		r = launch(rq, &run, &words, ret_failure);
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

/* NDJSON, of a run that the API launched; follow: to its end. */
int run_output_get(struct request *rq, struct answer *ret, struct failure *ret_failure)
{
	const struct buf *lines;
	bool follow = false, ended;
	uint64_t id;
	int r = id_read(rq, &id, ret_failure);

	if (r < 0)
		return r;
	if (url_flag(rq->query[0], &follow) < 0)
		return failure_put(ret_failure, -EINVAL, NP_R_BAD_REQUEST, "follow must be 0 or 1");
	if (rq->config->run_output(rq->config->data, id, &lines, &ended) < 0)
		return failure_put(ret_failure, -ENOENT, NP_R_NO_SUCH_RUN, "%.64s has no output here", rq->args[0]);
	*ret = (struct answer){ .status = 200, .type = "application/x-ndjson" };
	if (follow && !rq->head) {
		r = output_open(rq->outputs, rq->connection, id, &ret->stream);
		return r < 0 ? failure_put(ret_failure, r, r == -EMFILE ? NP_R_TOO_MANY : NP_R_FAILED,
					   "the stream could not be opened")
			     : 0;
	}
	ret->body = malloc(lines->len + 1);
	if (!ret->body)
		return failure_put(ret_failure, -ENOMEM, NP_R_FAILED, "out of memory");
	memcpy(ret->body, lines->len ? lines->data : "", lines->len);
	ret->len = lines->len;
	return 0;
}

static int decide(struct request *rq, bool approved, struct answer *ret, struct failure *ret_failure)
{
	const char *reason = NULL, *problem;
	const struct body_field fields[] = { { "reason", !approved, .ret_text = &reason } };
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
	const char *state_text = NULL;
	const struct body_field fields[] = {
		{ "state", true, .ret_text = &state_text },
		{ "result", true, .is_nested = true },
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
