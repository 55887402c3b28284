/* SPDX-License-Identifier: MIT */
/* One pattern of a rule with what a decision needs of both, in 16 bytes: most decisions never look at the rule itself,
 * which with 100,000 of them would have to come from memory each time. */
#pragma once

#include "policy/policy.h"

#define TARGET_INSPECTED 1   /* pattern->inspected */
#define TARGET_INSPECT	 2   /* rule->inspect */
#define TARGET_WEBSOCKET 4   /* rule->websocket */
#define TARGET_BOUNDED	 8   /* rule->max_body is a bound */
#define TARGET_REQUEST	 16  /* rule_asks_request() */
#define TARGET_DNS	 32  /* rule->dns is not empty */
#define TARGET_SESSIONS	 64  /* rule->sessions: not for every session */
#define TARGET_MORE	 128 /* rule->capture, rule->timeouts: one of them is set */

struct target {
	uint32_t rule;	  /* its number */
	uint32_t pattern; /* index into policy->patterns */
	uint16_t first_port, last_port;
	uint8_t protocols, levels, action, flags;
};
_Static_assert(sizeof(struct target) == 16, "four to a cache line");

/* Every port of both protocols, and every request. */
static inline bool target_is_all(const struct target *t)
{
	return t->protocols == (PATTERN_TCP | PATTERN_UDP) && t->first_port <= 1 && t->last_port == UINT16_MAX &&
	       !(t->flags & (TARGET_REQUEST | TARGET_INSPECTED));
}

static inline struct target target_make(const struct policy *policy, const struct rule *rule, uint32_t index)
{
	const struct pattern *pattern = &policy->patterns[index];

	return (struct target){
		.rule = rule->number,
		.pattern = index,
		.first_port = pattern->first_port,
		.last_port = pattern->last_port,
		.protocols = pattern->protocols,
		.levels = rule->levels,
		.action = (uint8_t)rule->action,
		.flags = (uint8_t)((pattern->inspected ? TARGET_INSPECTED : 0) | (rule->inspect ? TARGET_INSPECT : 0) |
				   (rule->websocket ? TARGET_WEBSOCKET : 0) |
				   (rule->max_body != UINT64_MAX ? TARGET_BOUNDED : 0) |
				   (rule_asks_request(rule) ? TARGET_REQUEST : 0) | (rule->dns ? TARGET_DNS : 0) |
				   (rule->sessions ? TARGET_SESSIONS : 0) |
				   (rule->capture || rule->timeouts.idle || rule->timeouts.first_byte ||
						    rule->timeouts.connect
					    ? TARGET_MORE
					    : 0)),
	};
}
