/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a packet is made of when it comes to a device. From there on it may wait in a queue, past every hook, and what waits must be what was
 * judged. But sendfile(), splice() and MSG_ZEROCOPY copy nothing: the packet has pages that its program can still write to, so that words
 * which the program learned after a raise would leave in a packet from before it.
 */
#pragma once

#include "owner.bpf.h"

#define NP_SHARED_FRAGS (1 | 2 | 16) /* SKBFL_ZEROCOPY_ENABLE, SKBFL_SHARED_FRAG, SKBFL_MANAGED_FRAG_REFS */

/* Has it pages that are not its own? Those of TCP say so. What else has pages is taken to have such: UDP does not say it before
 * 6.5, and the rings of packet sockets never do. */
static __always_inline bool np_pages_are_shared(struct __sk_buff *ctx)
{
	const struct sk_buff *skb = (const void *)np_sock_address(ctx);
	const struct skb_shared_info *info;

	if (np_casts) {
		skb = bpf_rdonly_cast(skb, bpf_core_type_id_kernel(struct sk_buff));
		info = bpf_rdonly_cast(skb->head + skb->end, bpf_core_type_id_kernel(struct skb_shared_info));
		return info->nr_frags &&
		       ((info->flags & NP_SHARED_FRAGS) || !skb->sk || skb->sk->sk_protocol != NP_IPPROTO_TCP);
	}
	info = (const void *)(BPF_CORE_READ(skb, head) + BPF_CORE_READ(skb, end));
	return BPF_CORE_READ(info, nr_frags) && ((BPF_CORE_READ(info, flags) & NP_SHARED_FRAGS) ||
						 BPF_CORE_READ(skb, sk, sk_protocol) != NP_IPPROTO_TCP);
}

/* Before a packet goes on to a device. False: its pages could not be copied, and it must not. */
static __always_inline bool np_pages_settle(struct __sk_buff *skb)
{
	long r;

	if (!np_pages_are_shared(skb))
		return true;
	r = bpf_skb_pull_data(skb, skb->len);
	if (r)
		np_error_count(NP_AT_PAGES, r);
	return !r;
}
