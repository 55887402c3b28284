/* SPDX-License-Identifier: MIT */
/* Grants that a name misses by little, for people who wonder why it was refused. No part of a decision. Pure. */
#pragma once

#include "policy/decide.h"

struct near_miss {
	const struct rule *rule;
	const struct pattern *pattern;
	enum near_kind {
		NEAR_DOMAIN, /* "*.example.org" is granted, and example.org is asked for */
		NEAR_BELOW,  /* "example.org" is, and a name below it is asked for */
		NEAR_DEEPER, /* "*.example.org" is, and a name further below is asked for */
		NEAR_WORD,   /* it is written almost like that */
	} kind;
};

#define NEAR_MISSES_MAX 5

/* Of facts->name, at its level and for its session: how many, the nearest kind first. 0 without a name, and for whatever is
 * not refused for want of a rule. words: if there is none of the others, NEAR_WORD, too, which looks at every
 * destination of the policy. */
size_t policy_near_misses(const struct policy *policy, const struct facts *facts, bool words,
			  struct near_miss ret[static NEAR_MISSES_MAX]);

/* "\"*.example.org\" does not cover \"example.org\" itself; \".example.org\" does" */
#define NEAR_TEXT_SIZE 1024
void near_miss_text(const struct near_miss *near, const char *name, char text[static NEAR_TEXT_SIZE]);
