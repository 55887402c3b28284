/* SPDX-License-Identifier: MIT */
#include "cli/explain_asked.h"

#include "api_client/api.h"
#include "cli/policy.h"

int asked_now(const struct cli *cli, const char *session, const char *connect, const char *url,
	      const struct facts *facts, const struct verdict *verdict, json_t **ret)
{
	_api_answer_ struct api_answer answer = { 0 };
	_free_ char *path = NULL;
	json_t *body;
	int code;

	*ret = NULL;
	if (verdict->action != ACTION_ASK && verdict->action != ACTION_DECIDE)
		return CLI_OK;
	path = api_session_path(session, "/explain");
	code = path ? api_body(session,
			       connect ? json_pack("{s:s}", "connect", connect)
				       : json_pack("{s:s,s:s,s:I}", "method", facts->method, "url", url, "body",
						   (json_int_t)facts->body),
			       &body)
		    : CLI_REFUSED;
	if (code == CLI_OK)
		code = api_call(cli->socket, session, "POST", path, body, &answer);
	if (code == CLI_OK)
		*ret = json_incref(answer.json);
	return code;
}

void asked_print(const struct policy *policy, const struct facts *facts, const struct verdict *verdict,
		 const json_t *now)
{
	struct asked_whom whom;

	if (!asked_whom(policy, facts, verdict, &whom))
		return;
	output_clean_line(stdout, "  asked   %s", whom.whom);
	output_clean_line(stdout, "  about   %s", whom.about);
	output_clean_line(stdout, "  waits   %s", whom.waits);
	output_clean_line(stdout, "  retry   %s", whom.retry);
	if (now)
		output_clean_line(stdout, "  now     %s", member_text(now, "outcome") ?: "?");
}

json_t *asked_json(const struct policy *policy, const struct facts *facts, const struct verdict *verdict,
		   const json_t *now)
{
	struct asked_whom whom;

	if (!asked_whom(policy, facts, verdict, &whom))
		return json_null();
	return json_pack("{s:o,s:o,s:o,s:o,s:o,s:o,s:O*,s:O*,s:O*}", "decider",
			 text_json(whom.decider ? whom.decider->name : NULL), "timeout_ms",
			 json_integer((json_int_t)(whom.decider ? whom.decider->timeout_ms : policy->approval.hold_ms)),
			 "whom", text_json(whom.whom), "about", text_json(whom.about), "waits", text_json(whom.waits),
			 "retry", text_json(whom.retry), "now", json_object_get(now, "outcome"), "question",
			 json_object_get(now, "question"), "remembered", json_object_get(now, "remembered"));
}
