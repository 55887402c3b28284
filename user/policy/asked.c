/* SPDX-License-Identifier: MIT */
#include "policy/asked.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

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

static int headers_read(struct arena *arena, const char *lines, struct facts *facts)
{
	const char **names = arena_alloc(arena, NP_QUESTION_HEADERS, sizeof(*names));
	size_t n = 0;

	if (!names)
		return -ENOMEM;
	for (const char *at = lines, *end; (end = strchr(at, '\n')) && n < NP_QUESTION_HEADERS - 1; at = end + 1) {
		char *name = arena_text(arena, at, strcspn(at, ":\n"));

		if (!name)
			return -ENOMEM;
		for (char *p = name; *p; p++)
			*p = (char)tolower((unsigned char)*p);
		names[n++] = name;
	}
	names[n] = NULL;
	facts->headers = names;
	return 0;
}

bool asked_still(const struct policy *policy, const struct asked *asked)
{
	struct facts facts = { .rung = asked->rung, .session = asked->session, .has_body = asked->has_body };
	_arena_ struct arena *arena = NULL;
	struct verdict verdict;
	const char *problem;
	int r = arena_new(NP_CASE_MEMORY, &arena);

	if (!r && asked->method[0])
		r = attempt_request(arena, asked->method, asked->url, &facts, &problem);
	else if (!r)
		r = attempt_connect(arena, asked->url, &facts, &problem);
	if (!r && asked->method[0])
		r = headers_read(arena, asked->headers, &facts);
	if (r < 0)
		return false;
	verdict = policy_decide(policy, &facts);
	return (verdict.action == ACTION_ASK || verdict.action == ACTION_DECIDE) && asked_rule(&verdict) == asked->rule;
}
