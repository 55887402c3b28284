/* SPDX-License-Identifier: MIT */
/* /v1/runs */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/sql.h"
#include "control/access.h"
#include "control/body.h"
#include "control/args.h"
#include "control/inbox.h"
#include "control/json_objects.h"
#include "control/reply.h"
#include "control/url_text.h"
#include "loop/loop.h"
#include "vocab/limits.h"
#include "vocab/run_options.h"

/* Texts, one at least, as compact JSON. Too long is refused, never cut: somebody approves what is written there. */
static int command_read(const json_t *command, char **ret, struct failure *ret_failure)
{
	_free_ char *text = NULL;
	const json_t *word;
	size_t i;

	if (!json_array_size(command))
		return failure_put(ret_failure, -EINVAL, NP_R_BAD_FIELD, "\"command\" has no word");
	json_array_foreach(command, i, word)
	{
		if (!json_is_string(word))
			return failure_put(ret_failure, -EINVAL, NP_R_BAD_FIELD, "word %zu of \"command\" is no text",
					   i + 1);
	}
	if (!json_string_length(json_array_get(command, 0)))
		return failure_put(ret_failure, -EINVAL, NP_R_BAD_FIELD,
				   "\"command\" names no program: its first word is empty");
	text = json_dumps(command, JSON_COMPACT);
	if (!text)
		return failure_put(ret_failure, -ENOMEM, NP_R_FAILED, "out of memory");
	if (strlen(text) > NP_RUN_COMMAND)
		return failure_put(ret_failure, -E2BIG, NP_R_TOO_LARGE, "\"command\" has more than %u bytes",
				   NP_RUN_COMMAND);
	*ret = take_ptr(text);
	return 0;
}

/* How a run is to be run. With what a launch may say: the rest is the policy's. */
static int option_check(const char *name, const json_t *value, bool launch, struct failure *ret_failure)
{
	const struct run_option *option = run_option_find(name, launch ? RUN_LAUNCH : RUN_RECORD);
	const json_t *word;
	const char *wrong;
	unsigned columns, rows;
	uint64_t limit;
	size_t i;

	if (!option)
		return failure_put(ret_failure, -EINVAL, NP_R_UNKNOWN_FIELD, "\"%.64s\" of \"%s\"", name,
				   launch ? "launch" : "options");
	if (option->kind == RUN_FLAG)
		return json_is_true(value)
			       ? 0
			       : failure_put(ret_failure, -EINVAL, NP_R_BAD_FIELD, "\"%s\" must be true", name);
	if (option->kind != RUN_TEXTS && !json_is_string(value))
		return failure_put(ret_failure, -EINVAL, NP_R_BAD_FIELD, "\"%s\" must be a string", name);
	if (!strcmp(name, "terminal") && !terminal_parse(json_string_value(value), &columns, &rows))
		return failure_put(ret_failure, -EINVAL, NP_R_BAD_FIELD, "\"terminal\" is written as in \"80x24\"");
	if (option->wrong && (wrong = limit_parse(name, json_string_value(value), &limit)))
		return failure_put(ret_failure, -EINVAL, NP_R_BAD_FIELD, "\"%s\": %s", name, wrong);
	for (i = 0; option->kind == RUN_TEXTS && (i < json_array_size(value) || !json_is_array(value)); i++) {
		word = json_array_get(value, i);
		if (!json_is_string(word))
			return failure_put(ret_failure, -EINVAL, NP_R_BAD_FIELD, "\"%s\" must be an array of strings",
					   name);
		if (!strcmp(name, "env") && (wrong = env_check(json_string_value(word), !launch)))
			return failure_put(ret_failure, -EINVAL, NP_R_BAD_FIELD, "word %zu of \"env\": %s", i + 1,
					   wrong);
	}
	return 0;
}

/* As compact JSON. Whoever approves the run sees it, and whoever runs it has it from the record. */
static int options_read(json_t *object, bool launch, char **ret, struct failure *ret_failure)
{
	_free_ char *text = NULL;
	int r = 0;

	if (object && !json_is_object(object))
		return failure_put(ret_failure, -EINVAL, NP_R_BAD_FIELD, "\"%s\" must be an object",
				   launch ? "launch" : "options");
	for (void *at = json_object_iter(object); at && r == 0; at = json_object_iter_next(object, at))
		r = option_check(json_object_iter_key(at), json_object_iter_value(at), launch, ret_failure);
	if (r < 0)
		return r;
	if (launch && !json_object_get(object, "chdir"))
		json_object_set_new(object, "chdir", json_string("/workspace"));
	/* So that the launcher discards a flood of output, and not the daemon. A terminal is handed over whole: the
	 * client that is attached reads all of it. */
	if (launch && !json_object_get(object, "terminal") && !json_object_get(object, "attach") &&
	    !json_object_get(object, "output_limit"))
		json_object_set_new(object, "output_limit", json_string("1MiB"));
	text = object ? json_dumps(object, JSON_COMPACT | JSON_SORT_KEYS) : strdup("{}");
	if (!text)
		return failure_put(ret_failure, -ENOMEM, NP_R_FAILED, "out of memory");
	if (strlen(text) > NP_RUN_OPTIONS)
		return failure_put(ret_failure, -E2BIG, NP_R_TOO_LARGE, "\"%s\" has more than %u bytes",
				   launch ? "launch" : "options", NP_RUN_OPTIONS);
	*ret = take_ptr(text);
	return 0;
}

/* A run that cannot be started is no run: it is rejected at once. */
static int runs_launch(struct request *rq, const struct run_row *run, const json_t *how, struct failure *ret_failure)
{
	struct run_launch launch = { .id = run->id,
				     .caller = rq->peer.uid,
				     .input = json_object_get(how, "input"),
				     .attach = json_object_get(how, "attach") };
	const char *terminal = json_string_value(json_object_get(how, "terminal"));
	struct run_row ignored_row;
	struct failure ignored;
	int r;

	if (terminal)
		terminal_parse(terminal, &launch.columns, &launch.rows);
	r = rq->config->launcher.start(rq->config->launcher.ctx, &launch, ret_failure);

	if (r < 0)
		service_run_withdraw(rq->config->service, run->id, "it could not be started", "daemon", &ignored_row,
				     &ignored);
	return r;
}

int runs_create(struct request *rq, struct answer *ret, struct failure *ret_failure)
{
	const char *session = "", *class_text = NULL;
	const struct body_field fields[] = {
		{ "session", true, .ret_text = &session }, { "class", false, .ret_text = &class_text },
		{ "command", true, .is_array = true },	   { "launch", false, .is_nested = true },
		{ "options", false, .is_nested = true },
	};
	_json_ json_t *body = NULL;
	_free_ char *command = NULL, *how = NULL;
	struct run_request requested = { 0 };
	struct session_name name;
	struct policy_loaded loaded;
	struct run_row run;
	int r = body_read(rq->body, rq->body_len, fields, ARRAY_SIZE(fields), &body, ret_failure);

	if (r == 0)
		r = name_read(session, &name, ret_failure);
	if (r < 0)
		return r;
	if (class_text && (class_parse(class_text, &requested.class) < 0 || requested.class == CLASS_OPEN))
		return failure_put(ret_failure, -EINVAL, NP_R_BAD_FIELD, "\"class\" can be none, read_only or write");
	requested.launched = json_object_get(body, "launch");
	if (requested.launched && json_object_get(body, "options"))
		return failure_put(ret_failure, -EINVAL, NP_R_BAD_FIELD,
				   "\"options\" are for a caller that starts it itself");
	if (!requested.launched &&
	    !(rq->peer.roles & ROLE_OPERATOR)) /* a caller that starts the command itself is trusted to start that */
		return failure_put(ret_failure, -EACCES, NP_R_NO_ROLE,
				   "%s: a platform has the daemon start its runs (\"launch\")", rq->peer.who);
	if (requested.class != CLASS_OPEN && json_object_get(json_object_get(body, "launch"), "keep"))
		return failure_put(ret_failure, -EINVAL, NP_R_BAD_FIELD, "a run with a class has a sandbox of its own");
	r = command_read(json_object_get(body, "command"), &command, ret_failure);
	if (r == 0)
		r = options_read(json_object_get(body, requested.launched ? "launch" : "options"), requested.launched,
				 &how, ret_failure);
	if (r < 0)
		return r;
	rq->config->policy_loaded(rq->config->data, &loaded);
	requested.session = name.text;
	requested.command = command;
	requested.options = how;
	requested.expires_us = loop_wall_us() + loaded.policy->approval.timeout_ms * 1000;
	r = service_run_request(rq->config->service, &requested, rq->peer.who, &run, ret_failure);
	if (r == 0 && requested.launched)
		r = runs_launch(rq, &run, json_object_get(body, "launch"), ret_failure);
	return r < 0 ? r : answer_json(ret, 201, run_object(&run), ret_failure);
}

const char *request_for(const struct request *rq, char who[static RUN_WHO_SIZE])
{
	const uint64_t id = rq->config->launcher.run(rq->config->launcher.ctx, rq->peer.pid);
	struct failure ignored;
	struct run_row run;

	if (!id || service_run_show(rq->config->service, id, &run, &ignored) < 0)
		return rq->peer.who;
	memcpy(who, run.who, sizeof(run.who));
	return who;
}

int run_launcher_check(const struct request *rq, uint64_t id, bool starts, struct failure *ret_failure)
{
	pid_t launcher = rq->config->launcher.pid(rq->config->launcher.ctx, id);
	struct run_row run;
	int r;

	if (launcher == rq->peer.pid)
		return 0;
	r = service_run_show(rq->config->service, id, &run, ret_failure);
	if (r < 0)
		return r;
	/* One that has outlived its daemon is unknown here, and may still tell how it ended. */
	return launcher || (starts && run.launched)
		       ? failure_put(ret_failure, -EPERM, NP_R_NOT_THE_LAUNCHER, "run %llu", (unsigned long long)id)
		       : 0;
}

json_t *run_shown(const struct request *rq, const struct run_row *row)
{
	json_t *object = run_object(row), *env = json_object_get(json_object_get(object, "options"), "env");

	if (access_sees(rq, ROLE_APPROVER | ROLE_INBOX, row->session.text))
		return object;
	for (size_t i = 0; i < json_array_size(env); i++) {
		const char *word = json_string_value(json_array_get(env, i));

		json_array_set_new(env, i, json_stringn(word, strcspn(word, "=")));
	}
	return object;
}

struct run_list {
	const struct request *rq;
	json_t *array;
	const char *state; /* NULL: all */
};

static int run_add(void *data, const struct run_row *row)
{
	struct run_list *list = data;

	if ((list->state && strcmp(run_state_name(row->state), list->state) != 0) ||
	    !access_sees(list->rq, ROLE_APPROVER | ROLE_INBOX | ROLE_READER, row->session.text))
		return 0;
	return json_array_size(list->array) >= NP_EVENTS_PAGE ? -E2BIG
							      : array_add(list->array, run_shown(list->rq, row));
}

int runs_list(struct request *rq, struct answer *ret, struct failure *ret_failure)
{
	_json_ json_t *array = json_array();
	struct run_list list = { .rq = rq, .array = array, .state = rq->query[1] };
	enum run_state ignored;
	struct session_name name;
	int r = rq->query[0] ? name_read(rq->query[0], &name, ret_failure) : 0;

	if (r < 0)
		return r;
	if (list.state && run_state_parse(list.state, &ignored) < 0)
		return failure_put(ret_failure, -EINVAL, NP_R_BAD_REQUEST, "there is no state \"%.32s\"", list.state);
	r = store_runs_each(service_store(rq->config->service), rq->query[0] ? name.text : NULL, run_add, &list);
	if (r < 0 && r != -E2BIG)
		return failure_put(ret_failure, r, NP_R_FAILED, "the runs could not be read: %s", sql_strerror(r));
	return answer_json(ret, 200, json_pack("{s:O,s:o*}", "runs", array, "truncated", r ? json_true() : NULL),
			   ret_failure);
}

/* wait=1: as soon as it is no longer as it was when the request came. */
int run_get(struct request *rq, struct answer *ret, struct failure *ret_failure)
{
	bool wait = false;
	struct run_row run;
	unsigned mark;
	int r;

	if (url_flag(rq->query[0], &wait) < 0)
		return failure_put(ret_failure, -EINVAL, NP_R_BAD_REQUEST, "wait must be 0 or 1");
	r = service_run_show(rq->config->service, rq->id, &run, ret_failure);
	if (r < 0)
		return r;
	mark = 1 + 2 * (unsigned)run.state + run.decided;
	if (wait && !rq->head && rq->may_wait && (!rq->mark || rq->mark == mark) &&
	    (run.state == RUN_PENDING || run.state == RUN_RUNNING)) {
		rq->mark = mark;
		ret->wait = true;
		return 0;
	}
	return answer_json(ret, 200, run_shown(rq, &run), ret_failure);
}

/* NDJSON, of a run that the API launched; follow: to its end. */
int run_output_get(struct request *rq, struct answer *ret, struct failure *ret_failure)
{
	struct run_text text;
	bool follow = false, ended;
	struct run_row run;
	int r;

	if (url_flag(rq->query[0], &follow) < 0)
		return failure_put(ret_failure, -EINVAL, NP_R_BAD_REQUEST, "follow must be 0 or 1");
	if (rq->config->launcher.output(rq->config->launcher.ctx, rq->id, 0, &text, &ended) < 0) {
		r = service_run_show(rq->config->service, rq->id, &run, ret_failure);
		return r < 0 ? r
			     : failure_put(ret_failure, -ENOENT, NP_R_NO_OUTPUT,
					   run.launched ? "the output of run %.64s is kept no longer"
							: "run %.64s was not launched here and has no output",
					   rq->args[0]);
	}
	*ret = (struct answer){ .status = 200, .type = "application/x-ndjson" };
	if (follow && !rq->head) {
		r = output_open(rq->outputs, rq->connection, rq->id, rq->peer.uid, &ret->stream);
		if (r == -EACCES)
			return failure_put(
				ret_failure, r, NP_R_NO_ROLE,
				"run %.64s is attached to the user who has had it started, and user %u is another",
				rq->args[0], (unsigned)rq->peer.uid);
		if (r == -EBUSY)
			return failure_put(ret_failure, r, NP_R_TOO_MANY,
					   "run %.64s is attached: its output is for one reader, and has one",
					   rq->args[0]);
		if (r == -EMFILE)
			return failure_put(ret_failure, r, NP_R_TOO_MANY, "user %u follows the output of %d runs",
					   (unsigned)rq->peer.uid, NP_FOLLOWERS_PER_USER);
		return r < 0 ? failure_put(ret_failure, r, NP_R_FAILED, "the stream could not be opened") : 0;
	}
	ret->body = malloc(text.len + 1);
	if (!ret->body)
		return failure_put(ret_failure, -ENOMEM, NP_R_FAILED, "out of memory");
	memcpy(ret->body, text.data, text.len);
	ret->len = text.len;
	return 0;
}

/* The process that asked for the run and waits, or that was to start it, gives it up: that is nobody's decision. */
static bool run_is_given_up(const struct request *rq)
{
	struct failure ignored;
	struct run_row run;

	if (rq->peer.pid <= 0) /* of a namespace that we do not see into */
		return false;
	return rq->config->launcher.pid(rq->config->launcher.ctx, rq->id) == rq->peer.pid ||
	       (service_run_show(rq->config->service, rq->id, &run, &ignored) == 0 && !run.decided &&
		!strcmp(run.who, rq->peer.who));
}

static int runs_decide(struct request *rq, bool approved, struct answer *ret, struct failure *ret_failure)
{
	const char *reason = NULL, *problem;
	const struct body_field fields[] = { { "reason", !approved, .ret_text = &reason } };
	_json_ json_t *body = NULL;
	struct run_row run;
	int r = 0;

	if (rq->body_len || !approved) /* an approval needs none */
		r = body_read(rq->body, rq->body_len, fields, ARRAY_SIZE(fields), &body, ret_failure);
	if (r < 0)
		return r;
	if (reason && text_check(reason, NP_REASON_TEXT_MAX, &problem) < 0)
		return failure_put(ret_failure, -EINVAL, NP_R_BAD_FIELD, "\"reason\": %s", problem);
	r = !approved && run_is_given_up(rq)
		    ? service_run_withdraw(rq->config->service, rq->id, reason, rq->peer.who, &run, ret_failure)
		    : service_run_decide(rq->config->service, rq->id, approved, reason ? reason : "", rq->peer.who,
					 &run, ret_failure);
	return r < 0 ? r : answer_json(ret, 200, run_object(&run), ret_failure);
}

int run_approve(struct request *rq, struct answer *ret, struct failure *ret_failure)
{
	return runs_decide(rq, true, ret, ret_failure);
}

int run_reject(struct request *rq, struct answer *ret, struct failure *ret_failure)
{
	return runs_decide(rq, false, ret, ret_failure);
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
	int r = body_read(rq->body, rq->body_len, fields, ARRAY_SIZE(fields), &body, ret_failure);

	if (r == 0)
		r = run_launcher_check(rq, rq->id, false, ret_failure);
	if (r < 0)
		return r;
	if (!json_is_object(json_object_get(body, "result")))
		return failure_put(ret_failure, -EINVAL, NP_R_BAD_FIELD, "\"result\" must be an object");
	if (run_state_parse(state_text, &state) < 0 || (state != RUN_COMPLETED && state != RUN_FAILED))
		return failure_put(ret_failure, -EINVAL, NP_R_BAD_FIELD, "\"state\" can be completed or failed");
	text = json_dumps(json_object_get(body, "result"), JSON_COMPACT);
	if (!text || strlen(text) > NP_RUN_RESULT)
		return failure_put(ret_failure, -E2BIG, NP_R_TOO_LARGE, "\"result\" has more than %u bytes",
				   NP_RUN_RESULT);
	r = service_run_end(rq->config->service, rq->id, state, text, rq->peer.who, &run, ret_failure);
	return r < 0 ? r : answer_json(ret, 200, run_object(&run), ret_failure);
}
