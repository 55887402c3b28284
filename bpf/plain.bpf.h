/* SPDX-License-Identifier: GPL-2.0-only */
/* The packet layer's shorter way, for most packets there are. Used by np_egress and np_device. */
#pragma once

#include "headers.bpf.h"
#include "owner.bpf.h"

#define NP_PLAIN_V4 34 /* bytes up to the flags of TCP, with a header of IPv4 without options */
#define NP_PLAIN_V6 54 /* ... and of IPv6 */

/* Would the socket that gets this packet, on this host, be of the sandbox that sends it? That is looked up for each packet, because
 * who is there may have changed since the last one. False: nothing is known, and the long way looks again. */
static __always_inline bool np_is_to_itself(struct __sk_buff *skb, const struct np_addr *src, const struct np_addr *dst,
					    const __be16 *ports, __u16 protocol, __u64 id)
{
	struct np_tuple flow = { .near_port = ports[1], .far_port = ports[0], .protocol = protocol };
	struct bpf_sock *sk;
	bool own;

	if (!np_casts || !np_sandboxes_are_flat() || !np_judge_plain_own(src, dst))
		return false;
	flow.near_addr = *dst;
	flow.far_addr = *src;
	sk = np_sock_find(skb, &flow);
	if (!sk)
		return false;
	own = np_sandbox_guess(sk) == id;
	bpf_sk_release(sk);
	return own;
}

/*
 * Most packets there are in FULL, where no rule speaks of addresses: np_egress and np_device would ask for no more of them than this
 * does, for less. True: it passes; false: nothing is known. rest: what follows an IP header without options, of a packet that is no
 * later fragment; at least the ports of it, and of TCP the flags.
 */
static __always_inline bool np_is_plain(struct __sk_buff *skb, const struct np_addr *src, const struct np_addr *dst,
					const __u8 *rest, __u16 protocol, bool local, __u64 id)
{
	__u64 netns;

	if (np_in_force_now().full_rules)
		return false;
	if (protocol == NP_IPPROTO_TCP && (rest[13] & 0x12) != 0x02) /* no SYN, or with ACK */
		return np_judge_plain(src, dst, local);
	if (local)
		return np_is_to_itself(skb, src, dst, (const __be16 *)rest, protocol, id);
	if (!np_judge_plain_far(dst))
		return false;
	netns = np_netns_of_socket(skb->sk);
	return netns == np_host_netns && !np_addr_kind(netns, dst);
}

/* ip: the first bytes of a packet, up to end. */
static __always_inline bool np_is_plain_v4(struct __sk_buff *skb, const __u8 *ip, const __u8 *end, bool local, __u64 id)
{
	struct np_addr src, dst;

	if (ip + NP_PLAIN_V4 > end || ip[0] != 0x45 || (ip[6] & 0x1f) || ip[7] || !np_is_ported(ip[9]))
		return false;
	src = np_addr_v4(*(const __be32 *)(ip + 12));
	dst = np_addr_v4(*(const __be32 *)(ip + 16));
	return np_is_plain(skb, &src, &dst, ip + 20, ip[9], local, id);
}

static __always_inline bool np_is_plain_v6(struct __sk_buff *skb, const __u8 *ip, const __u8 *end, bool local, __u64 id)
{
	if (ip + NP_PLAIN_V6 > end || !np_is_ported(ip[6]))
		return false;
	return np_is_plain(skb, (const void *)(ip + 8), (const void *)(ip + 24), ip + 40, ip[6], local, id);
}

/* In np_egress: the packet begins with its IP header. */
static __always_inline bool np_is_plain_here(struct __sk_buff *skb, bool local, __u64 id)
{
	const __u8 *ip = (void *)(long)skb->data, *end = (void *)(long)skb->data_end;

	if (skb->protocol == bpf_htons(NP_ETH_P_IP))
		return np_is_plain_v4(skb, ip, end, local, id);
	return skb->protocol == bpf_htons(NP_ETH_P_IPV6) && np_is_plain_v6(skb, ip, end, local, id);
}

/* In np_device: what comes before it is the device's. */
static __always_inline bool np_is_plain_there(struct __sk_buff *skb)
{
	__u8 ip[56] __attribute__((aligned(8)));

	if (skb->protocol == bpf_htons(NP_ETH_P_IP))
		return np_load(skb, 0, ip, NP_PLAIN_V4) >= 0 && np_is_plain_v4(skb, ip, ip + NP_PLAIN_V4, false, 0);
	return skb->protocol == bpf_htons(NP_ETH_P_IPV6) && np_load(skb, 0, ip, NP_PLAIN_V6) >= 0 &&
	       np_is_plain_v6(skb, ip, ip + NP_PLAIN_V6, false, 0);
}
