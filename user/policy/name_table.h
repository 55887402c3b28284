/* SPDX-License-Identifier: MIT */
/* Name patterns as a trie over labels, from the right: ten thousand names cost no more than ten. */
#pragma once

#include "policy/policy.h"
#include "policy/target.h"

/* Of the name patterns of policy->rules. In arena. */
int name_table_make(struct arena *arena, const struct policy *policy, struct name_table **ret);

/* Shows every run of targets whose patterns match name, each in the order of the rules; the runs are in no order. false
 * ends it. Instead of a name it may be a pattern, but none with a "." in front: then those that match whatever that pattern
 * matches. */
typedef bool name_visitor(void *ctx, const struct target *targets, size_t n);
void name_table_visit(const struct name_table *table, const char *name, name_visitor *visit, void *ctx);
