/* SPDX-License-Identifier: MIT */
#include "policy/compile.h"

#include "policy/name_table.h"
#include "policy/nets.h"

int policy_compile(struct policy *policy)
{
	int e = name_table_make(policy->arena, policy, &policy->names);

	if (e == 0)
		e = net_table_make(policy->arena, policy, policy->rules, policy->n_rules, &policy->nets);
	if (e == 0)
		e = net_table_make(policy->arena, policy, policy->full, policy->n_full, &policy->full_nets);
	if (e == 0)
		e = net_table_make(policy->arena, policy, &policy->read_only, 1, &policy->read_nets);
	return e;
}
