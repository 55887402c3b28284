/* SPDX-License-Identifier: MIT */
#include "console/policy_try.h"

#include <string.h>

#include "api_client/message.h"
#include "base/arena.h"
#include "policy/case.h"
#include "policy/outcome.h"
#include "policy/parse_attempt.h"
#include "policy/snapshot.h"
#include "vocab/level.h"
#include "vocab/limits.h"
#include "vocab/words.h"

#define RECORD_MAX (NP_POLICY_BYTES + (1u << 20)) /* the files and their names */

/* With text in the place of what the file of that name has; NULL: as it is. */
static int source_load(const json_t *source, const char *name, const char *text, struct policy **ret,
		       struct problems *problems)
{
	_buf_ struct buf record = BUF_INIT(RECORD_MAX);
	const json_t *file;
	size_t i;

	snapshot_begin(&record, member_text(source, "shown") ?: "", member_text(source, "first") ?: "");
	json_array_foreach(json_object_get(source, "files"), i, file)
	{
		const char *own = member_text(file, "name") ?: "";
		const json_t *old = json_object_get(file, "text");
		bool other = text && !strcmp(own, name);

		snapshot_add(&record, own, other ? text : json_string_value(old) ?: "",
			     other ? strlen(text) : json_string_length(old));
	}
	if (buf_error(&record))
		return buf_error(&record);
	return policy_load_snapshot(record.data, record.len, ret, problems);
}

static json_t *problems_array(const struct problems *problems, bool warnings)
{
	json_t *array = json_array();

	for (size_t i = 0; i < problems->count; i++) {
		const struct problem *problem = &problems->items[i];

		if (problem->warning == warnings)
			json_array_append_new(array, json_pack("{s:s,s:i,s:i,s:s}", "file", problem->file, "line",
							       (int)problem->line, "column", (int)problem->column,
							       "message", problem->text));
	}
	return array;
}

/* -- cases ------------------------------------------------------------------------ */

static json_t *cases_run(const struct policy *policy, const char *text)
{
	_problems_ struct problems problems = { 0 };
	_case_file_ struct case_file *cases = NULL;
	json_t *failed = json_array();

	if (case_file_parse("cases", text, strlen(text), &cases, &problems) < 0) {
		for (size_t i = 0; i < problems.count; i++)
			json_array_append_new(failed, json_pack("{s:i,s:s}", "line", (int)problems.items[i].line,
								"message", problems.items[i].text));
		return failed;
	}
	for (size_t i = 0; i < cases->n_items; i++) {
		struct case_outcome out = case_run(policy, &cases->items[i]);
		char expected[CASE_TEXT_SIZE], actual[CASE_TEXT_SIZE];

		if (out.holds)
			continue;
		case_expected_format(&cases->items[i], expected);
		case_actual_format(policy, &out, actual);
		json_array_append_new(failed, json_pack("{s:i,s:s,s:s,s:s}", "line", (int)cases->items[i].line, "text",
							cases->items[i].text, "expected", expected, "actual", actual));
	}
	return failed;
}

/* -- the history -------------------------------------------------------------------- */

/* What is known of a request of the history. False: it is none, or was not judged by rules. */
static bool event_facts(const json_t *event, struct arena *arena, struct facts *ret)
{
	const char *method = member_text(event, "method"), *url = member_text(event, "url"), *problem;
	const char *kind = member_text(event, "kind");
	unsigned mode = mode_parse(member_text(event, "mode") ?: "");
	enum level level;

	if (!method || !url || !kind || (strcmp(kind, "allow") != 0 && strcmp(kind, "refuse") != 0))
		return false;
	if (mode != NP_PROXIED || level_parse(member_text(event, "level") ?: "", &level) < 0)
		return false;
	*ret = (struct facts){ .rung = { .level = (uint8_t)level,
					 .mode = NP_PROXIED,
					 .flags =
						 json_is_true(json_object_get(event, "read_only")) ? NP_READ_ONLY : 0 },
			       .session = member_text(event, "session") };
	return attempt_request(arena, method, url, ret, &problem) == 0;
}

static void change_add(json_t *changes, const json_t *event, const struct policy *then, const struct verdict *before,
		       const struct verdict *after)
{
	char place[PLACE_TEXT_SIZE] = "";

	if (after->rule)
		place_format(then, &after->rule->at, place);
	json_array_append_new(
		changes, json_pack("{s:O*,s:O*,s:O*,s:s,s:s,s:s,s:s}", "session", json_object_get(event, "session"),
				   "method", json_object_get(event, "method"), "url", json_object_get(event, "url"),
				   "before", action_name(before->action), "after", action_name(after->action), "reason",
				   reason_token(after->reason), "rule", place));
}

static void events_compare(const struct policy *now, const struct policy *then, const struct buf *events, json_t *ret)
{
	json_t *changes = json_array();
	const char *at = events->data, *end = at ? at + events->len : NULL, *line_end;
	int compared = 0;

	for (; at && at < end && (line_end = memchr(at, '\n', (size_t)(end - at))); at = line_end + 1) {
		_json_ json_t *event = json_loadb(at, (size_t)(line_end - at), 0, NULL);
		_arena_ struct arena *arena = NULL;
		struct verdict before, after;
		struct facts facts;

		if (!event || arena_new(NP_CASE_MEMORY, &arena) < 0 || !event_facts(event, arena, &facts))
			continue;
		compared++;
		before = policy_outcome(now, &facts);
		after = policy_outcome(then, &facts);
		if (before.action != after.action)
			change_add(changes, event, then, &before, &after);
	}
	json_object_set_new(ret, "compared", json_integer(compared));
	json_object_set_new(ret, "changes", changes);
}

json_t *policy_try(const json_t *source, const char *name, const char *text, const char *cases,
		   const struct buf *events)
{
	_problems_ struct problems problems = { 0 }, old_problems = { 0 };
	_policy_ struct policy *now = NULL, *then = NULL;
	bool ok = source_load(source, name, text, &then, &problems) == 0 && then;
	json_t *ret = json_pack("{s:b,s:i,s:o,s:o}", "ok", ok, "rules", ok ? (int)then->n_rules : 0, "errors",
				problems_array(&problems, false), "warnings", problems_array(&problems, true));

	if (!ret || !ok)
		return ret;
	json_object_set_new(ret, "hash", json_string(then->hash));
	if (cases)
		json_object_set_new(ret, "failed", cases_run(then, cases));
	if (events && source_load(source, "", NULL, &now, &old_problems) == 0 && now)
		events_compare(now, then, events, ret);
	return ret;
}
