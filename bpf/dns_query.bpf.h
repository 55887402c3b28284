/* SPDX-License-Identifier: GPL-2.0-only */
/* A DNS query on its way to the DNS gate: whether it may go there, and whose it is. Used by np_egress. */
#pragma once

#include "headers.bpf.h"
#include "judge.bpf.h"
#include "ports.bpf.h"
#include "steer.bpf.h"

/* A sandbox has its share of the DNS gate's attention and of its socket's buffer: large datagrams, and those that are
 * many in one (UDP_SEGMENT), cost more. */
static __always_inline bool np_query_may(struct __sk_buff *skb, struct np_sandbox *sandbox)
{
	__u32 cost = 1 + skb->len / NP_QUERY_COST + skb->gso_segs;

	return np_bucket_take(&sandbox->queries, NP_QUERY_RATE, NP_QUERY_BURST, cost);
}

/* Makes the entry this sandbox's, unless it is already. Returns its number; 0 when others write there all the time. */
static __always_inline __u32 np_dns_origin_claim(struct np_dns_origin *origin, __u64 id, __u32 generation,
						 const struct np_addr *source)
{
	for (int tries = 0; tries < 8; tries++) {
		__u32 number = *(volatile __u32 *)&origin->number, next = number + 2;

		if (number & 1)
			continue;
		if (number && origin->cgroup_id == id && origin->generation == generation &&
		    np_addr_equal(&origin->source, source)) {
			if (__sync_val_compare_and_swap(&origin->number, number, number) == number)
				return number; /* and so was all that we compared */
			continue;
		}
		if (__sync_val_compare_and_swap(&origin->number, number, number + 1) != number)
			continue;
		origin->cgroup_id = id;
		origin->generation = generation;
		origin->source = *source;
		if (!next)
			next = 2; /* 0 stands for a packet without a mark */
		__sync_val_compare_and_swap(&origin->number, number + 1, next); /* with a barrier */
		return next;
	}
	return 0;
}

/* Writes down whose query this is, for the DNS gate to find. False: it must not leave. */
static __always_inline bool np_query_sign(struct __sk_buff *skb, const struct np_packet *p, __u64 id, __u32 generation)
{
	struct bpf_sock *sk = skb->sk;
	struct np_dns_server *server = sk ? bpf_sk_storage_get(&np_dns_server, sk, NULL, 0) : NULL;
	struct np_dns_origin *origin;
	__u32 at, number;

	if (!server)
		return false;
	at = NP_DNS_ORIGIN_INDEX(!np_addr_is_v4(&p->src), bpf_ntohs(p->sport), np_netns_of(np_sock_address(sk)));
	origin = bpf_map_lookup_elem(&np_dns_origins, &at);
	if (!origin)
		return false;
	/* Threads that send on one socket at once all want the same entry. They wait for each other, and none is preempted while it
	 * writes: a few tries would be over before the one that writes is done. */
	bpf_spin_lock(&server->lock);
	number = np_dns_origin_claim(origin, id, generation, &p->src);
	bpf_spin_unlock(&server->lock);
	if (!number)
		return false;
	if (sk->dst_port)
		origin->server = server->peer;
	else if (np_addr_is_v4(&p->src))
		origin->server = server->last[0];
	else
		origin->server = server->last[1];
	skb->mark = number;
	return true;
}

/* A query that the socket layer has led to the DNS gate. Its answer must come back to this sandbox, so the address that
 * it comes from must be the sandbox's own (IP_PKTINFO lets a program choose one). enum np_reason. A function of its own, so that the
 * verifier walks it once. */
__noinline int np_judge_query(struct __sk_buff *skb, struct np_sandbox *sandbox, const struct np_packet *p, __u64 id,
			      __u32 generation)
{
	struct np_tuple back = { .protocol = NP_IPPROTO_UDP };

	if (!sandbox || !p)
		return NP_R_INTERNAL;
	back.near_addr = p->src;
	back.near_port = p->sport;
	back.far_addr = p->dst;
	back.far_port = p->dport;
	if (np_peer_find(skb, &back, id, NULL) != NP_PEER_SELF)
		return NP_R_HOST_LOOPBACK;
	if (!np_query_may(skb, sandbox))
		return NP_R_TOO_MANY_QUERIES;
	return np_query_sign(skb, p, id, generation) ? NP_R_STEERED : NP_R_INTERNAL;
}
