/* SPDX-License-Identifier: MIT */
/* The policy that the daemon enforces, read here once more from the same bytes; and where a session stands. */

#include "api_client/api.h"
#include "cli/policy.h"
#include "policy/snapshot.h"
#include "reason.h"
#include "vocab/level.h"
#include "vocab/words.h"

#define RECORD_MAX (NP_POLICY_BYTES + (1u << 20)) /* the files and their names */

/* What another version of the daemon might say. */
static int answer_odd(const char *what)
{
	error_print(what, NP_R_FAILED, "the daemon's answer is not understood: is it of another version?");
	return CLI_REFUSED;
}

static int policy_fetch(const struct cli *cli, struct policy **ret)
{
	_problems_ struct problems problems = { 0 };
	_api_answer_ struct api_answer answer = { 0 };
	_buf_ struct buf record = BUF_INIT(RECORD_MAX);
	int code = api_call(cli->socket, "policy", "GET", "/v1/policy/source", NULL, &answer);
	const char *shown = member_text(answer.json, "shown"), *first = member_text(answer.json, "first");
	const json_t *file;
	size_t i;

	if (code != CLI_OK)
		return code;
	snapshot_begin(&record, shown ? shown : "", first ? first : "");
	json_array_foreach(json_object_get(answer.json, "files"), i, file)
	{
		const json_t *text = json_object_get(file, "text");

		snapshot_add(&record, member_text(file, "name") ?: "", json_string_value(text) ?: "",
			     json_string_length(text));
	}
	if (buf_error(&record) || policy_load_snapshot(record.data, record.len, ret, &problems) < 0)
		return answer_odd("policy");
	return CLI_OK;
}

int policy_running(const struct cli *cli, const char *session, struct policy **ret, struct np_rung *ret_rung)
{
	_api_answer_ struct api_answer answer = { 0 };
	_free_ char *path = api_session_path(session, "");
	_policy_ struct policy *policy = NULL;
	enum level level;
	unsigned mode;
	int code = path ? api_call(cli->socket, session, "GET", path, NULL, &answer) : CLI_REFUSED;

	if (code == CLI_OK)
		code = policy_fetch(cli, &policy);
	if (code != CLI_OK)
		return code;
	mode = mode_parse(member_text(answer.json, "mode") ?: "");
	if (!mode || level_parse(member_text(answer.json, "level") ?: "", &level) < 0)
		return answer_odd(session);
	/* A session that was tightened stays so, whatever the policy of today says of its level. */
	*ret_rung = (struct np_rung){ .level = (uint8_t)level,
				      .mode = policy->modes.of[level] > mode ? policy->modes.of[level]
									     : (enum np_mode)mode };
	*ret = take_ptr(policy);
	return CLI_OK;
}
