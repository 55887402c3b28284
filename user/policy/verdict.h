/* SPDX-License-Identifier: MIT */
/* What the policy says of one attempt: see decide.h. Code that acts on a verdict needs no more than this. */
#pragma once

#include "policy/policy.h"
#include "reason.h"

struct verdict {
	enum action action;
	enum np_reason reason;	       /* NP_R_RULE_ALLOWS, NP_R_RULE_DENIES, NP_R_NOT_IN_POLICY, ... */
	const struct rule *rule;       /* NULL: the mode, the default or a built-in refusal */
	const struct pattern *pattern; /* the destination of the rule that matched; NULL: not known */
	/* Of an allow: */
	bool inspect;		  /* judge each request; false: let the bytes pass */
	const struct rule *looks; /* the rule says inspect: false, but this deny above it looks at requests; or NULL */
	bool websocket;
	uint64_t max_body;
	uint32_t capture;
	struct timeouts timeouts;
};

/* Is it refused by a rule, or by way of a list, that says quiet: true? */
static inline bool denied_quietly(const struct rule *rule, const struct pattern *pattern)
{
	return (rule && rule->quiet) || (pattern && pattern->quiet);
}
