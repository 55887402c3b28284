/* SPDX-License-Identifier: MIT */
#include "vocab/decision.h"

#include "base/chars.h"
#include "vocab/level.h"

int decision_kind_parse(const char *word, uint32_t *ret)
{
	static const char *const words[DECISION_KINDS] = { NULL, "allow", "deny", "ask", "raise", "need_body" };

	return WORD_PARSE(words, word, ret);
}

int decision_scope_parse(const char *word, uint32_t *ret)
{
	static const char *const words[REMEMBER_SCOPES] = { "none", "host", "session" };

	return WORD_PARSE(words, word, ret);
}

bool decision_is_valid(const struct decision *decision)
{
	return decision->id && decision->kind < DECISION_KINDS && decision->remember < REMEMBER_SCOPES &&
	       decision->level < LEVEL_COUNT && decision->ttl_s <= NP_DECISION_TTL_MAX_S &&
	       decision->max <= NP_DECIDE_BODY && (decision->kind == DECISION_NEED_BODY) == (decision->max > 0) &&
	       text_is_printable(decision->words, sizeof(decision->words));
}
