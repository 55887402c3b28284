/* SPDX-License-Identifier: GPL-2.0-only */
/* Giving a socket of a sandbox a slot at its port. */
#include <asm/errno.h>

#include "ports.bpf.h"

/* Takes the slot of a socket that is gone, without a moment in which it is empty. False: somebody else did. */
static __always_inline bool np_hold_inherit(struct np_hold *hold, const struct np_hold *fresh, __u8 protocol)
{
	__u64 old = hold->cookie;

	if (__sync_val_compare_and_swap(&hold->cookie, old, fresh->cookie) != old)
		return false;
	hold->since_ns = fresh->since_ns; /* from here on it hides, whatever else is read */
	hold->addr = fresh->addr;
	hold->reported_s = 0;
	hold->v6only = fresh->v6only;
	hold->cgroup_id = fresh->cgroup_id;
	hold->sock = fresh->sock;
	if (protocol == NP_IPPROTO_UDP)
		bpf_map_delete_elem(&np_peers, &old);
	return true;
}

/* A search for a slot at a port. */
struct np_hold_search {
	struct np_hold fresh; /* who needs one */
	struct np_hold_key key;
	__s32 result; /* 0: it has key.slot */
};

static long np_hold_try(__u32 slot, void *data)
{
	struct np_hold_search *search = data;
	struct np_hold_key key = search->key;
	struct np_hold *hold;
	__u32 *slots;

	key.slot = (__u8)slot;
	search->key.slot = (__u8)slot;
	hold = bpf_map_lookup_elem(&np_holds, &key);
	if (hold) { /* perhaps of a socket that is gone */
		if (np_hold_stands(hold, key.port) || !np_hold_inherit(hold, &search->fresh, key.protocol))
			return 0;
		search->result = 0;
		return 1;
	}
	slots = np_hold_slots_of(&key);
	if (!slots)
		return 1; /* never */
	/* The count first: whoever sees it 0 does not look. */
	__sync_fetch_and_add(slots, 1);
	search->result = (__s32)bpf_map_update_elem(&np_holds, &key, &search->fresh, BPF_NOEXIST);
	if (search->result)
		__sync_fetch_and_add(slots, -1);
	return search->result != -EEXIST;
}

__noinline int np_hold_put(const struct np_hold_query *query, struct np_holder *holder)
{
	struct np_hold_search search = { .result = -ENOSPC };
	struct np_hold_key old;

	if (!query || !holder)
		return -EINVAL;
	if (holder->held) {
		__builtin_memcpy(&old, &holder->key, sizeof(old));
		np_hold_delete(&old, query->cookie); /* it is no longer there */
		holder->held = 0;
	}
	search.fresh.sock = query->sock;
	search.fresh.cookie = query->cookie;
	search.fresh.cgroup_id = query->cgroup_id;
	search.fresh.since_ns = bpf_ktime_get_ns();
	np_hold_read_address(&search.fresh);
	search.key = query->key;
	bpf_loop(NP_PORT_SLOTS, np_hold_try, &search, 0);
	if (search.result) {
		np_error_count(NP_AT_HOLD_INSERT, search.result);
		return -ENOBUFS;
	}
	__builtin_memcpy(&holder->key, &search.key, sizeof(search.key));
	holder->held = 1;
	return 0;
}
