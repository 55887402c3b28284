/* SPDX-License-Identifier: MIT */
/* /console/...: what the console answers itself. */
#include <errno.h>
#include <jansson.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "api_client/api_http.h"
#include "base/cleanup.h"
#include "console/console.h"
#include "console/har_page.h"
#include "console/outline.h"
#include "console/policy_try.h"
#include "policy/keys.h"
#include "reason.h"
#include "vocab/limits.h"

static enum MHD_Result json_send(struct visit *visit, json_t *object)
{
	char *text = object ? json_dumps(object, JSON_COMPACT) : NULL;

	json_decref(object);
	return visit_text(visit, 200, "application/json", text, text ? strlen(text) : 0);
}

static json_t *body_object(const struct visit *visit)
{
	json_t *object =
		visit->body.len ? json_loadb(visit->body.data, visit->body.len, JSON_REJECT_DUPLICATES, NULL) : NULL;

	if (object && !json_is_object(object)) {
		json_decref(object);
		return NULL;
	}
	return object;
}

/* The token of a link becomes a cookie and a key. */
static enum MHD_Result login_post(struct visit *visit)
{
	json_t *body = body_object(visit);
	const char *token = json_string_value(json_object_get(body, "token"));
	char cookie[SECRET_SIZE], key[SECRET_SIZE], header[160];
	struct MHD_Response *response;
	int r = token ? logins_enter(visit->console->logins, now_s(), token, cookie, key) : -EACCES;
	json_t *answer;
	char *text;

	json_decref(body);
	if (r < 0)
		return visit_fail(visit, r == -EACCES ? 401 : 500, r == -EACCES ? NP_R_NOT_PERMITTED : NP_R_FAILED,
				  "the link was used already, or is too old");
	answer = json_pack("{s:s}", "key", key);
	text = answer ? json_dumps(answer, JSON_COMPACT) : NULL;
	json_decref(answer);
	response = text ? MHD_create_response_from_buffer(strlen(text), text, MHD_RESPMEM_MUST_FREE) : NULL;
	if (!response) {
		free(text);
		return MHD_NO;
	}
	snprintf(header, sizeof(header), "%s=%s; Path=/; HttpOnly; SameSite=Strict%s", visit->console->cookie, cookie,
		 visit->console->secure ? "; Secure" : "");
	MHD_add_response_header(response, "Set-Cookie", header);
	return visit_send(visit, 200, "application/json", response);
}

/* A link for another browser. */
static enum MHD_Result link_post(struct visit *visit)
{
	char token[SECRET_SIZE];

	if (logins_invite(visit->console->logins, now_s(), token) < 0)
		return visit_fail(visit, 500, NP_R_FAILED, "there are no random numbers");
	return json_send(visit, json_pack("{s:s}", "token", token));
}

static enum MHD_Result info_get(struct visit *visit)
{
	const struct console *console = visit->console;

	return json_send(visit, json_pack("{s:s,s:s,s:b,s:b,s:s}", "version", NETPAWL_VERSION, "user", console->user,
					  "read_only", console->rights.read_only, "approver", console->rights.approver,
					  "socket", console->socket));
}

/* {name, text, cases, history, outline}: how the live policy would be with this text in the place of that file. */
static enum MHD_Result policy_post(struct visit *visit)
{
	cleanup(client_answer_free) struct client_answer source = { 0 }, events = { 0 };
	static pthread_mutex_t one = PTHREAD_MUTEX_INITIALIZER; /* a policy may take much memory */
	json_t *body = body_object(visit), *running = NULL, *found = NULL;
	const char *name = json_string_value(json_object_get(body, "name"));
	const char *text = json_string_value(json_object_get(body, "text"));
	int r = -EINVAL;

	if (name && text && strlen(text) == json_string_length(json_object_get(body, "text")))
		r = client_call(visit->console->socket, "GET", "/v1/policy/source", NULL, &source);
	if (r == 0 && source.status == 200 && json_is_true(json_object_get(body, "history")))
		r = client_call(visit->console->socket, "GET", "/v1/events?limit=1000", NULL, &events);
	if (r == 0 && source.status == 200)
		running = json_loadb(source.body.data, source.body.len, 0, NULL);
	if (running) {
		pthread_mutex_lock(&one);
		found = policy_try(running, name, text, json_string_value(json_object_get(body, "cases")),
				   events.status == 200 ? &events.body : NULL);
		pthread_mutex_unlock(&one);
	}
	if (found && json_is_true(json_object_get(body, "outline")))
		json_object_set_new(found, "outline", outline_make(text, strlen(text)) ?: json_null());
	json_decref(body);
	json_decref(running);
	if (found)
		return json_send(visit, found);
	if (r == 0 && source.status != 200)
		return visit_fail(visit, (unsigned)source.status, NP_R_NO_ROLE, "the policy is not for you to see");
	return r == -EINVAL ? visit_fail(visit, 400, NP_R_BAD_REQUEST, "it takes a name and a text without NUL")
			    : visit_fail(visit, 503, NP_R_NO_DAEMON, "the live policy is not to be had");
}

/* ?after=N: the next events behind that one, with what they are in an HTTP archive. */
static enum MHD_Result har_get(struct visit *visit)
{
	cleanup(client_answer_free) struct client_answer events = { 0 };
	struct buf out = BUF_INIT(2 * NP_ANSWER_BYTES);
	const char *number = visit->query && !strncmp(visit->query, "after=", 6) ? visit->query + 6 : "";
	char path[64];
	size_t len;
	int r;

	if (!*number || strspn(number, "0123456789") != strlen(number) || strlen(number) > 18)
		return visit_fail(visit, 400, NP_R_BAD_REQUEST, "it takes after=NUMBER");
	snprintf(path, sizeof(path), "/v1/events?after=%s&limit=200", number);
	r = client_call(visit->console->socket, "GET", path, NULL, &events);
	if (r < 0)
		return visit_fail(visit, 503, NP_R_NO_DAEMON, strerror(-r));
	if (events.status != 200)
		return visit_fail(visit, (unsigned)events.status, NP_R_NO_ROLE, "events are not for you to see");
	r = har_page_make(&events.body, &out);
	len = out.len;
	if (r < 0 || !out.data) {
		buf_free(&out);
		return r < 0 ? visit_fail(visit, 500, NP_R_FAILED, strerror(-r))
			     : visit_text(visit, 200, "application/x-ndjson", strdup(""), 0);
	}
	return visit_text(visit, 200, "application/x-ndjson", buf_take(&out), len);
}

/* The JSON Schema of policy files: what the editor completes by. */
static enum MHD_Result schema_get(struct visit *visit)
{
	struct buf out = BUF_INIT(1u << 20);
	size_t len;

	policy_schema(&out);
	len = out.len;
	return visit_text(visit, 200, "application/json", buf_take(&out), len);
}

bool own_is(const char *path)
{
	return !strncmp(path, "/console/", 9);
}

enum MHD_Result own_call(struct visit *visit, bool logged_in)
{
	bool posts = !strcmp(visit->method, "POST");

	if (posts && !strcmp(visit->path, "/console/login"))
		return login_post(visit);
	if (!logged_in)
		return visit_fail(visit, 401, NP_R_NOT_PERMITTED, "open the link that netpawl console has printed");
	if (posts && !strcmp(visit->path, "/console/link"))
		return link_post(visit);
	if (posts && !visit->console->rights.approver && !strcmp(visit->path, "/console/policy"))
		return policy_post(visit);
	if (!posts && !visit->console->rights.approver && !strcmp(visit->path, "/console/har"))
		return har_get(visit);
	if (!posts && !strcmp(visit->path, "/console/schema"))
		return schema_get(visit);
	if (!posts && !strcmp(visit->path, "/console/info"))
		return info_get(visit);
	return visit_fail(visit, 404, NP_R_NO_SUCH_PATH, "the console has no such page");
}
