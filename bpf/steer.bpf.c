/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Steering: what becomes of a connection after connect() was told to lead to the
 * inspector. Its identity is kept with the socket; when its port is known, and
 * before its first packet leaves, it is written down for the inspector's end of the
 * very same connection to find: see flow.h.
 */
#include <asm/errno.h>

#include "ports.bpf.h"
#include "sockets.bpf.h"
#include "steer.bpf.h"

#define NP_TCP_CLOSE 7

/*
 * Takes an entry out of np_flows. Only one caller gets true for it: it counts, and what it read from the entry before is
 * what the entry was, because a key is used once (a socket never sends two SYNs with one number from one port within the
 * life of an entry) and a value is never changed. Without that proof the value is not to be trusted: the kernel may give
 * the memory of a deleted element to another one at once.
 */
static __always_inline bool np_flow_take(const struct np_flow_key *key, __u64 cgroup_id)
{
	struct np_sandbox *sandbox;

	if (bpf_map_delete_elem(&np_flows, key))
		return false;
	sandbox = bpf_map_lookup_elem(&np_sandboxes, &cgroup_id);
	if (sandbox)
		__sync_fetch_and_add(&sandbox->flows, -1);
	return true;
}

static __always_inline struct np_flow_key np_flow_key_of(struct bpf_sock_ops *ctx, __u32 isn)
{
	struct np_flow_key key = { .netns = bpf_get_netns_cookie(ctx), .isn = isn };

	if (ctx->family == AF_INET) {
		key.addr = np_addr_v4(ctx->local_ip4);
	} else {
		key.addr = np_addr_read(ctx->local_ip6);
	}
	key.port = (__u16)ctx->local_port;
	return key;
}

static __always_inline struct np_addr np_remote_addr(struct bpf_sock_ops *ctx)
{
	struct np_addr addr;

	if (ctx->family == AF_INET) {
		addr = np_addr_v4(ctx->remote_ip4);
	} else {
		addr = np_addr_read(ctx->remote_ip6);
	}
	return addr;
}

/* The number that the SYN is about to carry, whether or not data goes with it (TCP_FASTOPEN). */
static __always_inline __u32 np_isn_chosen(struct bpf_sock *sk)
{
	return BPF_CORE_READ((const struct tcp_sock *)np_sock_address(sk), write_seq);
}

/* A sandbox has a bounded number of connections that are on their way to the inspector; one over it, or a full table,
 * and the connection has no identity: the inspector resets it. */
static __always_inline void np_flow_put(struct bpf_sock_ops *ctx, struct bpf_sock *sk, struct np_flow *flow)
{
	struct np_flow_key key = np_flow_key_of(ctx, np_isn_chosen(sk));
	__u64 id = flow->cgroup_id;
	struct np_sandbox *sandbox = bpf_map_lookup_elem(&np_sandboxes, &id);
	long r;

	if (!sandbox || sandbox->flows >= NP_FLOWS_PER_SANDBOX)
		return;
	flow->isn = key.isn;
	__sync_fetch_and_add(&sandbox->flows, 1);
	r = bpf_map_update_elem(&np_flows, &key, flow, BPF_NOEXIST);
	if (r) {
		__sync_fetch_and_add(&sandbox->flows, -1);
		np_error_count(NP_AT_FLOW_INSERT, r);
		return;
	}
	bpf_sock_ops_cb_flags_set(ctx, BPF_SOCK_OPS_STATE_CB_FLAG);
}

/* The child of a listener leads somewhere from now on. */
static __always_inline void np_child_note(struct bpf_sock_ops *ctx, struct bpf_sock *sk)
{
	struct np_socket_query query = {
		.cgroup_id = np_sandbox_guess(sk),
		.sock = np_sock_address(sk),
		.cookie = bpf_get_socket_cookie(ctx),
		.protocol = NP_IPPROTO_TCP,
	};
	struct np_owner owner;

	if (query.cgroup_id && np_socket_note(&query) != -ENOENT)
		return;
	owner = np_owner_of(sk); /* the guess is no sandbox */
	query.cgroup_id = owner.id;
	if (owner.sandbox)
		np_socket_note(&query);
}

/* A socket that is about to lead somewhere, and was noted when it was made, if this gate saw that. It may be noted twice: whoever
 * connects so does it once or twice. */
static __always_inline void np_connecting_note(struct bpf_sock_ops *ctx, struct bpf_sock *sk,
					       const struct np_owner *owner)
{
	struct np_socket_query query = { .cgroup_id = owner->id, .protocol = NP_IPPROTO_TCP };
	struct np_sandbox *sandbox = owner->sandbox;
	struct np_holder *holder;

	if (!sandbox)
		return;
	barrier_var(sandbox); /* no arithmetic on it before it is known not to be NULL */
	query.sock = np_sock_address(sk);
	query.cookie = bpf_get_socket_cookie(ctx);
	if (np_socket_find(&query, *(volatile __u32 *)&sandbox->slots))
		return;
	holder = bpf_sk_storage_get(&np_holder, sk, NULL, 0);
	if (!holder || !holder->noted)
		np_socket_note(&query);
}

/* listen() of a socket that was not bound: the kernel has just chosen its port. */
static __always_inline void np_listener_note(struct bpf_sock_ops *ctx, struct bpf_sock *sk)
{
	struct np_holder *holder = bpf_sk_storage_get(&np_holder, sk, NULL, BPF_SK_STORAGE_GET_F_CREATE);
	struct np_owner owner;

	if (!holder)
		return; /* the packet layer holds all the same, silently */
	owner = np_owner_of(sk);
	np_hold_ensure(holder, sk, bpf_get_socket_cookie(ctx), owner.id, NP_IPPROTO_TCP, (__u16)ctx->local_port);
}

/* The only program of its kind: the kernel asks each of them nine times for one connection, mostly for nothing. */
SEC("sockops")
int np_sockops(struct bpf_sock_ops *ctx)
{
	const __u32 wanted = 1u << BPF_SOCK_OPS_TCP_CONNECT_CB | 1u << BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB |
			     1u << BPF_SOCK_OPS_TCP_LISTEN_CB | 1u << BPF_SOCK_OPS_STATE_CB;
	struct np_owner owner;
	struct np_flow *flow;
	struct np_flow_key key;
	struct bpf_sock *sk;

	if (ctx->op > 31 || !(wanted >> ctx->op & 1))
		return 1;
	sk = ctx->sk;
	if (!sk || (ctx->op == BPF_SOCK_OPS_STATE_CB && ctx->args[1] != NP_TCP_CLOSE))
		return 1;
	if (ctx->op == BPF_SOCK_OPS_TCP_LISTEN_CB) {
		np_listener_note(ctx, sk);
		return 1;
	}
	if (ctx->op == BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB) {
		np_child_note(ctx, sk);
		return 1;
	}
	if (ctx->op == BPF_SOCK_OPS_TCP_CONNECT_CB) {
		owner = np_owner_of(sk);
		np_connecting_note(ctx, sk, &owner);
		if (owner.rung.mode == NP_FULL)
			return 1; /* nothing was ever led to the inspector */
	}
	flow = bpf_sk_storage_get(&np_steered, sk, NULL, 0);
	if (!flow)
		return 1;
	if (ctx->op == BPF_SOCK_OPS_TCP_CONNECT_CB) {
		struct np_addr far = np_remote_addr(ctx);

		/* An old note on a socket that was connected anew, somewhere else, is not for the inspector. */
		if (np_is_inspector(bpf_get_netns_cookie(ctx), &far, (__u16)bpf_ntohl(ctx->remote_port)))
			np_flow_put(ctx, sk, flow);
		return 1;
	}
	key = np_flow_key_of(ctx, flow->isn);
	np_flow_take(&key, flow->cgroup_id);
	return 1;
}

/* -- the program sees the address that it asked for ------------------------------ */

/* Who a socket's peer at this address was meant to be. False: just that. */
static __always_inline bool np_flow_restore(struct bpf_sock_addr *ctx, struct np_addr *addr, __u16 *ret_port)
{
	struct bpf_sock *sk = ctx->sk;
	struct np_flow *flow;

	if (!sk || !np_is_inspector(bpf_get_netns_cookie(ctx), addr, bpf_ntohs((__be16)ctx->user_port)))
		return false;
	flow = bpf_sk_storage_get(&np_steered, sk, NULL, 0);
	if (!flow)
		return false;
	*addr = flow->addr;
	*ret_port = flow->port;
	return true;
}

/* Likewise, and which server a datagram from there answers for. By the port that is noted: the DNS gate may have
 * another one by now. A socket that asked several in a row gets all answers from the last one. */
static __always_inline bool np_dns_server_restore(struct bpf_sock_addr *ctx, struct np_addr *addr, __u16 *ret_port)
{
	struct np_addr loopback = np_loopback_for(addr);
	struct bpf_sock *sk = ctx->sk;
	struct np_dns_server *server;
	bool v4 = np_addr_is_v4(addr);
	__u16 port;

	if (!sk || ctx->protocol != NP_IPPROTO_UDP || !np_addr_equal(addr, &loopback))
		return false;
	server = bpf_sk_storage_get(&np_dns_server, sk, NULL, 0);
	if (!server)
		return false;
	port = v4 ? server->port[0] : server->port[1];
	if (!port || port != bpf_ntohs((__be16)ctx->user_port))
		return false;
	if (sk->state == NP_ESTABLISHED)
		*addr = server->peer;
	else if (v4)
		*addr = server->last[0];
	else
		*addr = server->last[1];
	*ret_port = NP_DNS_PORT;
	return true;
}

static __always_inline int np_name_write4(struct bpf_sock_addr *ctx, const struct np_addr *addr, __u16 port)
{
	ctx->user_ip4 = addr->w[3];
	ctx->user_port = bpf_htons(port);
	return np_allow();
}

static __always_inline int np_name_write6(struct bpf_sock_addr *ctx, const struct np_addr *addr, __u16 port)
{
	volatile __u32 *to = ctx->user_ip6;

	to[0] = addr->w[0];
	to[1] = addr->w[1];
	to[2] = addr->w[2];
	to[3] = addr->w[3];
	ctx->user_port = bpf_htons(port);
	return np_allow();
}

SEC("cgroup/getpeername4")
int np_getpeername4(struct bpf_sock_addr *ctx)
{
	struct np_addr addr = np_addr_v4(ctx->user_ip4);
	__u16 port = 0;

	if (np_flow_restore(ctx, &addr, &port) || np_dns_server_restore(ctx, &addr, &port))
		return np_name_write4(ctx, &addr, port);
	return np_allow();
}

SEC("cgroup/getpeername6")
int np_getpeername6(struct bpf_sock_addr *ctx)
{
	struct np_addr addr = np_addr_read(ctx->user_ip6);
	__u16 port = 0;

	if (np_flow_restore(ctx, &addr, &port) || np_dns_server_restore(ctx, &addr, &port))
		return np_name_write6(ctx, &addr, port);
	return np_allow();
}

SEC("cgroup/recvmsg4")
int np_recvmsg4(struct bpf_sock_addr *ctx)
{
	struct np_addr addr = np_addr_v4(ctx->user_ip4);
	__u16 port = 0;

	if (np_dns_server_restore(ctx, &addr, &port))
		return np_name_write4(ctx, &addr, port);
	return np_allow();
}

SEC("cgroup/recvmsg6")
int np_recvmsg6(struct bpf_sock_addr *ctx)
{
	struct np_addr addr = np_addr_read(ctx->user_ip6);
	__u16 port = 0;

	if (np_dns_server_restore(ctx, &addr, &port))
		return np_name_write6(ctx, &addr, port);
	return np_allow();
}

/* -- the inspector's side --------------------------------------------------------- */

/* The end of the handshake, on the socket that the inspector will accept: whose connection it is, is certain now or
 * never. Data that came with the SYN or the ACK is not counted in rcv_nxt yet. */
SEC("sockops")
int np_worker_child(struct bpf_sock_ops *ctx)
{
	struct bpf_sock *sk = ctx->sk;
	struct np_flow_key key = { .netns = bpf_get_netns_cookie(ctx) };
	struct np_flow *found, flow;

	if (ctx->op != BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB || !sk)
		return 1;
	key.addr = np_remote_addr(ctx);
	key.port = (__u16)bpf_ntohl(ctx->remote_port);
	key.isn = ctx->rcv_nxt - 1;
	found = bpf_map_lookup_elem(&np_flows, &key);
	if (!found)
		return 1;
	flow = *found;
	if (np_flow_take(&key, flow.cgroup_id) && !bpf_sk_storage_get(&np_met, sk, &flow, BPF_SK_STORAGE_GET_F_CREATE))
		np_error_count(NP_AT_FLOW_INSERT, 0); /* nobody's, then: the inspector resets it */
	return 1;
}

/* The inspector's question, on its own sockets: who is this? Answered once. */
SEC("cgroup/getsockopt")
int np_worker_flow(struct bpf_sockopt *ctx)
{
	struct np_flow *out = ctx->optval, *flow;
	struct bpf_sock *sk = ctx->sk;

	if (ctx->level != NP_SOL_FLOW || ctx->optname != NP_SO_FLOW || !sk)
		return np_allow();
	flow = bpf_sk_storage_get(&np_met, sk, NULL, 0);
	if (!flow || (void *)(out + 1) > ctx->optval_end)
		return np_allow(); /* ENOPROTOOPT, as the kernel said already */
	__builtin_memcpy(out, flow, sizeof(*out));
	out->client_gone = sk->state == NP_TCP_CLOSE; /* no more than a FIN of it leaves CLOSE_WAIT */
	bpf_sk_storage_delete(&np_met, sk);
	*(volatile __s32 *)&ctx->optlen = sizeof(*out); /* not both at once */
	*(volatile __s32 *)&ctx->retval = 0;
	return np_allow();
}

static __always_inline int np_worker_refuse(void)
{
	if (bpf_set_retval(-ECONNREFUSED))
		np_error_count(NP_AT_SET_RETVAL, 0);
	return 0;
}

/* The DNS gate's own sockets answer sandboxes in PROXIED, and do nothing else. */
static __always_inline bool np_is_dns_socket(struct bpf_sock_addr *ctx)
{
	struct np_inspector *inspector = np_inspector_in(bpf_get_netns_cookie(ctx));
	__u64 cookie;

	if (!inspector || ctx->protocol != NP_IPPROTO_UDP)
		return false;
	cookie = bpf_get_socket_cookie(ctx);
	return cookie == inspector->dns[0].cookie || cookie == inspector->dns[1].cookie;
}

/* For whom the DNS gate means its answer: see dns_origin.h. */
static __always_inline __u64 np_answer_for(struct bpf_sock_addr *ctx, bool v4)
{
	struct sockaddr *to = BPF_CORE_READ((const struct bpf_sock_addr_kern *)np_sock_address(ctx), uaddr);
	__u64 id = 0;

	if (v4) {
		bpf_probe_read_kernel(&id, sizeof(id), (void *)to + NP_ANSWER_V4);
	} else {
		bpf_probe_read_kernel(&id, sizeof(__u32), (void *)to + NP_ANSWER_V6_LOW);
		bpf_probe_read_kernel((void *)&id + sizeof(__u32), sizeof(__u32), (void *)to + NP_ANSWER_V6_HIGH);
	}
	return id;
}

/* An answer goes to the sandbox that asked, or nowhere: another one may have the port by now. */
static __always_inline int np_worker_answer(struct bpf_sock_addr *ctx, const struct np_addr *addr)
{
	struct np_inspector *inspector = np_inspector_in(bpf_get_netns_cookie(ctx));
	struct np_tuple flow = {
		.near_addr = *addr,
		.near_port = ctx->user_port,
		.far_addr = np_loopback_for(addr),
		.protocol = NP_IPPROTO_UDP,
	};
	struct bpf_sock *sk;
	struct np_owner owner;

	if (!inspector)
		return np_worker_refuse();
	flow.far_port = bpf_htons(np_addr_is_v4(addr) ? inspector->dns[0].port : inspector->dns[1].port);
	sk = np_sock_find(ctx, &flow);
	if (!sk)
		return np_worker_refuse();
	owner = np_owner_of(sk);
	bpf_sk_release(sk);
	return owner.rung.mode == NP_PROXIED && owner.id == np_answer_for(ctx, np_addr_is_v4(addr))
		       ? np_allow()
		       : np_worker_refuse();
}

/* The inspector's own reach: nothing on this host but name servers, whatever it was talked into. Where else it goes is
 * the policy's business. */
static __always_inline int np_worker_reach(struct bpf_sock_addr *ctx, struct np_addr addr, enum np_hook hook)
{
	struct np_addr carried = np_addr_carried(&addr);

	if (np_is_dns_socket(ctx))
		return hook == NP_HOOK_SEND ? np_worker_answer(ctx, &addr) : np_worker_refuse();
	if (ctx->user_port == bpf_htons(NP_DNS_PORT))
		return np_allow();
	if (!np_addr_is_loopback(&carried) && !np_addr_is_any(&carried) && !np_addr_is_many(&carried) &&
	    !np_addr_kind(np_host_netns, &carried) && !np_addr_kind(np_host_netns, &addr))
		return np_allow();
	return np_worker_refuse();
}

SEC("cgroup/connect4")
int np_worker_connect4(struct bpf_sock_addr *ctx)
{
	return np_worker_reach(ctx, np_addr_v4(ctx->user_ip4), NP_HOOK_CONNECT);
}

SEC("cgroup/connect6")
int np_worker_connect6(struct bpf_sock_addr *ctx)
{
	return np_worker_reach(ctx, np_addr_read(ctx->user_ip6), NP_HOOK_CONNECT);
}

SEC("cgroup/sendmsg4")
int np_worker_sendmsg4(struct bpf_sock_addr *ctx)
{
	return np_worker_reach(ctx, np_addr_v4(ctx->user_ip4), NP_HOOK_SEND);
}

SEC("cgroup/sendmsg6")
int np_worker_sendmsg6(struct bpf_sock_addr *ctx)
{
	return np_worker_reach(ctx, np_addr_read(ctx->user_ip6), NP_HOOK_SEND);
}
