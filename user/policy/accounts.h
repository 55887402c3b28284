/* SPDX-License-Identifier: MIT */
/* The users and groups that a policy names, as this host has them. The one part of policy/ that asks the host. */
#pragma once

#include "policy/policy.h"
#include "policy/problem.h"

/* Its number. False: the host has none of that name, and nobody is meant. */
bool account_find(const struct access_caller *caller, unsigned *ret);
/* Warns of those that the host does not have: what is meant for them is closed to everybody. */
void policy_accounts_check(const struct policy *policy, const char *file, struct problems *problems);
