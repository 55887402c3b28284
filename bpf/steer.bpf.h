/* SPDX-License-Identifier: GPL-2.0-only */
/* Where the inspector is, and which sockets lead to it. */
#pragma once

#include "owner.bpf.h"

/* In the namespace with this cookie. */
static __always_inline struct np_inspector *np_inspector_in(__u64 netns)
{
	__u32 zero = 0;

	if (netns == np_host_netns)
		return bpf_map_lookup_elem(&np_inspector, &zero);
	return bpf_map_lookup_elem(&np_namespaces, &netns);
}

/* 127.0.0.1 or ::1, in the family of addr. */
static __always_inline struct np_addr np_loopback_for(const struct np_addr *addr)
{
	struct np_addr a = {};

	if (np_addr_is_v4(addr))
		return np_addr_v4(np_net32(0x7f000001));
	a.w[3] = np_net32(1);
	return a;
}

static __always_inline bool np_addr_equal(const struct np_addr *a, const struct np_addr *b)
{
	return a->d[0] == b->d[0] && a->d[1] == b->d[1];
}

/* Where a connection or a datagram is led: the inspector's listener, or the DNS gate's socket. */
static __always_inline struct np_listener np_listener_for(struct np_inspector *inspector, __u16 protocol, bool v4)
{
	return protocol == NP_IPPROTO_TCP ? inspector->tcp[!v4] : inspector->dns[!v4];
}

/* Is that the address and port of one of these doors? */
static __always_inline bool np_is_listener(const struct np_listener listeners[2], const struct np_addr *addr,
					   __u16 port)
{
	struct np_addr loopback = np_loopback_for(addr);

	return port && port == listeners[!np_addr_is_v4(addr)].port && np_addr_equal(addr, &loopback);
}

static __always_inline bool np_is_inspector(__u64 netns, const struct np_addr *addr, __u16 port)
{
	struct np_inspector *inspector = np_inspector_in(netns);

	return inspector && np_is_listener(inspector->tcp, addr, port);
}

/* Whether its own socket is behind it is another question: np_listener_is_kept(). */
static __always_inline bool np_is_dns_gate(__u64 netns, const struct np_addr *addr, __u16 port)
{
	struct np_inspector *inspector = np_inspector_in(netns);

	return inspector && np_is_listener(inspector->dns, addr, port);
}

/* Would a packet on this flow meet the socket that is the listener there, and not somebody who took the port after its
 * death? */
static __always_inline bool np_listener_is_kept(void *ctx, const struct np_tuple *flow, __u64 wanted)
{
	struct bpf_sock *sk = np_sock_find(ctx, flow);
	__u64 cookie;

	if (!sk)
		return false;
	cookie = BPF_CORE_READ((const struct sock_common *)np_sock_address(sk), skc_cookie.counter);
	bpf_sk_release(sk);
	return wanted && cookie == wanted;
}
