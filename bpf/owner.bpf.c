/* SPDX-License-Identifier: GPL-2.0-only */
#include <asm/errno.h>

#include "owner.bpf.h"
#include "sockets.bpf.h"

__noinline __u64 np_netns_of(__u64 sk)
{
	struct sock_common *skc;

	if (!np_casts)
		return BPF_CORE_READ((struct sock_common *)sk, skc_net.net, net_cookie);
	skc = bpf_rdonly_cast((void *)sk, bpf_core_type_id_kernel(struct sock_common));
	return skc->skc_net.net->net_cookie;
}

/* The way from the root down to a cgroup, as far as sandboxes may lie on it. */
struct np_descent {
	union {
		struct cgroup *cg;
		struct __sk_buff *skb; /* whose socket's cgroup it is */
	};
	__u64 found;
	__u32 depths; /* yet to be looked at, a bit each */
	__u32 mode;   /* of what was found */
};

/* The next depth. */
static __always_inline int np_descend(struct np_descent *way)
{
	__u32 depths = way->depths;

	way->depths = depths & (depths - 1);
	return __builtin_popcount((depths & -depths) - 1);
}

static long np_descend_socket(__u32 index, void *data)
{
	struct np_descent *way = data;

	(void)index;
	way->found = np_stricter(way->found, np_ancestor_id(way->cg, np_descend(way)), &way->mode);
	return !way->depths;
}

__noinline __u64 np_sandbox_of(__u64 sk, struct np_place_of *place)
{
	struct np_descent way = {};
	struct cgroup *cg;
	__u32 level;

	cg = BPF_CORE_READ((const struct sock *)sk, sk_cgrp_data.cgroup);
	if (!cg || !place)
		return 0; /* a kernel socket */
	level = BPF_CORE_READ(cg, level);
	way.cg = cg;
	way.depths = np_depths_in_use() & (level < NP_DEPTH_MAX ? (2ull << level) - 1 : ~0ull);
	if (way.depths)
		bpf_loop(NP_DEPTH_MAX, np_descend_socket, &way, 0);
	if (way.found)
		return way.found;
	place->own_id = BPF_CORE_READ(cg, kn, id);
	if (np_slice_depth && level >= np_slice_depth && np_slice_depth < NP_DEPTH_MAX)
		place->below_slice = np_ancestor_id(cg, np_slice_depth) == np_slice_id;
	return 0;
}

static long np_descend_packet(__u32 index, void *data)
{
	struct np_descent *way = data;
	__u64 id = bpf_skb_ancestor_cgroup_id(way->skb, np_descend(way));

	(void)index;
	if (!id)
		return 1;
	way->found = np_stricter(way->found, id, &way->mode);
	return !way->depths;
}

__noinline __u64 np_sandbox_of_packet(struct __sk_buff *skb)
{
	struct np_descent way = { .skb = skb, .depths = np_depths_in_use() };

	if (way.depths)
		bpf_loop(NP_DEPTH_MAX, np_descend_packet, &way, 0);
	return way.found;
}

static __always_inline struct np_addr np_addr_of_six(const struct in6_addr *six)
{
	return np_addr_read(six->in6_u.u6_addr32);
}

/* Plain loads: a cut looks at a thousand sockets while the disk writes. */
static __always_inline void np_socket_load(__u64 address, struct np_seen *seen)
{
	struct sock *sk = bpf_rdonly_cast((void *)address, bpf_core_type_id_kernel(struct sock));
	struct sock_common *skc = &sk->__sk_common;
	struct np_cut_order *order = &seen->order;

	order->cookie = skc->skc_cookie.counter;
	order->family = skc->skc_family;
	order->device = skc->skc_bound_dev_if;
	order->flow.near_port = skc->skc_num;
	order->flow.far_port = bpf_ntohs(skc->skc_dport);
	order->flow.netns = (__u16)skc->skc_net.net->net_cookie;
	if (order->family == AF_INET) {
		order->flow.near_addr = np_addr_v4(skc->skc_rcv_saddr);
		order->flow.far_addr = np_addr_v4(skc->skc_daddr);
	} else {
		order->flow.near_addr = np_addr_of_six(&skc->skc_v6_rcv_saddr);
		order->flow.far_addr = np_addr_of_six(&skc->skc_v6_daddr);
	}
	seen->state = skc->skc_state;
	seen->refs = skc->skc_refcnt.refs.counter;
	seen->in_flight = (__u32)sk->sk_wmem_alloc.refs.counter - 1; /* 1 is the socket itself */
}

/* The same where the kernel has no casts (6.1). */
static __always_inline void np_socket_probe(__u64 address, struct np_seen *seen)
{
	struct sock *sk = (struct sock *)address;
	struct sock_common *skc = &sk->__sk_common;
	struct np_cut_order *order = &seen->order;

	order->cookie = BPF_CORE_READ(skc, skc_cookie.counter);
	order->family = BPF_CORE_READ(skc, skc_family);
	order->device = BPF_CORE_READ(skc, skc_bound_dev_if);
	order->flow.near_port = BPF_CORE_READ(skc, skc_num);
	order->flow.far_port = bpf_ntohs(BPF_CORE_READ(skc, skc_dport));
	order->flow.netns = (__u16)np_netns_of(address);
	if (order->family == AF_INET) {
		order->flow.near_addr = np_addr_v4(BPF_CORE_READ(skc, skc_rcv_saddr));
		order->flow.far_addr = np_addr_v4(BPF_CORE_READ(skc, skc_daddr));
	} else {
		BPF_CORE_READ_INTO(&order->flow.near_addr, skc, skc_v6_rcv_saddr);
		BPF_CORE_READ_INTO(&order->flow.far_addr, skc, skc_v6_daddr);
	}
	seen->state = BPF_CORE_READ(skc, skc_state);
	seen->refs = BPF_CORE_READ(skc, skc_refcnt.refs.counter);
	seen->in_flight = (__u32)BPF_CORE_READ(sk, sk_wmem_alloc.refs.counter) - 1;
}

__noinline int np_socket_see(__u64 sk, struct np_seen *seen, __u32 protocol)
{
	if (!seen)
		return 0;
	seen->order.flow.protocol = protocol;
	if (np_casts)
		np_socket_load(sk, seen);
	else
		np_socket_probe(sk, seen);
	return 0;
}

/* A load each from where np_socket_load() will look in each of these sockets. None of them waits for another, so the CPU has the memory of all
 * sockets of a block on its way at once, where a judgement between them would have it wait for every one in turn. */
__noinline int np_block_fetch(const struct np_socket_block *block)
{
	if (!block || !np_casts)
		return 0;
	for (int i = 0; i < NP_BLOCK_SLOTS; i++) {
		struct sock *sk = bpf_rdonly_cast((void *)block->slots[i].sock, bpf_core_type_id_kernel(struct sock));
		__u64 fetched = sk->__sk_common.skc_state;

		fetched |= sk->__sk_common.skc_cookie.counter;
		fetched |= sk->__sk_common.skc_refcnt.refs.counter;
		fetched |= sk->sk_wmem_alloc.refs.counter;
		barrier_var(fetched); /* the compiler would leave out what nobody uses */
	}
	return 0;
}
