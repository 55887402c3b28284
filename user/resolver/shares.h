/* SPDX-License-Identifier: MIT */
/* How many names each of those on whose behalf names are resolved has looked up now: nobody has so many that there is no room for what others
 * ask for. */
#pragma once

#include <stdint.h>

#include "base/hash.h"
#include "base/table.h"

struct share {
	struct table_node node;
	uint64_t owner;
	unsigned names; /* the holder's to count */
};

struct shares {
	struct hash_key key;
	struct table by_owner;
};

/* That of an owner who may have one more. *ret NULL: owner is 0, and nobody counts. 0, -EAGAIN, or -ENOMEM. */
int share_get(struct shares *shares, uint64_t owner, struct share **ret);
void share_put(struct shares *shares, struct share *share); /* it goes when it has none. NULL is fine */
void shares_clear(struct shares *shares);		    /* none has any */
