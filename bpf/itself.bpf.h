/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The socket layer's shorter way to the sandbox itself, which may be reached in every mode. If what it goes by is no longer so np_egress
 * refuses, as it would in any case, and no more is lost than the errno that goes with it.
 */
#pragma once

#include "ports.bpf.h"
#include "steer.bpf.h"

/* Where the socket found its own sandbox when it sent the last time, as np_holder keeps it. */
static __always_inline __u32 np_self_digest(struct bpf_sock *sk, const struct np_addr *addr, __u16 port)
{
	return np_peer_digest(np_sock_address(sk), addr, port) & 0x7fff;
}

/* Does a datagram go where the last one of this socket went, and found the same sandbox? False: nothing is known. Never to port 53,
 * from where it would have to be led to the DNS gate once nobody of the sandbox is there. */
static __always_inline bool np_sends_to_itself(struct bpf_sock_addr *ctx, const struct np_addr *addr)
{
	struct bpf_sock *sk = ctx->sk;
	struct np_holder *holder = sk ? bpf_sk_storage_get(&np_holder, sk, NULL, 0) : NULL;

	return ctx->user_port != bpf_htons(NP_DNS_PORT) && holder && holder->self && holder->noted &&
	       np_hold_is_kept(holder, sk, (__u16)sk->src_port) &&
	       holder->self == np_self_digest(sk, addr, bpf_ntohs((__be16)ctx->user_port));
}

/* Does a connection lead to a port of the host's whose first holder is of this sandbox, listens there, and shares it with nobody? False:
 * nothing is known. */
static __always_inline bool np_calls_itself(struct bpf_sock_addr *ctx, const struct np_addr *addr, __u64 netns)
{
	struct np_hold_key key = { .port = bpf_ntohs((__be16)ctx->user_port), .protocol = NP_IPPROTO_TCP };
	struct sock_common *skc;
	struct np_hold *hold;

	if (!np_casts || ctx->protocol != NP_IPPROTO_TCP || netns != np_host_netns)
		return false;
	hold = bpf_map_lookup_elem(&np_holds, &key);
	if (!hold || hold->cgroup_id != np_sandbox_guess(ctx->sk) ||
	    np_addr_is_v4(&hold->addr) != np_addr_is_v4(addr) ||
	    !(np_addr_equal(&hold->addr, addr) || np_addr_is_any(&hold->addr)))
		return false;
	skc = bpf_rdonly_cast((void *)hold->sock, bpf_core_type_id_kernel(struct sock_common));
	return (__u64)skc->skc_cookie.counter == hold->cookie && skc->skc_num == key.port &&
	       skc->skc_state == NP_TCP_LISTEN && !BPF_CORE_READ_BITFIELD(skc, skc_reuseport);
}
