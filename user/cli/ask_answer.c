/* SPDX-License-Identifier: MIT */
#include "cli/ask_answer.h"

#include <stdio.h>
#include <string.h>

#include "api_client/api.h"

/* The answer's object. NULL when the call failed: then *ret_error has the daemon's word for it, or NULL if there is none. */
static json_t *question_call(const struct ask_model *ask, const char *socket, const char *suffix, const json_t *body,
			     json_t **ret_error)
{
	cleanup(client_answer_free) struct client_answer answer = { 0 };
	_free_ char *text = body ? json_dumps(body, JSON_COMPACT) : NULL;
	_buf_ struct buf path = BUF_INIT(4096);
	json_t *json;

	*ret_error = NULL;
	buf_puts(&path, "/v1/questions/");
	api_escape(&path, ask_id(ask->shown));
	buf_puts(&path, suffix);
	if (buf_error(&path) || client_call(socket, body ? "POST" : "GET", path.data, text, &answer) < 0)
		return NULL;
	json = json_loads(answer.body.data ? answer.body.data : "", JSON_REJECT_DUPLICATES, NULL);
	if (answer.status == 200)
		return json;
	*ret_error = json;
	return NULL;
}

void ask_renew(struct ask_model *ask, const char *socket)
{
	_json_ json_t *error = NULL;
	_json_ json_t *now = question_call(ask, socket, "", NULL, &error);

	if (now)
		ask_take(ask, now);
	if (now && ask->shown && !strcmp(ask_id(ask->shown), ask_id(now))) {
		json_decref(ask->shown);
		ask->shown = json_incref(now);
	}
}

/* Somebody else was faster, or time was. */
static void answer_late(struct ask_model *ask, const char *socket, const char *why)
{
	_json_ json_t *ignored = NULL;
	_json_ json_t *now = question_call(ask, socket, "", NULL, &ignored);
	char what[ASK_MESSAGE_SIZE];

	ask_remove(ask, ask_id(ask->shown));
	if (now)
		ask_report_over(ask, now);
	snprintf(what, sizeof(what), "%s", now ? ask->message : why);
	ask_show_next(ask, false);
	ask_message(ask, "TOO LATE: %.230s", what);
}

static void answer_refused(struct ask_model *ask, const char *socket, const json_t *error)
{
	const char *token = member_text(error, "error") ?: "";
	char why[ASK_MESSAGE_SIZE];

	ask->stage = ASK_LOOK;
	if (!error) {
		ask_message(ask, "the daemon did not answer: it is not known whether it took this");
		return;
	}
	refusal_text(error, "?", why, sizeof(why));
	if (!strcmp(token, "question_changed")) {
		ask_renew(ask, socket);
		ask_message(ask, "NOT SENT: the level or the policy has changed; this is how it stands now");
	} else if (!strcmp(token, "question_over") || !strcmp(token, "run_over")) {
		answer_late(ask, socket, why);
	} else {
		ask_message(ask, "NOT TAKEN: %.230s", why);
	}
}

void ask_answer(struct ask_model *ask, const char *socket)
{
	_json_ json_t *body = json_pack(
		"{s:s,s:s*,s:O*,s:O*}", "answer", ask->answer, "reason", ask->reason_len ? ask->reason : NULL, "policy",
		json_object_get(ask->shown, "policy"), "generation", json_object_get(ask->shown, "generation"));
	_json_ json_t *error = NULL;
	_json_ json_t *done = body ? question_call(ask, socket, "/answer", body, &error) : NULL;

	if (!body) {
		ask_message(ask, "the reason is not UTF-8");
		ask->stage = ASK_LOOK;
		return;
	}
	if (!done) {
		answer_refused(ask, socket, error);
		return;
	}
	ask_remove(ask, ask_id(done));
	ask_show_next(ask, false);
	ask_message(ask, "%s: %s", ask_id(done), member_text(done, "answer") ?: "?");
}
