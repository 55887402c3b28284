/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Whose socket is it? The cgroup of a socket is fixed when it is made, survives
 * accept(), fd passing and the process moving away, and is read from the socket
 * itself, never from the calling task.
 */
#ifndef NP_WHO_BPF_H
#define NP_WHO_BPF_H

#include "maps.bpf.h"
#include "gate.bpf.h"
#include "kernel.h"
#include "report.bpf.h"

#include <bpf/bpf_core_read.h>

struct np_who {
	struct np_box *box; /* NULL: not registered */
	__u64 id;	    /* cgroup id of the sandbox; of the socket's own cgroup when box is NULL */
	bool inside;	    /* a sandbox, or below the slice */
};

static __always_inline __u64 np_depths_in_use(void)
{
	__u32 zero = 0;
	__u64 *mask = bpf_map_lookup_elem(&np_depths, &zero);

	return mask ? *mask : 0;
}

static __always_inline __u64 np_ancestor_id(struct cgroup *cg, int depth)
{
	struct cgroup **ancestors = (void *)cg + bpf_core_field_offset(struct cgroup, ancestors);
	struct cgroup *ancestor = NULL;

	bpf_probe_read_kernel(&ancestor, sizeof(ancestor), ancestors + depth);
	return BPF_CORE_READ(ancestor, kn, id);
}

/* A context's socket pointer is the kernel's struct sock, but the verifier forbids arithmetic on it, which
 * CO-RE needs. Adding it to a number gives a number: an address to be read with bpf_probe_read_kernel() only. */
static __always_inline const struct sock *np_sock_address(const void *sk)
{
	__u64 address = 0;

	__sync_fetch_and_add(&address, (__u64)sk);
	return (const struct sock *)address;
}

static __always_inline struct np_who np_who_is(const void *sk)
{
	struct cgroup *cg = BPF_CORE_READ(np_sock_address(sk), sk_cgrp_data.cgroup);
	__u64 mask = np_depths_in_use(), id;
	struct np_who who = {};
	int level;

	if (!cg)
		return who; /* a kernel socket */
	level = BPF_CORE_READ(cg, level);
	for (int d = 1; d < NP_DEPTH_MAX && d <= level; d++) {
		if (!(mask >> d & 1))
			continue;
		id = np_ancestor_id(cg, d);
		who.box = bpf_map_lookup_elem(&np_boxes, &id);
		if (who.box) {
			who.id = id;
			who.inside = true;
			return who;
		}
	}
	who.id = BPF_CORE_READ(cg, kn, id);
	if (np_slice_depth && (__u32)level >= np_slice_depth && np_slice_depth < NP_DEPTH_MAX)
		who.inside = np_ancestor_id(cg, np_slice_depth) == np_slice_id;
	return who;
}

/* The same for a packet, by helpers that also see through request sockets. */
static __always_inline struct np_who np_who_sends(struct __sk_buff *skb)
{
	__u64 mask = np_depths_in_use(), id;
	struct np_who who = {};

	for (int d = 1; d < NP_DEPTH_MAX; d++) {
		if (!(mask >> d & 1))
			continue;
		id = bpf_skb_ancestor_cgroup_id(skb, d);
		if (!id)
			break;
		who.box = bpf_map_lookup_elem(&np_boxes, &id);
		if (who.box) {
			who.id = id;
			who.inside = true;
			return who;
		}
	}
	if (np_slice_depth && bpf_skb_ancestor_cgroup_id(skb, np_slice_depth) == np_slice_id) {
		who.inside = true;
		who.id = bpf_skb_cgroup_id(skb);
	}
	return who;
}

static __always_inline enum np_mode np_who_mode(const struct np_who *who)
{
	return who->box ? who->box->mode : 0;
}

/* A tuple as the receiving side sees it: near is where the packet goes, far where it comes from. */
struct np_flow {
	struct np_addr near_addr, far_addr;
	__be16 near_port, far_port;
	__u16 protocol;
};

/* Finds the socket that would get a packet on this flow, and says whose it is. */
static __always_inline enum np_peer np_peer_find(void *ctx, const struct np_flow *flow, __u64 self)
{
	struct bpf_sock_tuple tuple = {};
	struct bpf_sock *sk;
	struct np_who who;
	__u32 size;

	if (np_addr_is_v4(&flow->near_addr)) {
		tuple.ipv4.saddr = flow->far_addr.w[3];
		tuple.ipv4.daddr = flow->near_addr.w[3];
		tuple.ipv4.sport = flow->far_port;
		tuple.ipv4.dport = flow->near_port;
		size = sizeof(tuple.ipv4);
	} else {
		__builtin_memcpy(tuple.ipv6.saddr, flow->far_addr.w, 16);
		__builtin_memcpy(tuple.ipv6.daddr, flow->near_addr.w, 16);
		tuple.ipv6.sport = flow->far_port;
		tuple.ipv6.dport = flow->near_port;
		size = sizeof(tuple.ipv6);
	}
	if (flow->protocol == NP_IPPROTO_TCP)
		sk = bpf_sk_lookup_tcp(ctx, &tuple, size, BPF_F_CURRENT_NETNS, 0);
	else
		sk = bpf_sk_lookup_udp(ctx, &tuple, size, BPF_F_CURRENT_NETNS, 0);
	if (!sk)
		return NP_PEER_NOBODY;
	who = np_who_is(sk);
	bpf_sk_release(sk);
	if (!who.inside)
		return NP_PEER_HOST;
	return who.box && who.id == self ? NP_PEER_SELF : NP_PEER_OTHER;
}

static __always_inline bool np_host_port_listed(__u16 port, enum np_mode mode)
{
	__u8 *modes = bpf_map_lookup_elem(&np_host_ports, &port);

	return modes && (*modes >> mode & 1);
}

#endif
