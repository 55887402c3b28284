/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Whose socket is it? The cgroup of a socket is fixed when it is made, survives
 * accept(), fd passing and the process moving away, and is read from the socket
 * itself, never from the calling task.
 */
#pragma once

#include "maps.bpf.h"
#include "gate.bpf.h"
#include "kernel.h"
#include "report.bpf.h"
#include "rules.bpf.h"

#include <bpf/bpf_core_read.h>

/* Four words of a context. volatile: the verifier lets nobody read two at once. */
static __always_inline struct np_addr np_addr_read(const volatile __u32 *words)
{
	struct np_addr a = { .w = { words[0], words[1], words[2], words[3] } };

	return a;
}

#define NP_SOCK_DGRAM 2

struct np_owner {
	struct np_sandbox *sandbox; /* NULL: not registered */
	__u64 id;		    /* cgroup id of the sandbox; of the socket's own cgroup when it has none */
	struct np_rung rung;	    /* mode 0: not registered */
	bool inside;		    /* a sandbox, or below the slice */
};

/* owner.bpf.c. The cgroup id of the sandbox that a socket belongs to, or 0; *own_id is that of its own cgroup, and
 * *inside tells whether that lies below the slice. A function of its own, so that the verifier walks it once. */
struct np_place_of {
	__u64 own_id;
	__u64 below_slice;
};
__u64 np_sandbox_of(__u64 sk, struct np_place_of *place);
/* The same for a packet, by a helper that also sees through request sockets. */
__u64 np_sandbox_of_packet(struct __sk_buff *skb);

/* owner.bpf.c. The cookie of the network namespace that a socket lives in, of whatever kind it is. */
__u64 np_netns_of(__u64 sk);

/* Plain loads of the kernel's memory, where np_casts; the verifier takes any pointer or number, and makes no call of it. */
void *bpf_rdonly_cast(const void *obj, __u32 btf_id) __ksym __weak;

/* Id of the cgroup that lies `depth` levels below the root, on the way to cg. cg must be that deep. */
static __always_inline __u64 np_ancestor_id(struct cgroup *cg, int depth)
{
	struct cgroup **ancestors = (void *)cg + bpf_core_field_offset(struct cgroup, ancestors);
	struct cgroup *ancestor = NULL;

	bpf_probe_read_kernel(&ancestor, sizeof(ancestor), ancestors + depth);
	return BPF_CORE_READ(ancestor, kn, id);
}

static __always_inline __u64 np_depths_in_use(void)
{
	__u32 zero = 0;
	__u64 *mask = bpf_map_lookup_elem(&np_depths, &zero);

	return mask ? *mask : 0;
}

/* All sandboxes lie as deep as those that are made, right below the slice. So none lies in another. */
static __always_inline bool np_sandboxes_are_flat(void)
{
	return np_depths_in_use() == 2ull << np_slice_depth;
}

/* The only cgroup that can be its sandbox, in the common case that the socket was made right in a cgroup as deep as all sandboxes are;
 * 0: ask np_sandbox_of(). Whether that is a sandbox is for the caller to look up, who needs what is found: one look-up for both. sk: a
 * whole socket, not a request or one in TIME_WAIT; or its address. */
static __always_inline __u64 np_sandbox_guess(const void *sk)
{
	struct sock *sock;
	struct cgroup *cg;

	if (!np_casts || !np_sandboxes_are_flat())
		return 0;
	sock = bpf_rdonly_cast(sk, bpf_core_type_id_kernel(struct sock));
	cg = sock->sk_cgrp_data.cgroup;
	return cg && (__u32)cg->level == np_slice_depth + 1 ? cg->kn->id : 0;
}

/* Sandboxes do not nest, the daemon sees to that. Should they all the same, the strictest one counts. */
static __always_inline __u64 np_stricter(__u64 id, __u64 other, __u32 *mode)
{
	struct np_sandbox *sandbox = bpf_map_lookup_elem(&np_sandboxes, &other);

	if (!sandbox || sandbox->rung.mode < *mode)
		return id;
	*mode = sandbox->rung.mode;
	return other;
}

/* True when it is a sandbox; otherwise nothing is changed. */
static __always_inline bool np_owner_try(struct np_owner *owner, __u64 id)
{
	struct np_sandbox *sandbox = bpf_map_lookup_elem(&np_sandboxes, &id);

	if (!sandbox)
		return false;
	owner->id = id;
	owner->inside = true;
	owner->sandbox = sandbox;
	owner->rung = np_rung_of(sandbox);
	return true;
}

static __always_inline void np_owner_set(struct np_owner *owner, __u64 id)
{
	if (np_owner_try(owner, id))
		return;
	owner->id = id; /* it was forgotten a moment ago */
	owner->inside = true;
}

/* A context's socket pointer is the kernel's struct sock, but the verifier forbids arithmetic on it, which
 * CO-RE needs. Adding it to a number gives a number: an address to be read with bpf_probe_read_kernel() only. */
static __always_inline __u64 np_sock_address(const void *sk)
{
	__u64 address = 0;

	__sync_fetch_and_add(&address, (__u64)sk);
	return address;
}

/* The long way, by the address of a struct sock. */
static __always_inline struct np_owner np_owner_search(__u64 sk)
{
	struct np_place_of place = {};
	struct np_owner owner = {};
	__u64 id = np_sandbox_of(sk, &place);

	if (id) {
		np_owner_set(&owner, id);
	} else {
		owner.id = place.own_id;
		owner.inside = place.below_slice;
	}
	return owner;
}

/* By the address of a struct sock. */
static __always_inline struct np_owner np_owner_at(__u64 sk)
{
	__u64 id = np_sandbox_guess((void *)sk);
	struct np_owner owner = {};

	return id && np_owner_try(&owner, id) ? owner : np_owner_search(sk);
}

/* Is it of this sandbox, which is one? */
static __always_inline bool np_sandbox_is(__u64 sk, __u64 id)
{
	struct np_place_of place = {};

	return np_sandbox_guess((void *)sk) == id || np_sandbox_of(sk, &place) == id;
}

static __always_inline struct np_owner np_owner_of(const void *sk)
{
	__u64 id = np_sandbox_guess(sk);
	struct np_owner owner = {};

	return id && np_owner_try(&owner, id) ? owner : np_owner_search(np_sock_address(sk));
}

/* The same guess for a packet: of one that has a whole socket. */
static __always_inline __u64 np_packet_guess(struct __sk_buff *skb)
{
	struct bpf_sock *sk = skb->sk;
	const __u32 others = 1u << 6 | 1u << 12; /* TCP_TIME_WAIT, TCP_NEW_SYN_RECV */

	return sk && sk->state < 32 && !(others >> sk->state & 1) ? np_sandbox_guess(sk) : 0;
}

/* The same for a packet, by helpers that also see through request sockets. */
static __always_inline struct np_owner np_owner_of_packet(struct __sk_buff *skb)
{
	__u64 id = np_packet_guess(skb);
	struct np_owner owner = {};

	if (id && np_owner_try(&owner, id))
		return owner;
	if (np_sandboxes_are_flat()) {
		id = id ? 0 : bpf_skb_ancestor_cgroup_id(skb, np_slice_depth + 1);
		if (id && np_owner_try(&owner, id))
			return owner;
	} else {
		id = np_sandbox_of_packet(skb);
		if (id) {
			np_owner_set(&owner, id);
			return owner;
		}
	}
	if (np_slice_depth && bpf_skb_ancestor_cgroup_id(skb, np_slice_depth) == np_slice_id) {
		owner.inside = true;
		owner.id = bpf_skb_cgroup_id(skb);
	}
	return owner;
}

/* What a cgroup program returns. Opaque to the compiler, which would otherwise return a register that it knows to be 1 (a
 * mode, say): the verifier of 6.1 loses the value of a 32-bit register over the stack and refuses the program. */
static __always_inline int np_verdict(int verdict)
{
	barrier_var(verdict);
	return verdict;
}

static __always_inline int np_allow(void)
{
	return np_verdict(1);
}

/* A tuple as the receiving side sees it: near is where the packet goes, far where it comes from. */
struct np_tuple {
	struct np_addr near_addr, far_addr;
	__be16 near_port, far_port;
	__u16 protocol;
	__u16 pad; /* named, so that it is set: the verifier of 6.1 wants all of what a function is given */
};

/* The socket that would get a packet on this flow, or NULL. For bpf_sk_release(). */
static __always_inline struct bpf_sock *np_sock_find(void *ctx, const struct np_tuple *flow)
{
	struct bpf_sock_tuple tuple = {};
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
		return bpf_sk_lookup_tcp(ctx, &tuple, size, BPF_F_CURRENT_NETNS, 0);
	return bpf_sk_lookup_udp(ctx, &tuple, size, BPF_F_CURRENT_NETNS, 0);
}

/* Finds the socket that would get a packet on this flow, and says whose it is. ret_cookie: the cookie of one of the host's, or 0
 * when nobody ever asked for one; may be NULL. */
static __always_inline enum np_peer np_peer_find(void *ctx, const struct np_tuple *flow, __u64 self, __u64 *ret_cookie)
{
	struct bpf_sock *sk = np_sock_find(ctx, flow);
	struct np_owner owner;

	if (!sk)
		return NP_PEER_NOBODY;
	owner = np_owner_of(sk);
	if (ret_cookie && !owner.inside)
		*ret_cookie = BPF_CORE_READ((const struct sock_common *)np_sock_address(sk), skc_cookie.counter);
	bpf_sk_release(sk);
	if (!owner.inside)
		return NP_PEER_HOST;
	return owner.sandbox && owner.id == self ? NP_PEER_SELF : NP_PEER_OTHER;
}

/* NP_ADDR_*, or 0 for an address that no device of this network namespace has. */
static __always_inline __u8 np_addr_kind(__u64 netns, const struct np_addr *addr)
{
	struct np_own_addr key = { .netns = netns, .addr = *addr };
	__u8 *kind = bpf_map_lookup_elem(&np_host_addrs, &key);

	return kind ? *kind : 0;
}

/* Loopback, or an address of one of its devices: what a socket there may have as its own. */
static __always_inline bool np_is_own_addr(__u64 netns, const struct np_addr *addr)
{
	return np_addr_is_loopback(addr) || np_addr_kind(netns, addr) == NP_ADDR_OWN;
}

/* np_netns_of() of a context's socket. */
static __always_inline __u64 np_netns_of_socket(const void *sk)
{
	struct sock_common *skc;

	if (!np_casts)
		return np_netns_of(np_sock_address(sk));
	skc = bpf_rdonly_cast(sk, bpf_core_type_id_kernel(struct sock_common));
	return skc->skc_net.net->net_cookie;
}
