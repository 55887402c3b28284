/* SPDX-License-Identifier: MIT */
/* Ranges of addresses that rules name, nested as they lie in each other. */
#pragma once

#include "policy/policy.h"

struct net_node {
	struct np_addr addr;
	uint8_t bits;
	bool v4;
	bool metadata;		   /* it lies in a metadata range, or is one */
	const uint32_t *patterns;  /* indices into policy->patterns that name exactly this range, in rule order */
	uint32_t n_patterns;	   /* 0 for a metadata range that no rule names */
	const struct net_node *up; /* the narrowest range around it, or NULL */
};

struct net_table {
	const struct net_node *nodes; /* by family, address, bits: a range comes before what lies in it */
	size_t n;
};

/* Of the address patterns of these rules, and the metadata ranges. In arena. */
int net_table_make(struct arena *arena, const struct policy *policy, const struct rule *rules, size_t n_rules,
		   struct net_table **ret);
/* The narrowest range that holds addr (as np_addr_carried() gives it), or NULL. The others are up from there. */
const struct net_node *net_table_find(const struct net_table *table, const struct np_addr *addr);
