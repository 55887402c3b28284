/* SPDX-License-Identifier: MIT */
#include "policy/accounts.h"

#include <grp.h>
#include <pwd.h>

#include "vocab/words.h"

bool account_find(const struct access_caller *caller, unsigned *ret)
{
	uint64_t number;

	if (count_parse(caller->name, UINT32_MAX - 1, &number)) {
		*ret = (unsigned)number;
		return true;
	}
	if (caller->is_group) {
		const struct group *group = getgrnam(caller->name);

		*ret = group ? group->gr_gid : 0;
		return group;
	} else {
		const struct passwd *user = getpwnam(caller->name);

		*ret = user ? user->pw_uid : 0;
		return user;
	}
}

void policy_accounts_check(const struct policy *policy, const char *file, struct problems *problems)
{
	const struct access_caller group = { .is_group = true, .name = policy->approval.group };
	unsigned id;

	if (group.name && !account_find(&group, &id))
		problem_add(problems, true, file, 0, 0,
			    "approval: this host has no group %s, so that approve.sock is root's alone", group.name);
	for (size_t i = 0; i < policy->n_access; i++)
		if (!account_find(&policy->access[i], &id))
			problem_add(problems, true, file, 0, 0,
				    "access: this host has no %s %s, so that nobody is meant",
				    policy->access[i].is_group ? "group" : "user", policy->access[i].name);
}
