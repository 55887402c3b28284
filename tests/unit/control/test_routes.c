/* SPDX-License-Identifier: MIT */
#include "control/routes.c"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

static char path[256];
static struct route_match match;

static int find(const char *method, const char *text)
{
	memset(&match, 0x55, sizeof(match));
	snprintf(path, sizeof(path), "%s", text);
	return route_find(method, path, &match);
}

static void finds_every_route(void **state)
{
	static const struct {
		const char *method, *path;
		request_fn *fn;
	} calls[] = {
		{ "GET", "/v1/health", health_get },
		{ "GET", "/v1/node", node_get },
		{ "GET", "/v1/metrics", metrics_get },
		{ "POST", "/v1/sessions", sessions_create },
		{ "GET", "/v1/sessions", sessions_list },
		{ "GET", "/v1/sessions/alice/demo", session_get },
		{ "DELETE", "/v1/sessions/alice/demo", session_end },
		{ "POST", "/v1/sessions/alice/demo/forget", session_forget },
		{ "POST", "/v1/sessions/alice/demo/datasets", session_escalate },
		{ "POST", "/v1/sandboxes", sandboxes_create },
		{ "GET", "/v1/sandboxes", sandboxes_list },
		{ "GET", "/v1/sandboxes/x", sandbox_get },
		{ "DELETE", "/v1/sandboxes/x", sandbox_remove },
		{ "GET", "/v1/sessions/alice/demo/context", context_get },
		{ "PUT", "/v1/sessions/alice/demo/context", context_put },
		{ "GET", "/v1/sessions/alice/demo/ca", session_ca_get },
		{ "GET", "/v1/sessions/alice/demo/why", session_why },
		{ "POST", "/v1/sessions/alice/demo/explain", session_explain },
		{ "GET", "/v1/sessions/alice/demo/notices", notices_get },
		{ "POST", "/v1/sessions/alice/demo/notices/ack", notices_ack },
		{ "POST", "/v1/runs", runs_create },
		{ "GET", "/v1/runs", runs_list },
		{ "GET", "/v1/runs/7", run_get },
		{ "GET", "/v1/runs/7/output", run_output_get },
		{ "POST", "/v1/runs/7/input", run_input_post },
		{ "POST", "/v1/runs/7/cancel", run_cancel },
		{ "POST", "/v1/runs/7/approve", run_approve },
		{ "POST", "/v1/runs/7/reject", run_reject },
		{ "POST", "/v1/runs/7/end", run_end },
		{ "GET", "/v1/questions", questions_list },
		{ "GET", "/v1/questions/7", question_get },
		{ "POST", "/v1/questions/7/answer", question_answer },
		{ "POST", "/v1/questions/7/revoke", question_revoke },
		{ "GET", "/v1/debug", debug_get },
		{ "GET", "/v1/policy", policy_get },
		{ "GET", "/v1/policy/source", policy_source_get },
		{ "PUT", "/v1/policy/file", policy_file_save },
		{ "POST", "/v1/policy/reload", policy_reload },
		{ "POST", "/v1/forwards", forwards_create },
		{ "POST", "/v1/forwards/1", forward_socket },
		{ "DELETE", "/v1/forwards/1", forward_remove },
		{ "GET", "/v1/launch", launch_get },
		{ "GET", "/v1/credentials", credentials_list },
		{ "POST", "/v1/credentials/github/refresh", credential_refresh },
		{ "GET", "/v1/sessions/alice/demo/placeholders", placeholders_get },
		{ "GET", "/v1/events", events_get },
	};

	(void)state;
	assert_int_equal(ARRAY_SIZE(calls), ARRAY_SIZE(routes));
	for (size_t i = 0; i < ARRAY_SIZE(calls); i++) {
		assert_int_equal(find(calls[i].method, calls[i].path), 0);
		assert_ptr_equal(match.route->fn, calls[i].fn);
		assert_string_equal(match.allow, "");
	}
}

static void hands_out_arguments(void **state)
{
	(void)state;
	assert_int_equal(find("POST", "/v1/sessions/alice/demo/datasets"), 0);
	assert_string_equal(match.args[0], "alice");
	assert_string_equal(match.args[1], "demo");
	assert_int_equal(find("GET", "/v1/sandboxes/alice.demo.12345678"), 0);
	assert_string_equal(match.args[0], "alice.demo.12345678");
	assert_null(match.args[1]);
	assert_int_equal(find("GET", "/v1/sessions/datasets/datasets"), 0);
	assert_string_equal(match.args[1], "datasets");
}

static void head_is_get(void **state)
{
	(void)state;
	assert_int_equal(find("HEAD", "/v1/health"), 0);
	assert_ptr_equal(match.route->fn, health_get);
	assert_int_equal(find("HEAD", "/v1/sessions/a/b/datasets"), -EOPNOTSUPP);
}

static void misses(void **state)
{
	static const char *const paths[] = {
		"",
		"/",
		"//",
		"/v1",
		"/v1/",
		"/v1/health/",
		"//v1/health",
		"/v1//health",
		"v1/health",
		"/v2/health",
		"/v1/sessions/",
		"/v1/sessions/alice",
		"/v1/sessions/alice/",
		"/v1/sessions//demo",
		"/v1/sessions/a/b/c",
		"/v1/sessions/a/b/datasets/",
		"/v1/sandboxes/",
		"/v1/sandboxes/a/b",
		"/v1/*",
		"/v1/healthy",
		"/v1/healt",
		"*",
		"/V1/health",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(paths); i++) {
		assert_int_equal(find("GET", paths[i]), -ENOENT);
		assert_string_equal(path, paths[i]);
	}
}

static void names_the_methods(void **state)
{
	(void)state;
	assert_int_equal(find("PUT", "/v1/sessions"), -EOPNOTSUPP);
	assert_string_equal(match.allow, "POST, GET, HEAD");
	assert_string_equal(path, "/v1/sessions");
	assert_int_equal(find("POST", "/v1/sessions/a/b"), -EOPNOTSUPP);
	assert_string_equal(match.allow, "GET, HEAD, DELETE");
	assert_string_equal(path, "/v1/sessions/a/b");
	assert_int_equal(find("GET", "/v1/sessions/a/b/datasets"), -EOPNOTSUPP);
	assert_string_equal(match.allow, "POST");
	assert_int_equal(find("get", "/v1/health"), -EOPNOTSUPP);
}

static void only_post_and_put_have_a_body(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(routes); i++)
		assert_int_equal(route_takes_body(&routes[i]), routes[i].method[0] == 'P');
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(finds_every_route), cmocka_unit_test(hands_out_arguments),
		cmocka_unit_test(head_is_get),	     cmocka_unit_test(misses),
		cmocka_unit_test(names_the_methods), cmocka_unit_test(only_post_and_put_have_a_body),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
