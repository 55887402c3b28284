/* SPDX-License-Identifier: MIT */
/* From rules to tables, once all rules are read. */
#ifndef NP_POLICY_COMPILE_H
#define NP_POLICY_COMPILE_H

#include "policy/policy.h"

/* Fills names, nets and full_nets. 0 or -ENOMEM. */
int policy_compile(struct policy *policy);
/* Warns of each rule that can never match because earlier ones cover it. Needs the tables. */
void policy_check_cover(const struct policy *policy, struct problems *problems);

#endif
