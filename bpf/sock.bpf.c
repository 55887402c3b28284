/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The socket layer, inet: refuses at the call, with the right errno. It is a
 * courtesy to the program in the sandbox; the packet layer is the boundary.
 */
#include <asm/errno.h>

#include "steer.bpf.h"

static __always_inline int np_refuse(int error)
{
	if (bpf_set_retval(-error))
		np_error_count(NP_AT_SET_RETVAL, 0); /* then the caller gets EPERM */
	return 0;
}

static __always_inline void np_report_sock(const struct np_who *who, const struct np_facts *f, enum np_hook hook,
					   enum np_reason reason, __u8 family)
{
	struct np_refusal r = {
		.box = who->box,
		.cgroup_id = who->id,
		.hook = hook,
		.reason = reason,
		.family = family,
		.protocol = f->protocol,
		.rule = f->rule,
		.epoch = f->epoch,
	};
	struct np_event *e = np_refusal_open(&r);

	if (!e)
		return;
	np_event_add_task(e);
	e->addr = f->addr;
	e->port = f->port;
	bpf_ringbuf_submit(e, 0);
}

SEC("cgroup/sock_create")
int np_create(struct bpf_sock *ctx)
{
	/* volatile: the compiler must not fold these into one moved pointer, which the verifier refuses. */
	__u32 type = *(volatile __u32 *)&ctx->type;
	__u32 protocol = *(volatile __u32 *)&ctx->protocol;
	struct np_who who = np_who_is(ctx);
	enum np_reason reason = np_judge_create(who.mode, type, protocol);
	struct np_facts f = { .protocol = protocol };

	if (NP_REASON_ALLOWS(reason))
		return np_allow();
	np_report_sock(&who, &f, NP_HOOK_CREATE, reason, ctx->family);
	/* What a kernel without the protocol answers: programs that probe for MPTCP or SCTP then fall back. */
	return np_refuse(type == 3 /* SOCK_RAW */ ? EPERM : EPROTONOSUPPORT);
}

/* Is the inspector there? Its own socket must listen, not somebody who took the port after its death. */
static __always_inline bool np_inspector_listens(struct bpf_sock_addr *ctx, bool v4)
{
	struct np_inspector *inspector = np_inspector_now();
	struct bpf_sock_tuple tuple = {};
	struct bpf_sock *sk;
	__u64 cookie, wanted;

	if (!inspector)
		return false;
	if (v4) {
		tuple.ipv4.daddr = np_net32(0x7f000001);
		tuple.ipv4.dport = bpf_htons(inspector->port4);
		wanted = inspector->cookie4;
		sk = bpf_sk_lookup_tcp(ctx, &tuple, sizeof(tuple.ipv4), BPF_F_CURRENT_NETNS, 0);
	} else {
		tuple.ipv6.daddr[3] = np_net32(1);
		tuple.ipv6.dport = bpf_htons(inspector->port6);
		wanted = inspector->cookie6;
		sk = bpf_sk_lookup_tcp(ctx, &tuple, sizeof(tuple.ipv6), BPF_F_CURRENT_NETNS, 0);
	}
	if (!sk)
		return false;
	cookie = BPF_CORE_READ((const struct sock_common *)np_sock_address(sk), skc_cookie.counter);
	bpf_sk_release(sk);
	return wanted && cookie == wanted;
}

/* Leads the connection to the inspector. False: it must be refused. six: the hook is connect6, v4: the address is
 * IPv4 all the same. */
static __always_inline bool np_steer(struct bpf_sock_addr *ctx, const struct np_who *who, const struct np_facts *f,
				     bool six, bool v4)
{
	struct np_inspector *inspector = np_inspector_now();
	struct bpf_sock *sk = ctx->sk;
	struct np_flow *flow;

	if (!inspector || !sk || !who->box)
		return false;
	flow = bpf_sk_storage_get(&np_steered, sk, NULL, BPF_SK_STORAGE_GET_F_CREATE);
	if (!flow)
		return false;
	flow->cgroup_id = who->id;
	flow->addr = f->addr;
	flow->port = f->port;
	flow->generation = who->box->generation;
	if (six) { /* volatile: the verifier takes no two words at once */
		volatile __u32 *to = ctx->user_ip6;

		to[0] = 0;
		to[1] = 0;
		to[2] = v4 ? np_net32(0xffff) : 0;
		to[3] = v4 ? np_net32(0x7f000001) : np_net32(1);
	} else {
		ctx->user_ip4 = np_net32(0x7f000001);
	}
	ctx->user_port = bpf_htons(v4 ? inspector->port4 : inspector->port6);
	return true;
}

/* connect() and sendmsg() ask the same question: may this socket reach that address? */
static __always_inline int np_reach(struct bpf_sock_addr *ctx, struct np_addr addr, enum np_hook hook, bool six)
{
	struct np_who who = np_who_is(ctx->sk);
	struct np_facts f = {
		.mode = who.mode,
		.protocol = ctx->protocol,
		.port = bpf_ntohs((__be16)ctx->user_port),
		.addr = addr,
		.opening = true,
	};
	__u8 kind = np_host_addr_kind(&addr);
	enum np_reason reason;

	f.many = kind == NP_ADDR_BROADCAST || np_addr_is_many(&addr);
	f.local = kind == NP_ADDR_OWN || np_addr_is_loopback(&addr) || np_addr_is_any(&addr);
	if (f.local && f.mode) {
		struct np_tuple flow = {
			.near_addr = addr,
			.near_port = ctx->user_port,
			.protocol = ctx->protocol,
		};

		if (np_addr_is_any(&addr)) /* to the kernel "any" as a destination is loopback */
			flow.near_addr.b[15] = 1, flow.near_addr.b[12] = np_addr_is_v4(&addr) ? 127 : 0;
		if (np_addr_is_v4(&addr))
			flow.far_addr = np_addr_v4(0);
		f.peer = np_peer_find(ctx, &flow, who.id);
		f.host_port = f.peer == NP_PEER_HOST && np_host_port_listed(f.port, f.mode, who.level);
	} else {
		np_facts_add_rule(&f, who.level);
		f.inspector = f.inspected && f.action != NP_ALLOW && hook == NP_HOOK_CONNECT &&
			      np_inspector_listens(ctx, np_addr_is_v4(&addr));
	}
	reason = np_judge_out(&f);
	if (hook == NP_HOOK_CONNECT && reason == NP_R_STEERED && !np_steer(ctx, &who, &f, six, np_addr_is_v4(&addr)))
		reason = NP_R_NO_INSPECTOR;
	if (NP_REASON_ALLOWS(reason))
		return np_allow();
	np_report_sock(&who, &f, hook, reason, ctx->family);
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

static __always_inline int np_bind(struct bpf_sock_addr *ctx, struct np_addr addr)
{
	struct np_who who = np_who_is(ctx->sk);
	struct np_facts f = {
		.protocol = ctx->protocol,
		.port = bpf_ntohs((__be16)ctx->user_port),
		.addr = addr,
	};
	struct np_tuple flow = { .near_addr = addr, .near_port = ctx->user_port, .protocol = ctx->protocol };
	enum np_peer holder = NP_PEER_NOBODY;
	enum np_reason reason;

	if (np_addr_is_v4(&addr))
		flow.far_addr = np_addr_v4(0);
	if (ctx->user_port && (f.protocol == NP_IPPROTO_TCP || f.protocol == NP_IPPROTO_UDP))
		holder = np_peer_find(ctx, &flow, who.id);
	reason = np_judge_bind(who.mode, holder);
	if (NP_REASON_ALLOWS(reason))
		return np_allow();
	np_report_sock(&who, &f, NP_HOOK_BIND, reason, ctx->family);
	return np_refuse(EADDRINUSE);
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
	struct np_who who;

	ctx->optlen = 0; /* the kernel takes the value from the caller, however long (-1 would skip the kernel) */
	if (NP_REASON_ALLOWS(reason))
		return np_allow();
	who = np_who_is(ctx->sk);
	np_report_sock(&who, &f, NP_HOOK_OPTION, reason, 0);
	return np_refuse(EPERM);
}
