/* SPDX-License-Identifier: MIT */
#include "resolver/shares.h"

#include <errno.h>
#include <stdlib.h>

#include "vocab/limits.h"

int share_get(struct shares *shares, uint64_t owner, struct share **ret)
{
	const uint64_t hash = hash_number(&shares->key, owner);
	struct share *share = TABLE_FIND(&shares->by_owner, hash, struct share, node, it, it->owner == owner);

	if (share && share->names >= NP_NAMES_PER_OWNER)
		return -EAGAIN;
	if (!share && owner) {
		share = table_reserve(&shares->by_owner) == 0 ? calloc(1, sizeof(*share)) : NULL;
		if (!share)
			return -ENOMEM;
		share->owner = owner;
		table_add(&shares->by_owner, &share->node, hash);
	}
	*ret = share;
	return 0;
}

void share_put(struct shares *shares, struct share *share)
{
	if (!share || share->names)
		return;
	table_remove(&shares->by_owner, &share->node);
	free(share);
}

void shares_clear(struct shares *shares)
{
	table_clear(&shares->by_owner);
}
