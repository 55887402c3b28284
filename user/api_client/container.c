/* SPDX-License-Identifier: MIT */
#include "api_client/container.h"

#include <string.h>

#include "api_client/api.h"
#include "reason.h"

int container_unknown(const char *socket, const char *subject, struct session_name *ret, bool *ret_go_on)
{
	_api_answer_ struct api_answer answer = { 0 };
	int code = api_call(socket, subject, "GET", "/v1/launch", NULL, &answer);
	const char *unknown = member_text(answer.json, "unknown_containers"), *problem;

	*ret_go_on = false;
	if (code != CLI_OK)
		return code;
	if (unknown && !strcmp(unknown, "ignore"))
		return CLI_OK;
	*ret_go_on = unknown && session_name_parse(unknown, ret, &problem) == 0;
	if (*ret_go_on)
		return CLI_OK;
	error_print(subject, NP_R_BAD_NAME, "it has no annotation netpawl.dev/session, and the policy wants one");
	return CLI_REFUSED;
}

int container_raise(const char *socket, const char *subject, const char *session, enum level level)
{
	_api_answer_ struct api_answer answer = { 0 };
	_free_ char *path = api_session_path(session, "/datasets");

	return path ? api_call(socket, subject, "POST", path,
			       json_pack("{s:s,s:s,s:b}", "level", level_name(level), "reason",
					 "annotation of a container", "create", 1),
			       &answer)
		    : CLI_REFUSED;
}

int container_parent(const char *socket, const char *session, bool systemd, struct api_answer *ret)
{
	json_t *body;
	int code = api_body(
		session, json_pack("{s:s,s:b,s:b}", "session", session, "parent", 1, "systemd", (int)systemd), &body);

	if (code == CLI_OK)
		code = api_call(socket, session, "POST", "/v1/sandboxes", body, ret);
	if (code == CLI_OK && !member_text(ret->json, "cgroup_parent")) {
		error_print(session, NP_R_FAILED, "the daemon's answer has no cgroup");
		return CLI_REFUSED;
	}
	return code;
}
