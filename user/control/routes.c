/* SPDX-License-Identifier: MIT */
#include "control/routes.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"

static const struct route routes[] = {
	{ "GET", "/v1/health", health_get, { NULL } },
	{ "GET", "/v1/debug", debug_get, { "session", "after" } },
	{ "POST", "/v1/sessions", sessions_create, { NULL } },
	{ "GET", "/v1/sessions", sessions_list, { "ended", "after", "limit" } },
	{ "GET", "/v1/sessions/*/*", session_get, { NULL } },
	{ "DELETE", "/v1/sessions/*/*", session_end, { NULL } },
	{ "POST", "/v1/sessions/*/*/forget", session_forget, { NULL } },
	{ "POST", "/v1/sessions/*/*/datasets", session_escalate, { NULL } },
	{ "GET", "/v1/sessions/*/*/ca", session_ca_get, { NULL } },
	{ "GET", "/v1/sessions/*/*/why", session_why, { "last" } },
	{ "GET", "/v1/sessions/*/*/notices", notices_get, { "reader", "after", "follow" } },
	{ "POST", "/v1/sessions/*/*/notices/ack", notices_ack, { NULL } },
	{ "POST", "/v1/sandboxes", sandboxes_create, { NULL } },
	{ "GET", "/v1/sandboxes", sandboxes_list, { NULL } },
	{ "GET", "/v1/sandboxes/*", sandbox_get, { "settled", "ended" } },
	{ "DELETE", "/v1/sandboxes/*", sandbox_remove, { NULL } },
	{ "POST", "/v1/forwards", forwards_create, { NULL } },
	{ "POST", "/v1/forwards/*", forward_socket, { NULL } },
	{ "DELETE", "/v1/forwards/*", forward_remove, { NULL } },
	{ "GET", "/v1/launch", launch_get, { NULL } },
	{ "POST", "/v1/runs", runs_create, { NULL } },
	{ "GET", "/v1/runs", runs_list, { "session", "state" } },
	{ "GET", "/v1/runs/*", run_get, { "wait" } },
	{ "GET", "/v1/runs/*/output", run_output_get, { "follow" } },
	{ "POST", "/v1/runs/*/approve", run_approve, { NULL } },
	{ "POST", "/v1/runs/*/reject", run_reject, { NULL } },
	{ "POST", "/v1/runs/*/input", run_input_post, { NULL } },
	{ "POST", "/v1/runs/*/cancel", run_cancel, { NULL } },
	{ "POST", "/v1/runs/*/end", run_end, { NULL } },
	{ "GET", "/v1/policy", policy_get, { NULL } },
	{ "GET", "/v1/policy/source", policy_source_get, { NULL } },
	{ "POST", "/v1/policy/reload", policy_reload, { NULL } },
	{ "GET", "/v1/events", events_get, { "session", "reason", "after", "limit", "follow", "since" } },
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
	return strcmp(route->method, "POST") == 0;
}
