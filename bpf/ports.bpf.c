/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The host's ports. A sandbox may hold a bounded number of them; and nobody beyond the host can tell which: a packet
 * from there for a sandbox's listener is answered by the kernel as if nobody listened, in every mode, unless the policy
 * lets callers in.
 */
#include <asm/errno.h>

#include "ports.bpf.h"
#include "sockets.bpf.h"

#define NP_LOOPBACK_IFINDEX 1 /* lo is device 1 of every network namespace */

static __always_inline int np_post_bind(struct bpf_sock *ctx)
{
	__u32 protocol = *(volatile __u32 *)&ctx->protocol;
	__u32 port = *(volatile __u32 *)&ctx->src_port;
	struct np_owner owner = np_owner_of(ctx);
	struct np_holder *holder;

	if (!np_is_ported(protocol) || !port)
		return np_allow();
	holder = bpf_sk_storage_get(&np_holder, ctx, NULL, BPF_SK_STORAGE_GET_F_CREATE);
	if (holder && np_hold_ensure(holder, ctx, bpf_get_socket_cookie(ctx), owner.id, protocol, port))
		return np_allow();
	bpf_set_retval(-ENOBUFS);
	return 0;
}

SEC("cgroup/post_bind4")
int np_post_bind4(struct bpf_sock *ctx)
{
	return np_post_bind(ctx);
}

SEC("cgroup/post_bind6")
int np_post_bind6(struct bpf_sock *ctx)
{
	return np_post_bind(ctx);
}

/* Takes back what np_count_socket() has counted. Returns the sandbox that the socket belongs to, or NULL: with it np_retire has
 * given back what was counted. */
static __always_inline struct np_sandbox *np_uncount_socket(struct bpf_sock *ctx, struct np_holder *holder)
{
	__u32 protocol = *(volatile __u32 *)&ctx->protocol, zero = 0, counted;
	__u64 id = holder ? holder->cgroup_id : 0;
	struct np_sandbox *sandbox;
	struct np_share *share;

	counted = id != 0;
	if (counted) {
		holder->cgroup_id = 0;
		sandbox = bpf_map_lookup_elem(&np_sandboxes, &id);
	} else {
		struct np_owner owner = np_owner_of(ctx);

		sandbox = owner.sandbox;
		if (sandbox && protocol == NP_IPPROTO_TCP) {
			struct np_socket_query query = { .cgroup_id = owner.id,
							 .sock = np_sock_address(ctx),
							 .cookie = bpf_get_socket_cookie(ctx),
							 .counted = 1 };

			np_socket_find(&query, *(volatile __u32 *)&sandbox->slots);
			counted = query.counted;
		}
	}
	if (!sandbox || !counted)
		return sandbox;
	__sync_fetch_and_add(&sandbox->sockets, -1);
	share = bpf_map_lookup_elem(&np_share, &zero);
	if (share)
		__sync_fetch_and_add(&share->sockets, -1);
	return sandbox;
}

/* close(), before the kernel takes the port away. So the entry stays until the next socket of the sandbox is closed;
 * in between it says what is true by itself. */
SEC("cgroup/sock_release")
int np_release(struct bpf_sock *ctx)
{
	struct np_holder *holder = bpf_sk_storage_get(&np_holder, ctx, NULL, 0);
	struct np_sandbox *sandbox = np_uncount_socket(ctx, holder);
	struct np_hold_key old;
	struct np_hold *hold;
	__u32 key;
	__u64 id;

	if (!holder || !sandbox)
		return np_allow();
	if (!holder->held) { /* in another network namespace, where no port is kept */
		id = bpf_get_socket_cookie(ctx);
		if (ctx->protocol == NP_IPPROTO_UDP)
			bpf_map_delete_elem(&np_peers, &id);
		return np_allow();
	}
	key = __sync_lock_test_and_set(&sandbox->released, holder->key);
	if (!key || key == holder->key)
		return np_allow();
	__builtin_memcpy(&old, &key, sizeof(old));
	hold = bpf_map_lookup_elem(&np_holds, &old);
	if (hold && !np_hold_stands(hold, old.port))
		np_hold_delete(&old, hold->cookie);
	return np_allow();
}

/* -- callers from beyond the host ------------------------------------------------- */

static __always_inline struct np_addr np_lookup_far(struct bpf_sk_lookup *ctx)
{
	if (ctx->family == AF_INET)
		return np_addr_v4(ctx->remote_ip4);
	return np_addr_read(ctx->remote_ip6);
}

/* Would the kernel hand a packet for this address to the socket, if the port fits? ::, which is no IPv4 address, stands
 * for all of both families; 0.0.0.0 for those of IPv4. */
static __always_inline bool np_hold_takes(const struct np_hold *hold, struct bpf_sk_lookup *ctx)
{
	struct np_addr near;

	if (ctx->family == AF_INET) {
		near = np_addr_v4(ctx->local_ip4);
		if (np_addr_is_any(&hold->addr))
			return np_addr_is_v4(&hold->addr) || !hold->v6only;
	} else {
		near = np_addr_read(ctx->local_ip6);
		if (np_addr_is_any(&hold->addr))
			return !np_addr_is_v4(&hold->addr);
	}
	return near.d[0] == hold->addr.d[0] && near.d[1] == hold->addr.d[1];
}

/* Does it take calls? One that does not listen does not, nor does a connected one. device: 0 for any. */
static __always_inline bool np_hold_takes_calls(const struct np_hold *hold, __u8 protocol, __u32 device)
{
	const struct sock_common *skc = (const void *)hold->sock;
	__u32 bound = BPF_CORE_READ(skc, skc_bound_dev_if);

	if (device && bound && bound != device)
		return false;
	if (protocol == NP_IPPROTO_TCP)
		return BPF_CORE_READ(skc, skc_state) == NP_TCP_LISTEN;
	return !BPF_CORE_READ(skc, skc_dport);
}

static __always_inline bool np_peers_have(const struct np_peers *peers, __u32 digest)
{
	for (int i = 0; i < NP_UDP_PEERS; i++)
		if (peers->digests[i] == digest)
			return true;
	return false;
}

__noinline int np_peer_is_known(__u64 cookie, __u64 sock, const struct np_addr *addr, __u32 port)
{
	struct np_peers *peers = bpf_map_lookup_elem(&np_peers, &cookie);

	return peers && addr && np_peers_have(peers, np_peer_digest(sock, addr, (__u16)port));
}

__noinline int np_peer_add(__u64 cookie, __u64 sock, const struct np_addr *addr, __u32 port)
{
	struct np_peers *peers = bpf_map_lookup_elem(&np_peers, &cookie), *none;
	__u32 digest, zero = 0, at;

	if (!addr)
		return false;
	if (!peers) {
		none = bpf_map_lookup_elem(&np_no_peers, &zero);
		if (none)
			bpf_map_update_elem(&np_peers, &cookie, none, BPF_NOEXIST);
		peers = bpf_map_lookup_elem(&np_peers, &cookie);
	}
	if (!peers)
		return false;
	digest = np_peer_digest(sock, addr, (__u16)port);
	if (np_peers_have(peers, digest))
		return true;
	at = __sync_fetch_and_add(&peers->next, 1) % NP_UDP_PEERS;
	peers->digests[at] = digest;
	return true;
}

/* Must the packet find nobody, although this socket would take it? A function of its own, so that the verifier walks it once and
 * not for every slot. */
__noinline int np_hold_hides(struct bpf_sk_lookup *ctx, const struct np_hold *hold, __u32 port, __u32 protocol)
{
	struct np_addr far = np_lookup_far(ctx);
	struct np_sandbox *sandbox;
	__u64 id;

	if (!hold || !np_hold_takes(hold, ctx))
		return false;
	/* bind() and listen() may come between this look and the kernel's own. So where a socket was bound a moment ago
	 * callers find nobody, whatever it is by now. Not for longer: the host may have the port after it, or, with
	 * SO_REUSEADDR, while it does not listen. */
	if (bpf_ktime_get_ns() - hold->since_ns > NP_HOLD_FRESH_MS * 1000000ull &&
	    !(np_hold_stands(hold, (__u16)port) && np_hold_takes_calls(hold, (__u8)protocol, ctx->ingress_ifindex)))
		return false;
	id = hold->cgroup_id;
	sandbox = bpf_map_lookup_elem(&np_sandboxes, &id);
	if (!sandbox || sandbox->rung.mode == NP_NONE)
		return true;
	if (sandbox->rung.mode == NP_FULL && np_inbound_listed((__u16)port))
		return false;
	if (protocol == NP_IPPROTO_TCP)
		return true;
	return !np_peer_is_known(hold->cookie, hold->sock, &far, bpf_ntohs(ctx->remote_port));
}

/* Did the packet start on this host? Then the packet layer judges it by its sender. For one to the host's own address
 * the kernel names the device of that address, not lo; a caller from outside with such a source gets no answer. */
static __always_inline bool np_is_from_here(struct bpf_sk_lookup *ctx)
{
	struct np_addr far = np_lookup_far(ctx);

	return ctx->ingress_ifindex <= NP_LOOPBACK_IFINDEX || np_addr_is_loopback(&far) ||
	       np_addr_kind(np_host_netns, &far) == NP_ADDR_OWN;
}

/* An event for the operator, that somebody called; the caller learns nothing by it. It is bounded for each listener, apart
 * from the sandbox's own refusals: a stranger must not be able to crowd those out. Nor does it count as one of them. */
__noinline int np_caller_report(struct bpf_sk_lookup *ctx, struct np_hold *hold, __u32 port, __u32 protocol)
{
	__u32 now_s = (__u32)(bpf_ktime_get_ns() / 1000000000) + 1, last_s;
	struct np_event *e;
	struct np_sandbox *sandbox;
	__u64 id;

	if (!hold)
		return 0;
	last_s = hold->reported_s;
	id = hold->cgroup_id;
	if ((last_s && now_s - last_s < NP_CALLER_EVENT_S) ||
	    __sync_val_compare_and_swap(&hold->reported_s, last_s, now_s) != last_s)
		return 0;
	sandbox = bpf_map_lookup_elem(&np_sandboxes, &id);
	if (sandbox && !np_bucket_take(&sandbox->callers, NP_EVENT_RATE, NP_EVENT_BURST, 1))
		return 0;
	e = sandbox ? bpf_ringbuf_reserve(&np_events, sizeof(*e), 0) : NULL;
	if (!e)
		return 0;
	__builtin_memset(e, 0, sizeof(*e));
	e->version = NP_ABI_VERSION;
	e->hook = NP_HOOK_SK_LOOKUP;
	e->reason = NP_R_INBOUND;
	e->rung = np_rung_of(sandbox);
	e->family = ctx->family;
	e->protocol = (__u16)protocol;
	e->time_ns = bpf_ktime_get_ns();
	e->cgroup_id = id;
	e->addr = np_lookup_far(ctx);
	e->port = bpf_ntohs(ctx->remote_port);
	e->near_port = (__u16)port;
	e->ifindex = ctx->ingress_ifindex;
	e->suppressed = sandbox->meter.suppressed;
	bpf_ringbuf_submit(e, 0);
	return 0;
}

/* Asked for each packet that belongs to no connection. With SK_DROP the kernel answers as if nobody were there: RST, or
 * ICMP "port unreachable", by its own code and within its own limits of rate. */
SEC("sk_lookup")
int np_inbound(struct bpf_sk_lookup *ctx)
{
	struct np_hold_key key = { .port = (__u16)ctx->local_port, .protocol = (__u8)ctx->protocol };
	struct np_hold *hold;
	__u32 *slots;

	slots = np_hold_slots_of(&key);
	if (!slots || !*(volatile __u32 *)slots || np_is_from_here(ctx))
		return SK_PASS;
	for (int i = 0; i < NP_PORT_SLOTS; i++) {
		key.slot = i;
		hold = bpf_map_lookup_elem(&np_holds, &key);
		if (hold && np_hold_hides(ctx, hold, key.port, key.protocol)) {
			np_caller_report(ctx, hold, key.port, key.protocol);
			return SK_DROP;
		}
	}
	return SK_PASS;
}

/* -- for the daemon ----------------------------------------------------------------- */

struct np_listener_search {
	__u64 cgroup_id;
	__u64 netns;
	struct np_hold found; /* as np_holds would have it */
	__u16 port;
	__u16 done;
	__u32 pad;
};

static long np_listener_look(__u32 slot, void *data)
{
	struct np_listener_search *search = data;
	struct np_socket *socket = np_slot_at(search->cgroup_id, slot);
	struct np_hold *found = &search->found;

	if (!socket || socket->protocol != NP_IPPROTO_TCP)
		return 0;
	found->sock = *(volatile __u64 *)&socket->sock;
	found->cookie = *(volatile __u64 *)&socket->cookie;
	/* What it listens on in a namespace that it made by itself is not what a caller would meet at that address and port. */
	if (!np_hold_stands(found, search->port) || !np_hold_takes_calls(found, NP_IPPROTO_TCP, 0) ||
	    np_netns_of(found->sock) != search->netns)
		return 0;
	np_hold_read_address(found);
	search->done = 1;
	return 1;
}

/* Does this sandbox listen there, for who calls from where it lives? */
SEC("syscall")
int np_listens(struct np_listens *ctx)
{
	struct np_listener_search search = { .cgroup_id = ctx->cgroup_id, .netns = ctx->netns, .port = ctx->port };
	struct np_sandbox *sandbox;
	__u32 slots;

	if (ctx->version != NP_ABI_VERSION)
		return -EPROTO;
	sandbox = bpf_map_lookup_elem(&np_sandboxes, &search.cgroup_id);
	if (!sandbox)
		return -ENOENT;
	slots = *(volatile __u32 *)&sandbox->slots & ~NP_SLOTS_LOST;
	bpf_loop(slots, np_listener_look, &search, 0);
	if (!search.done)
		return -ENOENT;
	ctx->addr = search.found.addr;
	ctx->v6only = (__u16)search.found.v6only;
	return 0;
}

struct bpf_map;
static long np_sweep_one(struct bpf_map *map, const struct np_hold_key *key, struct np_hold *hold, void *data)
{
	struct np_hold_key copy = *key;

	(void)map;
	(void)data;
	if (!np_hold_stands(hold, copy.port))
		np_hold_delete(&copy, hold->cookie);
	return 0;
}

/* Forgets the sockets that are gone. */
SEC("syscall")
int np_sweep(void *ctx)
{
	(void)ctx;
	bpf_for_each_map_elem(&np_holds, np_sweep_one, NULL, 0);
	return 0;
}
