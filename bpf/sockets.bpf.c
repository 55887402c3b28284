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
static __always_inline int np_slot_take(__u64 cgroup_id, __u32 slot, const struct np_socket *fresh)
{
	struct np_socket *there = np_slot_at(cgroup_id, slot);
	__u64 old;
	long r;

	if (!there) {
		r = np_block_make(cgroup_id, slot);
		if (r)
			return (int)r;
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

/* A search for a slot of a sandbox. */
struct np_slot_search {
	__u64 cgroup_id;
	struct np_sandbox *sandbox;
	struct np_socket fresh; /* who needs one */
	__u32 first, more;	/* the slots to try */
	__s32 result;		/* of np_slot_take() */
	__u32 pad;
};

/* np_slot_take() as a function of its own, so that the verifier walks it once and not for each kind of slot. */
__noinline int np_slot_take_one(__u64 cgroup_id, __u32 slot, const struct np_socket *fresh)
{
	return fresh ? np_slot_take(cgroup_id, slot, fresh) : -EINVAL;
}

/* The second try, and those after it. */
static long np_slot_try(__u32 index, void *data)
{
	struct np_slot_search *search = data;
	struct np_sandbox *sandbox = search->sandbox;
	__u32 slots, slot;

	if (index + 1 == NP_SLOT_TRIES) {
		slots = *(volatile __u32 *)&sandbox->slots;
		if (slots >= NP_SLOTS_MAX)
			return 1;
		/* Somebody else may just have done so: then the new ones are his. */
		__sync_val_compare_and_swap(&sandbox->slots, slots, 2 * slots);
		search->first = search->more = slots;
	}
	if (index == 1) /* nobody would find it where chance leads, to take the count back */
		search->fresh.counted = 0;
	slot = index == 0 ? np_slot_of(search->fresh.sock, search->more, 1)
			  : search->first + (bpf_get_prandom_u32() & (search->more - 1));
	search->result = np_slot_take_one(search->cgroup_id, slot, &search->fresh);
	return search->result != -EEXIST;
}

/* What np_socket_note() does when the first slot is taken. */
static __always_inline int np_slot_search(struct np_sandbox *sandbox, __u32 slots, const struct np_socket *fresh,
					  struct np_socket_query *query)
{
	struct np_slot_search search = {
		.cgroup_id = query->cgroup_id,
		.sandbox = sandbox,
		.fresh = *fresh,
		.more = slots,
		.result = -EEXIST,
	};

	bpf_loop(2 * NP_SLOT_TRIES - 1, np_slot_try, &search, 0);
	query->counted = search.fresh.counted;
	return search.result;
}

/* The first slots to try follow from where the socket lies: the kernel gives the memory of the socket that was closed last to
 * the next one, so the first is the slot of one that is gone for sure, and still in the CPU's cache. After that it is chance, so that
 * no run of sockets that stay is in the way. When none of several is free the sandbox gets as many slots again, and the new
 * ones are tried. A slot is never given back before the sandbox is over, and there are never many more than 16 times the most
 * sockets that it had at once. */
__noinline int np_socket_note(struct np_socket_query *query)
{
	struct np_socket fresh = {};
	struct np_sandbox *sandbox;
	__u32 slots;
	__u64 id;
	int r;

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
	if (slots < NP_SLOTS_MIN) {
		__sync_val_compare_and_swap(&sandbox->slots, slots, NP_SLOTS_MIN);
		slots = NP_SLOTS_MIN;
	}
	r = np_slot_take(id, np_slot_of(fresh.sock, slots, 0), &fresh);
	if (r == -EEXIST)
		r = np_slot_search(sandbox, slots, &fresh, query);
	if (!r)
		return 0;
	__sync_fetch_and_or(&sandbox->slots, NP_SLOTS_LOST);
	np_error_count(NP_AT_SOCKET_NOTE, r);
	return -ENOSPC;
}

/* Is the socket in this slot? Then the count of it is taken away, if it shall be. */
static __always_inline bool np_slot_has(struct np_socket_query *query, __u32 slot)
{
	struct np_socket *socket = np_slot_at(query->cgroup_id, slot);

	if (!socket || *(volatile __u64 *)&socket->cookie != query->cookie)
		return false;
	if (query->counted)
		query->counted = __sync_lock_test_and_set(&socket->counted, 0);
	return true;
}

/* A search for the slot of a socket that is noted. */
struct np_slot_look {
	struct np_socket_query query;
	__u32 slots;
	__u32 found;
};

/* The second look, and those after it. */
static long np_slot_look(__u32 index, void *data)
{
	struct np_slot_look *look = data;
	__u32 slot;

	if (look->slots < NP_SLOTS_MIN)
		return 1;
	slot = np_slot_of(look->query.sock, look->slots, !(index & 1));
	look->slots >>= !(index & 1);
	look->found = np_slot_has(&look->query, slot);
	return look->found;
}

static __always_inline bool np_slot_find(struct np_socket_query *query, __u32 slots)
{
	struct np_slot_look look = { .query = *query, .slots = slots };

	bpf_loop(2 * NP_SLOT_DOUBLINGS - 1, np_slot_look, &look, 0);
	query->counted = look.found ? look.query.counted : 0;
	return look.found;
}

/* A socket that was closed cannot have given up its entry: nothing takes that away before the socket is gone. */
__noinline int np_socket_find(struct np_socket_query *query, __u32 slots)
{
	if (!query)
		return 0;
	slots &= ~NP_SLOTS_LOST;
	if (slots >= NP_SLOTS_MIN && np_slot_has(query, np_slot_of(query->sock, slots, 0)))
		return 1;
	return np_slot_find(query, slots);
}
