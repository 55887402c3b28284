/* SPDX-License-Identifier: GPL-2.0-only */
#include <asm/errno.h>

#include "sockets.bpf.h"

static const struct np_socket_block np_empty_block;

/* Somebody else may make it at the same time: then it is there as well. 0, or an error of the map. */
static __always_inline long np_block_make(__u64 cgroup_id, __u32 slot)
{
	struct np_socket_key key = { .cgroup_id = cgroup_id, .block = slot / NP_BLOCK_SLOTS };
	long r = bpf_map_update_elem(&np_sockets, &key, &np_empty_block, BPF_NOEXIST);

	return r == -EEXIST ? 0 : r;
}

/* Puts it into one slot. 0; -EEXIST: the slot is taken; or another error of the map. */
static __always_inline long np_slot_take(__u64 cgroup_id, __u32 slot, const struct np_socket *fresh)
{
	struct np_socket *there = np_slot_at(cgroup_id, slot);
	__u64 old;
	long r;

	if (!there) {
		r = np_block_make(cgroup_id, slot);
		if (r)
			return r;
		there = np_slot_at(cgroup_id, slot);
		if (!there)
			return -ENOENT; /* the sandbox is being forgotten */
	}
	old = *(volatile __u64 *)&there->cookie;
	if (old == fresh->cookie)
		return 0; /* it is noted already */
	if (old == NP_SOCKET_BUSY || (old && there->sock != fresh->sock && np_socket_stands(there->sock, old)) ||
	    __sync_val_compare_and_swap(&there->cookie, old, NP_SOCKET_BUSY) != old)
		return -EEXIST;
	there->sock = fresh->sock;
	there->protocol = fresh->protocol;
	there->counted = fresh->counted;
	/* Last, and with a barrier: whoever reads this cookie reads what belongs to it. */
	__sync_val_compare_and_swap(&there->cookie, NP_SOCKET_BUSY, fresh->cookie);
	return 0;
}

/* The two slots that a socket tries first: 0 and 1. */
static __always_inline __u32 np_slot_of(__u64 sock, __u32 slots, int which)
{
	return (__u32)(sock * 0x9e3779b97f4a7c15ull >> (which ? 20 : 40)) & (slots - 1);
}

/* The first slots to try follow from where the socket lies: the kernel gives the memory of the socket that was closed last to
 * the next one, so the first is the slot of one that is gone for sure, and still in the CPU's cache. After that it is chance, so that
 * no run of sockets that stay is in the way. When none of several is free the sandbox gets as many slots again, and the new
 * ones are tried. A slot is never given back before the sandbox is over, and there are never many more than 16 times the most
 * sockets that it had at once. */
__noinline int np_socket_note(struct np_socket_query *query)
{
	struct np_socket fresh = {};
	__u32 slots, first = 0, more, slot;
	struct np_sandbox *sandbox;
	long r = -EEXIST;
	__u64 id;

	if (!query)
		return -EINVAL;
	id = query->cgroup_id; /* 6.1 looks nothing up by what a function was given */
	sandbox = bpf_map_lookup_elem(&np_sandboxes, &id);
	if (!sandbox)
		return -ENOENT;
	fresh.sock = query->sock;
	fresh.cookie = query->cookie;
	fresh.protocol = query->protocol;
	fresh.counted = query->counted;
	slots = *(volatile __u32 *)&sandbox->slots;
	if (slots & NP_SLOTS_LOST)
		return -ENOSPC;
	more = slots < NP_SLOTS_MIN ? NP_SLOTS_MIN : slots;
	if (slots < NP_SLOTS_MIN)
		__sync_val_compare_and_swap(&sandbox->slots, slots, NP_SLOTS_MIN);
	for (int i = 0; i < 2 * NP_SLOT_TRIES; i++) {
		if (i == NP_SLOT_TRIES) {
			slots = *(volatile __u32 *)&sandbox->slots;
			if (slots >= NP_SLOTS_MAX)
				break;
			/* Somebody else may just have done so: then the new ones are his. */
			__sync_val_compare_and_swap(&sandbox->slots, slots, 2 * slots);
			first = more = slots;
		}
		if (i == 2) { /* nobody would find it where chance leads, to take the count back */
			fresh.counted = 0;
			query->counted = 0;
		}
		slot = i < 2 ? np_slot_of(fresh.sock, more, i) : first + (bpf_get_prandom_u32() & (more - 1));
		r = np_slot_take(id, slot, &fresh);
		if (!r)
			return 0;
		if (r != -EEXIST)
			break;
	}
	__sync_fetch_and_or(&sandbox->slots, NP_SLOTS_LOST);
	np_error_count(NP_AT_SOCKET_NOTE, r);
	return -ENOSPC;
}

/* A socket that was closed cannot have given up its entry: nothing takes that away before the socket is gone. */
__noinline int np_socket_find(struct np_socket_query *query, __u32 slots)
{
	struct np_socket *socket;
	__u32 slot;

	if (!query)
		return 0;
	slots &= ~NP_SLOTS_LOST;
	for (int i = 0; i < 2 * NP_SLOT_DOUBLINGS && slots >= NP_SLOTS_MIN; i++) {
		slot = np_slot_of(query->sock, slots, i & 1);
		slots >>= i & 1;
		socket = np_slot_at(query->cgroup_id, slot);
		if (!socket || *(volatile __u64 *)&socket->cookie != query->cookie)
			continue;
		if (query->counted)
			query->counted = __sync_lock_test_and_set(&socket->counted, 0);
		return 1;
	}
	query->counted = 0;
	return 0;
}
