/* SPDX-License-Identifier: MIT */
/*
 * What the editors of access: may change in a file of the policy. They say what may be reached, what is asked about and how much a
 * run may use. Who may call, which commands run, what secrets there are and where they go, which mode a level has and what of the
 * host is shown is the operators' business: whoever writes that could make themselves anything. Pure.
 */
#pragma once

#include <stddef.h>

#include "policy/policy.h"

/* 0 when an editor may make the one text of the other. -EACCES with the key, in words, that only operators change. -EINVAL: one of
 * them is no YAML. -ENOMEM. */
int editor_change_check(const char *before, size_t before_len, const char *after, size_t after_len,
			const char **ret_key);
/* Lists are the editors', and what operators write may name them: the hosts of credentials, of rules that carry one and of proxies,
 * the addresses of full and read_only. NULL when each of these reaches in the one policy what it does in the other, rules that went
 * aside; else its key. */
const char *editor_lists_check(const struct policy *before, const struct policy *after);
