/* SPDX-License-Identifier: MIT */
/* From rules to tables, once all rules are read. */
#pragma once

#include "policy/policy.h"

/* Fills names, nets and full_nets. 0 or -ENOMEM. */
int policy_compile(struct policy *policy);
/* Warns of each rule that can never match because earlier ones cover it. Needs the tables. */
void policy_check_cover(const struct policy *policy, struct problems *problems);
/* Warns of each grant of what nobody looks at, if a deny above it looks at requests of the same destination. */
void policy_check_unseen(const struct policy *policy, struct problems *problems);
/* A warning for each grant that opens nothing, or everything below a domain and not the domain. */
void policy_check_hosts(const struct policy *policy, struct problems *problems);
/* A warning for each host of a credential that should not have it, or never gets it. */
void policy_check_credentials(const struct policy *policy, struct problems *problems);
