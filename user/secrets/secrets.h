/* SPDX-License-Identifier: MIT */
/*
 * The values of credentials, by the policy that they belong to and by name. The daemon has those that its sources gave
 * (vault.h), a worker those that the daemon gave it. A value of one policy is no value of another, even if the names are the
 * same: the other may send it elsewhere.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "policy/policy.h"
#include "vocab/limits.h"

struct secret {
	char policy[POLICY_HASH_SIZE];
	char name[NP_NAME_MAX + 1];
	char *value; /* locked; not NUL-terminated. It has no NUL, and is not empty */
	size_t len;
	uint64_t expires_ns; /* CLOCK_MONOTONIC, not used from then on; 0: never */
};

struct secrets {
	struct secret items[2 * NP_CREDENTIALS_MAX]; /* of a policy and of the next */
	size_t n;
	uint64_t generation; /* another one after each change: what was made of the values has to be made anew */
};

/* Copies the value, in the place of the one that is there. len 0: it is forgotten. 0, -EINVAL, -ENOSPC, or -ENOMEM; when it
 * fails there is none. */
int secrets_put(struct secrets *secrets, const char *policy, const char *name, const char *value, size_t len,
		uint64_t expires_ns);
/* NULL: there is none, or it has expired. Valid until the next change. */
const struct secret *secrets_find(const struct secrets *secrets, const char *policy, const char *name, uint64_t now_ns);
/* Forgets all but those of this policy; NULL: all. */
void secrets_keep(struct secrets *secrets, const char *policy);
