/* SPDX-License-Identifier: GPL-2.0-only */
/* Which of the host's ports a sandbox holds, how many sockets it may have, and where its UDP sockets sent to. */
#pragma once

#include "ports.h"
#include "owner.bpf.h"

#define NP_TCP_SYN_SENT 2
#define NP_TCP_LISTEN	10

static __always_inline __u32 *np_hold_slots_of(const struct np_hold_key *key)
{
	__u32 at = NP_HOLD_SLOTS_INDEX(key->protocol == NP_IPPROTO_UDP, key->port);

	return bpf_map_lookup_elem(&np_hold_slots, &at);
}

/* Is the socket of this entry still at its port? When it is closed the kernel takes its port number away, and a socket
 * that is made at the same address has another cookie. */
static __always_inline bool np_hold_stands(const struct np_hold *hold, __u16 port)
{
	const struct sock_common *skc = (const void *)hold->sock;

	return (__u64)BPF_CORE_READ(skc, skc_cookie.counter) == hold->cookie && BPF_CORE_READ(skc, skc_num) == port;
}

/* Where it is bound to. */
static __always_inline void np_hold_read_address(struct np_hold *hold)
{
	const struct sock_common *skc = (const void *)hold->sock;

	if (BPF_CORE_READ(skc, skc_family) == AF_INET6) {
		BPF_CORE_READ_INTO(&hold->addr, skc, skc_v6_rcv_saddr);
		hold->v6only = BPF_CORE_READ_BITFIELD_PROBED(skc, skc_ipv6only);
	} else {
		hold->addr = np_addr_v4(BPF_CORE_READ(skc, skc_rcv_saddr));
	}
}

static __always_inline void np_hold_delete(const struct np_hold_key *key, __u64 cookie)
{
	__u32 *slots;

	if (bpf_map_delete_elem(&np_holds, key))
		return; /* somebody else has, and has counted */
	slots = np_hold_slots_of(key);
	if (slots)
		__sync_fetch_and_add(slots, -1);
	if (key->protocol == NP_IPPROTO_UDP)
		bpf_map_delete_elem(&np_peers, &cookie);
}

/* holds.bpf.c. Writes down that a socket of a sandbox has this port, in place of what it had before. holder is its own. 0, or an
 * error: it cannot be kept, so the socket must not have it. A function of its own, so that the verifier walks it once. */
struct np_hold_query {
	__u64 sock, cookie, cgroup_id;
	struct np_hold_key key; /* without its slot */
	__u32 pad;
};
int np_hold_put(const struct np_hold_query *query, struct np_holder *holder);

/* Does this socket have its entry, for this port? One in another network namespace than the host's needs none. */
static __always_inline bool np_hold_is_kept(const struct np_holder *holder, const void *sk, __u16 port)
{
	struct np_hold_key key;

	__builtin_memcpy(&key, &holder->key, sizeof(key));
	return holder->held ? key.port == port : np_netns_of_socket(sk) != np_host_netns;
}

/* Puts it there when it has none or changed its port. holder is its own. */
static __always_inline bool np_hold_ensure(struct np_holder *holder, const void *sk, __u64 cookie, __u64 cgroup_id,
					   __u16 protocol, __u16 port)
{
	struct np_hold_query query = {
		.cookie = cookie,
		.cgroup_id = cgroup_id,
		.key = { .port = port, .protocol = (__u8)protocol },
	};

	if (np_hold_is_kept(holder, sk, port))
		return true;
	query.sock = np_sock_address(sk);
	return !np_hold_put(&query, holder);
}

/* A digest of an address and a port, with a salt that nobody outside the kernel knows: where the socket lies. Never 0. */
static __always_inline __u32 np_peer_digest(__u64 sock, const struct np_addr *addr, __u16 port)
{
	__u64 x = sock ^ addr->d[0];

	x = (x ^ x >> 32) * 0x9e3779b97f4a7c15ull;
	x ^= addr->d[1];
	x = (x ^ x >> 29) * 0xbf58476d1ce4e5b9ull;
	x ^= port;
	x = (x ^ x >> 32) * 0x94d049bb133111ebull;
	x ^= x >> 31;
	return (__u32)x ? (__u32)x : 1;
}

/* ports.bpf.c. Did the UDP socket with this cookie send there? Functions of their own, so that the verifier walks them once. */
int np_peer_is_known(__u64 cookie, __u64 sock, const struct np_addr *addr, __u32 port);
/* It may have an answer from there. 0: that cannot be kept. */
int np_peer_add(__u64 cookie, __u64 sock, const struct np_addr *addr, __u32 port);

static __always_inline bool np_inbound_listed_in(__u32 epoch, __u16 port)
{
	struct np_listed_key key = { .epoch = epoch, .port = port };
	struct np_listed *listed = bpf_map_lookup_elem(&np_ports, &key);

	return listed && listed->inbound;
}

static __always_inline bool np_inbound_listed(__u16 port)
{
	return np_inbound_listed_in(np_in_force_now().epoch, port);
}

/* Did the policy before the live one let callers reach it, and the live one does not? The entries of that one stay until
 * there is a third. */
static __always_inline bool np_inbound_withdrawn(__u16 port)
{
	__u32 epoch = np_in_force_now().epoch;

	return np_inbound_listed_in(epoch - 1, port) && !np_inbound_listed_in(epoch, port);
}
