/* SPDX-License-Identifier: MIT */
/* What an exchange has to do with credentials: stage_credentials.c's. Others read which ones it carries. */
#ifndef NP_INSPECT_CARRIED_H
#define NP_INSPECT_CARRIED_H

#include <stdbool.h>
#include <stddef.h>

#include "policy/credential.h"
#include "vocab/limits.h"

struct exchange;

struct carried {
	char names[NP_CARRIED_MAX]
		  [NP_NAME_MAX + 1]; /* of the credentials whose values it carries: the policy may change */
	unsigned n;
	bool body_values;    /* values may stand in its body ... */
	enum slot_kind body; /* ... which is of this kind */
	size_t tail_len;     /* the last bytes of its body that were looked at */
	char tail[NP_PLACEHOLDER_MAX];
};

/* The i-th that it carries, of the policy in hand; NULL: that has none of this name. */
const struct credential *carried_credential(const struct exchange *exchange, unsigned i);

#endif
