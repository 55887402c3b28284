/* SPDX-License-Identifier: GPL-2.0-only */
/* Noting the sockets of a sandbox, so that a cut finds them: see cut.h. */
#pragma once

#include "cut.h"
#include "ports.h"
#include "owner.bpf.h"

/* Is the socket of this entry still there? Its memory may be another's by now: that one has another cookie, for cookies are
 * never given twice. One that is freed and nobody's yet has no references; and one that was closed has none, but its memory, until
 * the last of its packets has left the queues of devices. */
static __always_inline bool np_socket_stands(__u64 sock, __u64 cookie)
{
	const struct sock *sk = (const void *)sock;

	if ((__u64)BPF_CORE_READ(sk, __sk_common.skc_cookie.counter) != cookie)
		return false;
	return BPF_CORE_READ(sk, __sk_common.skc_refcnt.refs.counter) ||
	       BPF_CORE_READ(sk, sk_wmem_alloc.refs.counter) > 0;
}

/* What a cut wants to know of a socket. */
struct np_seen {
	struct np_cut_order order;
	__u32 state;
	__u32 refs;	 /* 0: it is being freed, or is */
	__u32 in_flight; /* skb->truesize of all that was handed down, and not freed by a device yet */
	__u32 pad;
};
/* owner.bpf.c. Of the struct sock at this address. */
int np_socket_see(__u64 sk, struct np_seen *seen, __u32 protocol);
/* Fetches the memory that np_socket_see() will look at, of all sockets of a block. */
int np_block_fetch(const struct np_socket_block *block);

/* NULL: its block is not there yet. */
static __always_inline struct np_socket *np_slot_at(__u64 cgroup_id, __u32 slot)
{
	struct np_socket_key key = { .cgroup_id = cgroup_id, .block = slot / NP_BLOCK_SLOTS };
	struct np_socket_block *block = bpf_map_lookup_elem(&np_sockets, &key);

	return block ? &block->slots[slot % NP_BLOCK_SLOTS] : NULL;
}

/* sockets.bpf.c. Functions of their own, so that the verifier walks them once. */
struct np_socket_query {
	__u64 cgroup_id; /* of its sandbox */
	__u64 sock, cookie;
	__u32 protocol;
	__u32 counted; /* in: its entry shall have the count of it; out: it has. np_socket_find(): to be taken away; it was there */
};
int np_socket_note(struct np_socket_query *query);
/* 1: it is noted in one of the first two slots that it tried, among so many as there are now or were before. 0: it may be noted elsewhere. */
int np_socket_find(struct np_socket_query *query, __u32 slots);

/* The same for one that may be noted already. sandbox: its own, not NULL. */
static __always_inline void np_socket_ensure(const struct np_sandbox *sandbox, __u64 cgroup_id, __u64 sock,
					     __u64 cookie, __u32 protocol)
{
	struct np_socket_query query = { .cgroup_id = cgroup_id, .sock = sock, .cookie = cookie, .protocol = protocol };

	if (!np_socket_find(&query, *(const volatile __u32 *)&sandbox->slots))
		np_socket_note(&query);
}

static __always_inline void np_socket_add(__u64 cgroup_id, __u64 sock, __u64 cookie, __u32 protocol)
{
	struct np_socket_query query = { .cgroup_id = cgroup_id, .sock = sock, .cookie = cookie, .protocol = protocol };

	np_socket_note(&query);
}
