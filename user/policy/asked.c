/* SPDX-License-Identifier: MIT */
#include "policy/asked.h"

#include "base/arena.h"
#include "base/chars.h"
#include "policy/decide.h"
#include "policy/parse_attempt.h"
#include "vocab/limits.h"

void asked_place(const struct policy *policy, enum level level, const struct verdict *verdict,
		 char text[static PLACE_TEXT_SIZE])
{
	char place[PLACE_TEXT_SIZE];

	place_format(policy, verdict->rule ? &verdict->rule->at : &policy->fallback[level].at, place);
	text_ascii(text, PLACE_TEXT_SIZE, place);
}

uint64_t asked_rule(const struct verdict *verdict)
{
	return verdict->rule ? verdict->rule->mark : RULE_MARK_DEFAULT;
}

bool asked_still(const struct policy *policy, const struct np_rung *rung, const char *session, const char *method,
		 const char *url, bool has_body, uint64_t rule)
{
	struct facts facts = { .rung = *rung, .session = session, .has_body = has_body };
	_arena_ struct arena *arena = NULL;
	struct verdict verdict;
	const char *problem;

	if (arena_new(NP_CASE_MEMORY, &arena) < 0 || (method[0] ? attempt_request(arena, method, url, &facts, &problem)
								: attempt_connect(arena, url, &facts, &problem)) < 0)
		return false;
	verdict = policy_decide(policy, &facts);
	return (verdict.action == ACTION_ASK || verdict.action == ACTION_DECIDE) && asked_rule(&verdict) == rule;
}
