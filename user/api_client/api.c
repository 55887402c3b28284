/* SPDX-License-Identifier: MIT */
#include "api_client/api.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "vocab/level.h"

#define PATH_BYTES 4096 /* of a request: the longest names, every byte escaped */

void api_answer_free(struct api_answer *answer)
{
	free(answer->text);
	json_decref(answer->json);
	*answer = (struct api_answer){ 0 };
}

int api_unreachable(const char *socket, const char *subject, int error)
{
	char detail[512];

	if (error == -EACCES || error == -EPERM) {
		snprintf(detail, sizeof(detail),
			 "%s: %s; or a role (access: in the policy), and a directory that lets others in", socket,
			 strerror(-error));
		error_print(subject, NP_R_NOT_PERMITTED, detail);
		return CLI_REFUSED;
	}
	if (error == -E2BIG || error == -ENOMEM) {
		error_print(subject, NP_R_FAILED, "the daemon's answer is larger than netpawl takes");
		return CLI_REFUSED;
	}
	snprintf(detail, sizeof(detail), "%s: %s", socket, strerror(-error));
	error_print(subject, NP_R_NO_DAEMON, detail);
	if (error == -ENOENT || error == -ECONNREFUSED) {
		if (access("/run/systemd/system", F_OK) == 0)
			fputs("netpawl: start it: systemctl start netpawld (why it does not run: systemctl status "
			      "netpawld)\n",
			      stderr);
		else
			fputs("netpawl: start it, as root: netpawld --policy /etc/netpawl/policy.yaml & (see "
			      "netpawld(8))\n",
			      stderr);
	}
	return CLI_NO_DAEMON;
}

int api_refused(const char *subject, int status, const char *text)
{
	_json_ json_t *json = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
	const char *token = member_text(json, "error"), *sentence = member_text(json, "message");
	char detail[64];

	if (token && sentence) {
		complain_text(subject, sentence, token, member_text(json, "detail"));
	} else {
		snprintf(detail, sizeof(detail), "the daemon answered HTTP %d without a reason", status);
		error_print(subject, NP_R_FAILED, detail);
	}
	return CLI_REFUSED;
}

int api_call(const char *socket, const char *subject, const char *method, const char *path, json_t *body,
	     struct api_answer *ret)
{
	_json_ json_t *owned = body;
	_free_ char *request = owned ? json_dumps(owned, JSON_COMPACT) : NULL;
	cleanup(client_answer_free) struct client_answer answer = { 0 };
	int err;

	*ret = (struct api_answer){ 0 };
	if (owned && !request) {
		error_print(subject, NP_R_FAILED, strerror(ENOMEM));
		return CLI_REFUSED;
	}
	err = client_call(socket, method, path, request, &answer);
	if (err < 0)
		return api_unreachable(socket, subject, err);
	ret->status = answer.status;
	ret->text = buf_take(&answer.body);
	if (!ret->text) {
		error_print(subject, NP_R_FAILED, strerror(ENOMEM));
		return CLI_REFUSED;
	}
	if (answer.status < 200 || answer.status > 299)
		return api_refused(subject, answer.status, ret->text);
	ret->json = json_loads(ret->text, JSON_REJECT_DUPLICATES, NULL);
	if (!json_is_object(ret->json)) {
		error_print(subject, NP_R_FAILED, "the daemon's answer is not a JSON object");
		return CLI_REFUSED;
	}
	return CLI_OK;
}

void api_escape(struct buf *out, const char *text)
{
	for (; *text; text++) {
		if (isalnum((unsigned char)*text) || strchr("-._~/", *text))
			buf_append(out, text, 1);
		else
			buf_printf(out, "%%%02X", (unsigned char)*text);
	}
}

void api_query(struct buf *path, const char *name, const char *value)
{
	if (!value)
		return;
	buf_printf(path, "%c%s=", path->data && strchr(path->data, '?') ? '&' : '?', name);
	api_escape(path, value);
}

int api_body(const char *subject, json_t *body, json_t **ret)
{
	if (!body) {
		error_print(subject, NP_R_BAD_FIELD, "the text is not UTF-8");
		return CLI_REFUSED;
	}
	*ret = body;
	return CLI_OK;
}

/* The daemon knows what a name may be made of; here it only has to be two words, to fit into a path. */
static bool session_form(const char *session)
{
	const char *slash = strchr(session, '/');

	return slash && slash != session && slash[1] && !strchr(slash + 1, '/');
}

int session_check(const char *command, const char *session)
{
	return session_form(session) ? CLI_OK
				     : usage_error(command, "a session is written USER/SESSION, and not '%s'", session);
}

int level_check(const char *command, const char *level)
{
	enum level ignored;

	return level_parse(level, &ignored) == 0
		       ? CLI_OK
		       : usage_error(command,
				     "there is no level '%s'; there are PUBLIC, INTERNAL, CONFIDENTIAL and SECRET",
				     level);
}

char *api_session_path(const char *session, const char *suffix)
{
	struct buf path = BUF_INIT(PATH_BYTES);
	char *text;

	if (!session_form(session)) {
		error_print(session, NP_R_BAD_NAME, "a session is written USER/SESSION");
		return NULL;
	}
	buf_puts(&path, "/v1/sessions/");
	api_escape(&path, session);
	buf_puts(&path, suffix);
	text = buf_take(&path);
	if (!text)
		error_print(NULL, NP_R_BAD_NAME, "the session's name is too long");
	buf_free(&path);
	return text;
}
