/* SPDX-License-Identifier: MIT */
/* What a session may reach, for people and for agents: the other half of a refusal. Pure. */
#pragma once

#include "base/buf.h"
#include "policy/policy.h"
#include "vocab/limits.h"

#define REACH_ITEM_SIZE 200

struct reach {
	/* Destinations of allow rules, first rules first: "api.github.com (only GET, HEAD on /user)",
	 * "db.corp.example:5432/tcp", "localhost:11434". One without a port goes by inspect_ports. */
	char items[NP_REACH_ITEMS][REACH_ITEM_SIZE];
	size_t count;
	size_t more;	/* destinations that are not in items */
	bool inspected; /* one of items goes by inspect_ports */
	bool asks;	/* about others a person is asked */
	bool decides;	/* about others a program decides */
	bool others;	/* what no rule speaks of is allowed, by name or at inspect_ports */
};

/* A destination as rules have it: "db.corp.example:5432/tcp". */
void pattern_put(struct buf *out, const struct pattern *pattern);

/* Of PROXIED; in the other modes no rule opens anything, and it is empty. A single host that an earlier rule denies is
 * left out; whether a pattern is denied in part is not told. */
void policy_reach(const struct policy *policy, const struct np_rung *rung, const char *session, struct reach *ret);

/* The same as the end of a sentence: "only api.openai.com, ... and itself". */
void reach_text(const struct policy *policy, enum np_mode mode, const struct reach *reach, struct buf *out);
