/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The socket layer, inet: refuses at the call, with the right errno. It is a
 * courtesy to the program in the sandbox; the packet layer is the boundary.
 */
#include <asm/errno.h>

#include "itself.bpf.h"
#include "judge.bpf.h"
#include "ports.bpf.h"
#include "sockets.bpf.h"
#include "steer.bpf.h"

static __always_inline int np_refuse(int error)
{
	if (bpf_set_retval(-error))
		np_error_count(NP_AT_SET_RETVAL, 0); /* then the caller gets EPERM */
	return 0;
}

static __always_inline void np_report_sock(const struct np_owner *owner, const struct np_facts *f, enum np_hook hook,
					   enum np_reason reason, __u8 family)
{
	struct np_refusal r = {
		.cgroup_id = owner->id,
		.rung = owner->rung,
		.hook = hook,
		.reason = reason,
		.family = family,
	};

	np_report_call(owner->sandbox, &r, f);
}

/* One more socket of this sandbox. What it may have is bounded, and so is what all have together, but for a few that
 * each has in any case. Accepted sockets are not counted: they take no port. Nor are those that were open when a cgroup
 * was adopted: np_release gives back only what was counted here. That it was is said by the entry of np_sockets that a TCP
 * socket gets in any case; or, when that is not where np_release would look for it, and of others, by a note with the socket,
 * which costs more than all the rest of this. */
static __always_inline enum np_reason np_count_socket(struct bpf_sock *ctx, const struct np_owner *owner,
						      __u32 protocol)
{
	struct np_socket_query query = { .cgroup_id = owner->id, .sock = np_sock_address(ctx), .protocol = protocol };
	struct np_sandbox *sandbox = owner->sandbox;
	struct np_holder *holder = NULL;
	struct np_share *share;
	__u32 zero = 0;

	share = bpf_map_lookup_elem(&np_share, &zero);
	if (!sandbox || !share)
		return NP_R_INTERNAL;
	barrier_var(sandbox); /* no arithmetic on it before it is known not to be NULL */
	if (*(volatile __s32 *)&sandbox->sockets >= NP_SOCKETS_PER_SANDBOX)
		return NP_R_TOO_MANY_SOCKETS;
	if (*(volatile __s64 *)&share->sockets >= np_sockets_all &&
	    *(volatile __s32 *)&sandbox->sockets >= NP_SOCKETS_SURE)
		return NP_R_TOO_MANY_SOCKETS;
	if (np_is_ported(protocol)) {
		query.cookie = bpf_get_socket_cookie(ctx);
		query.counted = protocol == NP_IPPROTO_TCP;
		if (np_socket_note(&query))
			query.counted = 0;
	}
	if (!query.counted) {
		holder = bpf_sk_storage_get(&np_holder, ctx, NULL, BPF_SK_STORAGE_GET_F_CREATE);
		if (!holder)
			return NP_R_INTERNAL;
		holder->cgroup_id = owner->id;
		holder->noted = np_is_ported(protocol);
	}
	__sync_fetch_and_add(&sandbox->sockets, 1);
	__sync_fetch_and_add(&share->sockets, 1);
	return NP_R_OPEN_MODE;
}

/* Would it be in another network namespace than its sandbox, a container, lives in? There is nobody who listens for it, looks for
 * its sockets or guards the devices there: so nobody gets any by unshare() or setns(). */
static __always_inline bool np_has_left(struct bpf_sock *ctx, const struct np_owner *owner)
{
	__u64 id = owner->id;
	struct np_home *home;

	home = bpf_map_lookup_elem(&np_homes, &id);
	return home && home->bound && home->netns != bpf_get_netns_cookie(ctx);
}

SEC("cgroup/sock_create")
int np_create(struct bpf_sock *ctx)
{
	/* volatile: the compiler must not fold these into one moved pointer, which the verifier refuses. */
	__u32 type = *(volatile __u32 *)&ctx->type;
	__u32 protocol = *(volatile __u32 *)&ctx->protocol;
	struct np_owner owner = np_owner_of(ctx);
	enum np_reason reason = np_judge_create(owner.rung.mode, type, protocol);
	struct np_facts f = { .protocol = protocol };
	bool left = np_has_left(ctx, &owner), good = !left && NP_REASON_ALLOWS(reason);

	if (left)
		reason = NP_R_LEFT_NETNS;
	if (good)
		reason = np_count_socket(ctx, &owner, protocol);
	if (NP_REASON_ALLOWS(reason))
		return np_allow();
	np_report_sock(&owner, &f, NP_HOOK_CREATE, reason, ctx->family);
	if (good) /* what a process with too many open files gets: programs know it, and close some or wait */
		return np_refuse(EMFILE);
	/* What a kernel without the protocol answers: programs that probe for MPTCP or SCTP then fall back. */
	return np_refuse(left || type == 3 /* SOCK_RAW */ ? EPERM : EPROTONOSUPPORT);
}

/* Of threads that send on one new socket at once only one makes its storage. The kernel answers the others with NULL, and by
 * then it is there to be found. */
static __always_inline struct np_dns_server *np_dns_server_get(struct bpf_sock *sk)
{
	struct np_dns_server *server = bpf_sk_storage_get(&np_dns_server, sk, NULL, BPF_SK_STORAGE_GET_F_CREATE);

	return server ? server : bpf_sk_storage_get(&np_dns_server, sk, NULL, 0);
}

/* What is kept with the socket. False: it cannot be kept. */
static __always_inline bool np_note(struct bpf_sock_addr *ctx, const struct np_owner *owner, const struct np_facts *f,
				    enum np_hook hook, __u16 port)
{
	struct bpf_sock *sk = ctx->sk;
	struct np_dns_server *server;
	struct np_flow *flow;

	if (!sk || !owner->sandbox)
		return false;
	if (f->protocol == NP_IPPROTO_TCP) {
		flow = bpf_sk_storage_get(&np_steered, sk, NULL, BPF_SK_STORAGE_GET_F_CREATE);
		if (!flow)
			return false;
		flow->cgroup_id = owner->id;
		flow->addr = f->addr;
		flow->port = f->port;
		flow->generation = owner->rung.generation;
		flow->pid = bpf_get_current_pid_tgid() >> 32;
		return true;
	}
	server = np_dns_server_get(sk);
	if (!server)
		return false;
	if (np_addr_is_v4(&f->addr)) {
		server->last[0] = f->addr;
		server->port[0] = port;
	} else {
		server->last[1] = f->addr;
		server->port[1] = port;
	}
	if (hook == NP_HOOK_CONNECT)
		server->peer = f->addr;
	return true;
}

/* Leads it to where it is judged. False: it must be refused. six: the hook is one of IPv6's; the address may be IPv4
 * all the same. */
static __always_inline bool np_steer(struct bpf_sock_addr *ctx, const struct np_owner *owner, const struct np_facts *f,
				     enum np_hook hook, bool six)
{
	struct np_inspector *inspector = np_inspector_in(bpf_get_netns_cookie(ctx));
	bool v4 = np_addr_is_v4(&f->addr);
	__u16 port;

	if (!inspector)
		return false;
	port = np_listener_for(inspector, f->protocol, v4).port;
	if (!np_note(ctx, owner, f, hook, port))
		return false;
	if (six) { /* volatile: the verifier takes no two words at once */
		volatile __u32 *to = ctx->user_ip6;

		to[0] = 0;
		to[1] = 0;
		to[2] = v4 ? np_net32(0xffff) : 0;
		to[3] = v4 ? np_net32(0x7f000001) : np_net32(1);
	} else {
		ctx->user_ip4 = np_net32(0x7f000001);
	}
	ctx->user_port = bpf_htons(port);
	return true;
}

/* send() on an AF_INET6 socket that is connected to an IPv4 address meets sendmsg4, with the address that connect() was
 * led to. */
static __always_inline bool np_is_led_there(struct bpf_sock_addr *ctx)
{
	struct bpf_sock *sk = ctx->sk;

	return sk && sk->family == AF_INET6 && sk->state == NP_ESTABLISHED && sk->dst_port == (__be16)ctx->user_port &&
	       bpf_sk_storage_get(&np_dns_server, sk, NULL, 0);
}

/* The note on a UDP socket that is about to lead somewhere; NULL: there is no room for it. */
static __always_inline struct np_holder *np_sender_holder(struct bpf_sock_addr *ctx, struct bpf_sock *sk,
							  const struct np_owner *owner, __u64 cookie)
{
	struct np_holder *holder = bpf_sk_storage_get(&np_holder, sk, NULL, BPF_SK_STORAGE_GET_F_CREATE);

	if (holder && !holder->noted && owner->sandbox) {
		np_socket_add(owner->id, np_sock_address(sk), cookie ? cookie : bpf_get_socket_cookie(ctx),
			      NP_IPPROTO_UDP);
		holder->noted = 1;
	}
	return holder;
}

/* An unconnected UDP socket sends: by now it has a port, which the kernel may just have chosen. False: that cannot be
 * kept. allowed: it may, so that an answer may come from there. */
static __always_inline bool np_sender_note(struct bpf_sock_addr *ctx, const struct np_owner *owner,
					   const struct np_facts *f, bool allowed)
{
	struct bpf_sock *sk = ctx->sk;
	struct np_holder *holder;
	__u64 cookie;

	if (!sk || !sk->src_port)
		return true;
	cookie = bpf_get_socket_cookie(ctx);
	holder = np_sender_holder(ctx, sk, owner, cookie);
	if (!holder || !np_hold_ensure(holder, sk, cookie, owner->id, NP_IPPROTO_UDP, (__u16)sk->src_port))
		return false;
	if (f->local && f->peer == NP_PEER_SELF && f->port != NP_DNS_PORT)
		holder->self = np_self_digest(sk, &f->addr, f->port);
	return f->local || !allowed ||
	       np_peer_add(cookie, np_sock_address(sk), &f->addr, bpf_ntohs((__be16)ctx->user_port));
}

/* Most connections and datagrams there are: in FULL, beyond the host, where no rule speaks of addresses. True: it passes, as
 * np_reach_judged() would say; false: nothing is known. */
static __always_inline bool np_reach_is_plain(struct bpf_sock_addr *ctx, const struct np_owner *owner,
					      const struct np_addr *addr, __u64 netns, __u8 kind, enum np_hook hook)
{
	return owner->rung.mode == NP_FULL && netns == np_host_netns && !kind &&
	       ctx->protocol == (hook == NP_HOOK_CONNECT ? NP_IPPROTO_TCP : NP_IPPROTO_UDP) &&
	       !np_addr_is_loopback(addr) && !np_addr_is_any(addr) && np_judge_plain_far(addr) &&
	       !np_in_force_now().full_rules;
}

/* The long way of np_reach(). */
static __always_inline enum np_reason np_reach_judged(struct bpf_sock_addr *ctx, const struct np_owner *owner,
						      struct np_facts *f, __u64 netns, __u8 kind, enum np_hook hook,
						      bool six)
{
	enum np_reason reason;

	np_facts_add_kind(f, kind);
	if (f->local && f->mode) {
		np_facts_add_peer(ctx, f, owner->id, &owner->rung);
		if (f->dns_gate && hook == NP_HOOK_SEND && !six)
			f->steered = np_is_led_there(ctx);
	} else {
		np_facts_add_far(f, netns, &owner->rung);
	}
	if (f->mode == NP_PROXIED) /* nobody else is led anywhere */
		np_facts_add_listener(ctx, f);
	reason = np_reach_out(f);
	if (reason == NP_R_STEERED && !f->steered && !np_steer(ctx, owner, f, hook, six))
		reason = np_is_query(f) ? NP_R_NO_DNS_GATE : NP_R_NO_INSPECTOR;
	return reason;
}

/* connect() and sendmsg() ask the same question: may this socket reach that address? */
static __always_inline int np_reach(struct bpf_sock_addr *ctx, struct np_addr addr, enum np_hook hook, bool six)
{
	__u64 netns = np_netns_of_socket(ctx->sk);
	__u8 kind = np_addr_is_localhost(&addr) ? NP_ADDR_OWN : np_addr_kind(netns, &addr);
	enum np_reason reason = NP_R_OPEN_MODE;
	struct np_owner owner;
	struct np_facts f;
	bool plain;

	if (kind == NP_ADDR_OWN &&
	    (hook == NP_HOOK_SEND ? np_sends_to_itself(ctx, &addr) : np_calls_itself(ctx, &addr, netns)))
		return np_allow();
	owner = np_owner_of(ctx->sk);
	plain = np_reach_is_plain(ctx, &owner, &addr, netns, kind, hook);
	if (plain && hook == NP_HOOK_CONNECT)
		return np_allow();
	f = (struct np_facts){
		.mode = owner.rung.mode,
		.protocol = ctx->protocol,
		.port = bpf_ntohs((__be16)ctx->user_port),
		.addr = addr,
		.opening = true,
		.connecting = hook == NP_HOOK_CONNECT,
	};
	barrier_var(plain); /* the verifier goes on once from here, not for each way that leads here */
	if (!plain)
		reason = np_reach_judged(ctx, &owner, &f, netns, kind, hook, six);
	if (hook == NP_HOOK_CONNECT && f.protocol == NP_IPPROTO_UDP && ctx->sk &&
	    !np_sender_holder(ctx, ctx->sk, &owner, 0))
		reason = NP_R_INTERNAL;
	if (hook == NP_HOOK_SEND && !np_sender_note(ctx, &owner, &f, NP_REASON_ALLOWS(reason)))
		reason = NP_R_INTERNAL;
	if (NP_REASON_ALLOWS(reason))
		return np_allow();
	np_report_sock(&owner, &f, hook, reason, ctx->family);
	return np_refuse(ECONNREFUSED);
}

SEC("cgroup/connect4")
int np_connect4(struct bpf_sock_addr *ctx)
{
	return np_reach(ctx, np_addr_v4(ctx->user_ip4), NP_HOOK_CONNECT, false);
}

SEC("cgroup/connect6")
int np_connect6(struct bpf_sock_addr *ctx)
{
	return np_reach(ctx, np_addr_read(ctx->user_ip6), NP_HOOK_CONNECT, true);
}

SEC("cgroup/sendmsg4")
int np_sendmsg4(struct bpf_sock_addr *ctx)
{
	return np_reach(ctx, np_addr_v4(ctx->user_ip4), NP_HOOK_SEND, false);
}

SEC("cgroup/sendmsg6")
int np_sendmsg6(struct bpf_sock_addr *ctx)
{
	return np_reach(ctx, np_addr_read(ctx->user_ip6), NP_HOOK_SEND, true);
}

/* enum np_reason. */
__noinline int np_bind_judged(struct bpf_sock_addr *ctx, const struct np_facts *f, __u64 id)
{
	enum np_peer holder = NP_PEER_NOBODY;
	struct np_tuple flow = {};

	if (!f)
		return NP_R_INTERNAL;
	flow.near_addr = f->addr;
	flow.near_port = ctx->user_port;
	flow.protocol = f->protocol;
	if (np_addr_is_v4(&f->addr))
		flow.far_addr = np_addr_v4(0);
	if (f->port && np_is_ported(f->protocol))
		holder = np_peer_find(ctx, &flow, id, NULL);
	return np_judge_bind(f->mode, &f->addr,
			     np_addr_is_any(&f->addr) || np_is_own_addr(bpf_get_netns_cookie(ctx), &f->addr), holder);
}

static __always_inline int np_bind(struct bpf_sock_addr *ctx, struct np_addr addr)
{
	struct np_owner owner = np_owner_of(ctx->sk);
	struct np_facts f = {
		.mode = owner.rung.mode,
		.protocol = ctx->protocol,
		.port = bpf_ntohs((__be16)ctx->user_port),
		.addr = addr,
	};
	enum np_reason reason = np_bind_judged(ctx, &f, owner.id);

	if (NP_REASON_ALLOWS(reason))
		return np_allow();
	np_report_sock(&owner, &f, NP_HOOK_BIND, reason, ctx->family);
	return np_refuse(reason == NP_R_PORT_TAKEN ? EADDRINUSE : EADDRNOTAVAIL);
}

SEC("cgroup/bind4")
int np_bind4(struct bpf_sock_addr *ctx)
{
	return np_bind(ctx, np_addr_v4(ctx->user_ip4));
}

SEC("cgroup/bind6")
int np_bind6(struct bpf_sock_addr *ctx)
{
	return np_bind(ctx, np_addr_read(ctx->user_ip6));
}

SEC("cgroup/setsockopt")
int np_setsockopt(struct bpf_sockopt *ctx)
{
	enum np_reason reason = np_judge_option(ctx->level, ctx->optname);
	struct np_facts f = {};
	struct np_owner owner;

	/* Two UDP sockets may share a port by SO_REUSEADDR alone, whoever they belong to: one of the host's would be hidden
	 * together with the sandbox's. Ping sockets share their number likewise, and one would get the other's answers. The
	 * option does nothing here; UDP needs it for nothing else but multicast. */
	if (ctx->level == 1 && ctx->optname == 2 && ctx->sk && ctx->sk->protocol != NP_IPPROTO_TCP) {
		ctx->optlen = -1;
		return np_allow();
	}
	ctx->optlen = 0; /* the kernel takes the value from the caller, however long (-1 would skip the kernel) */
	if (NP_REASON_ALLOWS(reason))
		return np_allow();
	owner = np_owner_of(ctx->sk);
	np_report_sock(&owner, &f, NP_HOOK_OPTION, reason, 0);
	return np_refuse(EPERM);
}
