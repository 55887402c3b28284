/* SPDX-License-Identifier: MIT */
#include "control/routes.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "vocab/limits.h"

/* A role that a route does not name may not call it: deny is the default of a new line. An operator may call
 * everything. */
static const struct route routes[] = {
	{ "GET", "/v1/health", health_get, ROLE_APPROVER | ROLE_EDITOR | ROLE_READER, SCOPE_ANY, { NULL } },
	{ "GET", "/v1/node", node_get, ROLE_READER, SCOPE_NONE, { NULL } },
	{ "GET", "/v1/metrics", metrics_get, ROLE_READER, SCOPE_NONE, { NULL } },
	{ "GET", "/v1/debug", debug_get, 0, SCOPE_NONE, { "session", "after" } },
	{ "POST", "/v1/sessions", sessions_create, 0, SCOPE_BODY, { NULL } },
	{ "GET", "/v1/sessions", sessions_list, ROLE_READER, SCOPE_LIST, { "ended", "after", "limit" } },
	{ "GET", "/v1/sessions/*/*", session_get, ROLE_READER, SCOPE_PATH, { NULL } },
	{ "DELETE", "/v1/sessions/*/*", session_end, 0, SCOPE_PATH, { NULL } },
	{ "POST", "/v1/sessions/*/*/forget", session_forget, 0, SCOPE_NONE, { NULL } },
	{ "POST", "/v1/sessions/*/*/datasets", session_escalate, 0, SCOPE_PATH, { NULL } },
	{ "GET", "/v1/sessions/*/*/context", context_get, ROLE_READER, SCOPE_PATH, { NULL } },
	{ "PUT", "/v1/sessions/*/*/context", context_put, 0, SCOPE_PATH, { NULL } },
	{ "GET", "/v1/sessions/*/*/ca", session_ca_get, 0, SCOPE_PATH, { NULL } },
	{ "GET", "/v1/sessions/*/*/placeholders", placeholders_get, 0, SCOPE_PATH, { NULL } },
	{ "GET", "/v1/sessions/*/*/why", session_why, ROLE_READER, SCOPE_PATH, { "last" } },
	{ "POST", "/v1/sessions/*/*/explain", session_explain, ROLE_READER, SCOPE_PATH, { NULL } },
	{ "GET", "/v1/sessions/*/*/notices", notices_get, ROLE_READER, SCOPE_PATH, { "reader", "after", "follow" } },
	{ "POST", "/v1/sessions/*/*/notices/ack", notices_ack, 0, SCOPE_PATH, { NULL } },
	{ "POST", "/v1/sandboxes", sandboxes_create, 0, SCOPE_NONE, { NULL } },
	{ "GET", "/v1/sandboxes", sandboxes_list, ROLE_READER, SCOPE_LIST, { NULL } },
	{ "GET", "/v1/sandboxes/*", sandbox_get, ROLE_READER, SCOPE_SANDBOX, { "settled", "ended" } },
	{ "DELETE", "/v1/sandboxes/*", sandbox_remove, 0, SCOPE_SANDBOX, { NULL } },
	{ "POST", "/v1/forwards", forwards_create, 0, SCOPE_NONE, { NULL } },
	{ "POST", "/v1/forwards/*", forward_socket, 0, SCOPE_NONE, { NULL } },
	{ "DELETE", "/v1/forwards/*", forward_remove, 0, SCOPE_NONE, { NULL } },
	{ "GET", "/v1/launch", launch_get, 0, SCOPE_NONE, { NULL } },
	{ "POST", "/v1/runs", runs_create, 0, SCOPE_BODY, { NULL } },
	{ "GET", "/v1/runs", runs_list, ROLE_APPROVER | ROLE_INBOX | ROLE_READER, SCOPE_LIST, { "session", "state" } },
	{ "GET", "/v1/runs/*", run_get, ROLE_APPROVER | ROLE_INBOX | ROLE_READER, SCOPE_RUN, { "wait" } },
	{ "GET", "/v1/runs/*/output", run_output_get, 0, SCOPE_RUN, { "follow" } },
	{ "POST", "/v1/runs/*/approve", run_approve, ROLE_APPROVER | ROLE_INBOX, SCOPE_NONE, { NULL } },
	{ "POST", "/v1/runs/*/reject", run_reject, ROLE_APPROVER | ROLE_INBOX, SCOPE_NONE, { NULL } },
	{ "POST", "/v1/runs/*/input", run_input_post, 0, SCOPE_RUN, { NULL } },
	{ "POST", "/v1/runs/*/cancel", run_cancel, 0, SCOPE_RUN, { NULL } },
	{ "POST", "/v1/runs/*/end", run_end, 0, SCOPE_NONE, { NULL } },
	{ "GET",
	  "/v1/questions",
	  questions_list,
	  ROLE_APPROVER | ROLE_INBOX | ROLE_READER,
	  SCOPE_LIST,
	  { "session", "state", "after", "wait", "follow" } },
	{ "GET", "/v1/questions/*", question_get, ROLE_APPROVER | ROLE_INBOX | ROLE_READER, SCOPE_LIST, { NULL } },
	{ "POST", "/v1/questions/*/answer", question_answer, ROLE_APPROVER | ROLE_INBOX, SCOPE_NONE, { NULL } },
	{ "POST", "/v1/questions/*/revoke", question_revoke, ROLE_APPROVER | ROLE_INBOX, SCOPE_NONE, { NULL } },
	{ "GET", "/v1/credentials", credentials_list, ROLE_READER, SCOPE_NONE, { NULL } },
	{ "POST", "/v1/credentials/*/refresh", credential_refresh, 0, SCOPE_NONE, { NULL } },
	{ "GET", "/v1/policy", policy_get, ROLE_APPROVER | ROLE_EDITOR | ROLE_READER, SCOPE_NONE, { NULL } },
	{ "GET", "/v1/policy/source", policy_source_get, ROLE_EDITOR | ROLE_READER, SCOPE_NONE, { NULL } },
	{ "PUT", "/v1/policy/file", policy_file_save, ROLE_EDITOR, SCOPE_NONE, { NULL } },
	{ "POST", "/v1/policy/reload", policy_reload, 0, SCOPE_NONE, { NULL } },
	{ "GET",
	  "/v1/events",
	  events_get,
	  ROLE_READER,
	  SCOPE_QUERY,
	  { "session", "reason", "after", "limit", "follow", "since" } },
};

struct span {
	char *at;
	size_t len;
};

/* Both start with a slash. args gets what the stars matched. */
static bool pattern_matches(const char *pattern, char *path, struct span args[REQUEST_ARGS_MAX])
{
	size_t stars = 0;

	while (*pattern == '/' && *path == '/') {
		size_t want = strcspn(++pattern, "/"), have = strcspn(++path, "/");

		if (want == 1 && *pattern == '*') {
			if (have == 0 || stars == REQUEST_ARGS_MAX)
				return false;
			args[stars++] = (struct span){ path, have };
		} else if (want != have || memcmp(pattern, path, want) != 0) {
			return false;
		}
		pattern += want;
		path += have;
	}
	return *pattern == '\0' && *path == '\0';
}

static void allow_add(char *allow, size_t size, const char *method)
{
	size_t len = strlen(allow);

	snprintf(allow + len, size - len, "%s%s", len ? ", " : "", method);
}

int route_find(const char *method, char *path, struct route_match *ret)
{
	const char *wanted = strcmp(method, "HEAD") == 0 ? "GET" : method;
	struct route_match match = { .route = NULL };
	struct span args[REQUEST_ARGS_MAX] = { 0 };

	for (size_t i = 0; i < ARRAY_SIZE(routes); i++) {
		const struct route *route = &routes[i];

		if (!pattern_matches(route->pattern, path, args))
			continue;
		if (strcmp(route->method, wanted) == 0) {
			match.route = route;
			break;
		}
		allow_add(match.allow, sizeof(match.allow), route->method);
		if (strcmp(route->method, "GET") == 0)
			allow_add(match.allow, sizeof(match.allow), "HEAD");
	}
	if (!match.route) {
		if (!match.allow[0])
			return -ENOENT;
		*ret = match;
		return -EOPNOTSUPP;
	}
	for (size_t i = 0; i < ARRAY_SIZE(args); i++) {
		if (!args[i].at)
			continue;
		args[i].at[args[i].len] = '\0';
		match.args[i] = args[i].at;
	}
	match.allow[0] = '\0';
	*ret = match;
	return 0;
}

bool route_takes_body(const struct route *route)
{
	return strcmp(route->method, "POST") == 0 || strcmp(route->method, "PUT") == 0;
}

size_t route_body_max(const struct route *route)
{
	return route->fn == policy_file_save ? NP_POLICY_BODY : NP_BODY_MAX;
}
