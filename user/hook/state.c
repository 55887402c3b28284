/* SPDX-License-Identifier: MIT */
#include "hook/state.h"

#include <errno.h>
#include <jansson.h>
#include <limits.h>
#include <string.h>

#include "base/cleanup.h"

static void cleanup_json(json_t **json)
{
	json_decref(*json);
}

static int state_bad(const char **ret_problem, const char *problem)
{
	*ret_problem = problem;
	return -EINVAL;
}

int oci_state_read(const char *data, size_t len, struct oci_state *ret, const char **ret_problem)
{
	cleanup(cleanup_json) json_t *root = json_loadb(data, len, JSON_REJECT_DUPLICATES, NULL);
	const json_t *id = json_object_get(root, "id"), *pid = json_object_get(root, "pid");
	struct oci_state state = { 0 };
	int r;

	if (!json_is_object(root))
		return state_bad(ret_problem, "it is no JSON object");
	if (!json_is_string(id) || !json_string_length(id) || json_string_length(id) > NP_CONTAINER_ID_MAX)
		return state_bad(ret_problem, "it has no \"id\"");
	if (!json_is_integer(pid) || json_integer_value(pid) <= 0 || json_integer_value(pid) > INT_MAX)
		return state_bad(ret_problem, "it has no \"pid\": the hook is for the stage createRuntime");
	memcpy(state.id, json_string_value(id), json_string_length(id));
	state.pid = (pid_t)json_integer_value(pid);
	r = annotations_read(json_object_get(root, "annotations"), &state.wish, ret_problem);
	if (r < 0)
		return r;
	*ret = state;
	return 0;
}
