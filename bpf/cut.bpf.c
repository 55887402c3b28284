/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Cutting open connections, so that the program in the sandbox gets an error at
 * once instead of a hang. Runs after the mode was raised: nothing that is
 * destroyed here can be opened again, and its RST does not leave either.
 */
#include <asm/errno.h>

#include "cut.h"
#include "judge.bpf.h"
#include "ports.bpf.h"
#include "sockets.bpf.h"
#include "steer.bpf.h"

#define NP_TCP_FIN_WAIT1    4
#define NP_TCP_TIME_WAIT    6
#define NP_TCP_CLOSE	    7
#define NP_TCP_LAST_ACK	    9
#define NP_TCP_CLOSING	    11
#define NP_TCP_NEW_SYN_RECV 12
#define NP_SOCK_BIND_LOCKS  12 /* SOCK_BINDADDR_LOCK | SOCK_BINDPORT_LOCK: the program chose where it listens */

int bpf_sock_destroy(struct sock_common *sk) __ksym __weak;

/* A socket that is looked at. */
struct np_cut_query {
	__u64 sock; /* address of the kernel's struct sock */
	__u64 id;   /* of the sandbox that it belongs to; 0: only the socket knows */
	struct np_rung rung;
	struct np_seen seen;
};

static __always_inline struct np_cut_state *np_cut_state(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&np_cut, &zero);
}

static __always_inline bool np_flow_owner_is(const struct np_cut_flow *flow, __u64 id)
{
	__u64 *owner = bpf_map_lookup_elem(&np_cut_flows, flow);

	return owner && *owner == id;
}

/* Is the other end of this connection in the same sandbox? It is a connected socket that looks back, or, for
 * UDP, one that is bound there and takes datagrams from everyone. A function of its own, for the room on its caller's stack. */
__noinline int np_flow_is_own(const struct np_cut_flow *flow, __u64 id)
{
	struct np_cut_flow back = {};

	if (!flow)
		return false;
	back.near_addr = flow->far_addr;
	back.far_addr = flow->near_addr;
	back.near_port = flow->far_port;
	back.far_port = flow->near_port;
	back.protocol = flow->protocol;
	back.netns = flow->netns;
	if (np_flow_owner_is(&back, id))
		return true;
	if (flow->protocol != NP_IPPROTO_UDP)
		return false;
	__builtin_memset(&back.far_addr, 0, sizeof(back.far_addr));
	back.far_port = 0;
	if (np_flow_owner_is(&back, id))
		return true;
	__builtin_memset(&back.near_addr, 0, sizeof(back.near_addr));
	if (np_flow_owner_is(&back, id))
		return true;
	back.near_addr = np_addr_v4(0);
	return np_flow_owner_is(&back, id);
}

/* server: of a socket that takes datagrams from everyone. A function of its own, for its copy of the flow: 6.1 looks nothing up by
 * what a function was given, and its caller's stack has no room. */
__noinline int np_flow_remember(const struct np_cut_flow *flow, __u64 id, __u32 server)
{
	struct np_cut_state *state = np_cut_state();
	struct np_cut_flow key;
	__u64 owner = id;
	long r;

	if (!flow || !state)
		return 0;
	key = *flow;
	if (server)
		__builtin_memset(&key.far_addr, 0, sizeof(key.far_addr)); /* nobody, in either family's form */
	r = bpf_map_update_elem(&np_cut_flows, &key, &owner, BPF_ANY);
	state->remembered++;
	if (r)
		np_error_count(NP_AT_FLOW_INSERT, r); /* then it is taken for foreign, and cut */
	return 0;
}

/* Is it one of a sandbox that the daemon asked for? A function of its own, for the room on its caller's stack. */
__noinline int np_cut_owner_find(struct np_cut_query *query)
{
	struct np_owner owner;

	if (!query)
		return false;
	if (query->id)
		return true;
	owner = np_owner_at(query->sock);
	if (!owner.sandbox || !bpf_map_lookup_elem(&np_cut_targets, &owner.id))
		return false;
	query->id = owner.id;
	query->rung = owner.rung;
	return true;
}

/* Whether it leads to the host's ports, to the inspector or to the DNS gate, and if it does not stay on this host what the policy says
 * of the far end. */
static __always_inline void np_cut_facts_add(struct np_facts *f, const struct np_cut_query *query, __u64 netns)
{
	const struct np_inspector *inspector;

	if (!f->local) {
		np_facts_add_far(f, netns, &query->rung);
		f->withdrawn = f->mode == NP_FULL && f->protocol == NP_IPPROTO_TCP &&
			       np_inbound_withdrawn(query->seen.order.flow.near_port);
		return;
	}
	f->host_port = np_host_port_listed(f->port, query->rung);
	inspector = np_inspector_in(netns);
	if (!inspector)
		return;
	if (f->protocol == NP_IPPROTO_TCP)
		f->inspector = np_is_listener(inspector->tcp, &f->addr, f->port);
	else
		f->dns_gate = np_is_listener(inspector->dns, &f->addr, f->port);
}

/* np_addr_kind() of a far end: a look-up takes as long as the rest of what is asked of a socket. */
static __always_inline __u8 np_cut_far_kind(struct np_cut_state *state, __u64 netns, const struct np_addr *addr)
{
	if (!state->far_kind || state->far_netns != netns || !np_addr_equal(&state->far, addr)) {
		state->far = *addr;
		state->far_netns = netns;
		state->far_kind = 1 + np_addr_kind(netns, addr);
	}
	return (__u8)(state->far_kind - 1);
}

/* True when what leads somewhere has to go in this pass. */
static __always_inline bool np_cut_wants_open(struct np_cut_query *query, bool connected, struct np_cut_state *state)
{
	const struct np_cut_flow *flow = &query->seen.order.flow;
	struct np_facts f = {};
	__u64 netns;

	if (!np_cut_owner_find(query))
		return false;
	if (state->handed)
		query->rung.mode = NP_NONE;
	netns = np_netns_of(query->sock);
	f.mode = query->rung.mode;
	f.protocol = flow->protocol;
	f.addr = flow->far_addr;
	f.port = flow->far_port;
	f.local = np_addr_is_loopback(&f.addr) || np_cut_far_kind(state, netns, &f.addr);
	f.opening = f.protocol == NP_IPPROTO_TCP && query->seen.state == NP_TCP_SYN_SENT;
	np_cut_facts_add(&f, query, netns);
	if (state->pass == NP_CUT_LOCAL)
		return f.local && np_must_cut(&f, connected && np_flow_is_own(flow, query->id));
	if (!np_must_cut(&f, false))
		return false;
	if (connected && f.local && !np_addr_is_metadata(&f.addr)) {
		np_flow_remember(flow, query->id, false);
		state->local++;
		return false;
	}
	state->in_flight += query->seen.in_flight;
	return !query->seen.in_flight || state->final;
}

/* Destroys a socket, or, before bpf_sock_destroy (6.5), writes to the daemon which one it has to destroy. */
static __always_inline void np_cut_one(struct bpf_iter_meta *meta, struct sock_common *skc, struct np_cut_state *state,
				       struct np_cut_query *query)
{
	long r;

	if (np_destroys)
		r = bpf_sock_destroy(skc);
	else
		r = bpf_seq_write(meta->seq, &query->seen.order, sizeof(query->seen.order));
	if (r == 0) {
		state->destroyed++;
	} else {
		state->failed++;
		np_error_count(NP_AT_SOCK_DESTROY, r);
	}
}

/* No program has it, and what it had to send, or its FIN, is not acknowledged. */
static __always_inline bool np_is_orphan(struct sock *sk, __u32 tcp_state)
{
	if (tcp_state != NP_TCP_FIN_WAIT1 && tcp_state != NP_TCP_CLOSING && tcp_state != NP_TCP_LAST_ACK)
		return false;
	return !BPF_CORE_READ(sk, sk_socket);
}

/* True when it is an orphan of a sandbox that the daemon asked for, and has to go. */
static __always_inline bool np_orphan_wants(struct np_cut_query *query, const struct np_cut_state *state)
{
	struct sock *sk = (struct sock *)query->sock;
	__u8 *found;
	__u64 id;

	if (!np_is_orphan(sk, query->seen.state) || !np_cut_owner_find(query))
		return false;
	id = query->id; /* 6.1 looks nothing up by what a function was given */
	found = bpf_map_lookup_elem(&np_cut_targets, &id);
	if (!found)
		return false;
	*found = NP_CUT_HAS_ORPHAN;
	return state->pass == NP_CUT_ENDED;
}

/* A socket of the host that calls into one of these sandboxes (netpawl forward): it goes when the mode is NONE. Until then
 * its other end is none of those that lead to somebody else. */
static __always_inline bool np_cut_wants_caller(struct np_cut_state *state, struct np_cut_query *query)
{
	__u64 cookie = query->seen.order.cookie, *id;
	struct np_sandbox *sandbox;

	id = cookie && state->pass == NP_CUT_LOOK ? bpf_map_lookup_elem(&np_forwards, &cookie) : NULL;
	if (!id || !bpf_map_lookup_elem(&np_cut_targets, id))
		return false;
	sandbox = bpf_map_lookup_elem(&np_sandboxes, id);
	if (!sandbox || sandbox->rung.mode == NP_NONE || state->handed)
		return true;
	np_flow_remember(&query->seen.order.flow, *id, false);
	return false;
}

/* What it handed to devices is waited for, though it leads nowhere any more: connect() to AF_UNSPEC takes address and port away. */
static __always_inline bool np_cut_idle(const struct np_cut_query *query, struct np_cut_state *state)
{
	state->idle++;
	if (query->id && !state->reload)
		state->in_flight += query->seen.in_flight;
	return false;
}

/* True when this TCP socket has to go in this pass. */
static __always_inline bool np_cut_wants_tcp(struct np_cut_query *query, struct np_cut_state *state)
{
	__u32 tcp_state = query->seen.state;

	/* A listener stays: its own sandbox may still call. Two are no full sockets and carry nothing; and what is closed, or
	 * not connected yet, leads nowhere. */
	if (tcp_state == NP_TCP_TIME_WAIT || tcp_state == NP_TCP_NEW_SYN_RECV)
		return false;
	if (tcp_state == NP_TCP_LISTEN || tcp_state == NP_TCP_CLOSE)
		return np_cut_idle(query, state);
	if (state->pass == NP_CUT_ORPHANS || state->pass == NP_CUT_ENDED)
		return np_orphan_wants(query, state);
	return np_cut_wants_open(query, true, state);
}

/* Likewise of UDP. */
static __always_inline bool np_cut_wants_udp(struct np_cut_query *query, struct np_cut_state *state)
{
	struct sock *sk = (struct sock *)query->sock;
	bool connected = query->seen.order.flow.far_port != 0;

	if (state->pass == NP_CUT_ORPHANS || state->pass == NP_CUT_ENDED)
		return false;		       /* a UDP socket ends when it is closed */
	if (!query->seen.order.flow.near_port) /* one without a port leads nowhere */
		return np_cut_idle(query, state);
	if (!np_cut_owner_find(query))
		return false;
	/* Whether it goes or stays, and whoever its peer is: a datagram may be for anybody. */
	if (!state->reload)
		state->in_flight += query->seen.in_flight;
	/* An unconnected socket at a place of its own choice is a server: it stays, for its own sandbox. One where
	 * the kernel put it is a client that may be waiting for an answer that will never come. */
	if (!connected && (BPF_CORE_READ_BITFIELD_PROBED(sk, sk_userlocks) & NP_SOCK_BIND_LOCKS)) {
		if (state->pass == NP_CUT_LOOK)
			np_flow_remember(&query->seen.order.flow, query->id, true);
		return false;
	}
	if (!connected && state->reload)
		return false; /* each of its datagrams is judged anew */
	return np_cut_wants_open(query, connected, state);
}

/* 1 when the socket has to go in this pass. Functions of their own, so that the verifier walks them once, and not with all that it
 * knows of each caller. */
__noinline int np_cut_tcp_wants(struct np_cut_query *query)
{
	struct np_cut_state *state = np_cut_state();

	return query && state && np_cut_wants_tcp(query, state);
}

__noinline int np_cut_udp_wants(struct np_cut_query *query)
{
	struct np_cut_state *state = np_cut_state();

	return query && state && np_cut_wants_udp(query, state);
}

/* -- all sockets of the host ------------------------------------------------------------- */

/* NP_CUT_NOTE: it is older than the gate of its cgroup, perhaps. */
static __always_inline void np_cut_note(struct sock_common *skc, const struct np_cut_state *state, __u32 protocol)
{
	struct np_owner owner = np_owner_of(skc);
	struct np_holder *holder;

	if (!owner.sandbox || !(state->all || bpf_map_lookup_elem(&np_cut_targets, &owner.id)))
		return;
	holder = bpf_sk_storage_get(&np_holder, skc, NULL, 0);
	if (holder && holder->noted && state->all != NP_CUT_ALL_ANEW)
		return;
	np_socket_ensure(owner.sandbox, owner.id, np_sock_address(skc), bpf_get_socket_cookie(skc), protocol);
	if (holder)
		holder->noted = 1;
}

SEC("iter/tcp")
int np_cut_tcp(struct bpf_iter__tcp *ctx)
{
	struct np_cut_state *state = np_cut_state();
	struct sock_common *skc = ctx->sk_common;
	struct np_cut_query query = {};
	unsigned char tcp_state;

	if (!skc || !state)
		return 0;
	tcp_state = skc->skc_state;
	if (tcp_state == NP_TCP_TIME_WAIT || tcp_state == NP_TCP_NEW_SYN_RECV)
		return 0; /* no full sockets: they carry nothing */
	if (state->pass == NP_CUT_NOTE) {
		np_cut_note(skc, state, NP_IPPROTO_TCP);
		return 0;
	}
	query.sock = np_sock_address(skc);
	np_socket_see(query.sock, &query.seen, NP_IPPROTO_TCP);
	if (np_cut_tcp_wants(&query) || (tcp_state != NP_TCP_LISTEN && np_cut_wants_caller(state, &query)))
		np_cut_one(ctx->meta, skc, state, &query);
	return 0;
}

SEC("iter/udp")
int np_cut_udp(struct bpf_iter__udp *ctx)
{
	struct np_cut_state *state = np_cut_state();
	struct udp_sock *udp = ctx->udp_sk;
	struct np_cut_query query = {};

	if (!udp || !state)
		return 0;
	if (state->pass == NP_CUT_NOTE) {
		np_cut_note((struct sock_common *)udp, state, NP_IPPROTO_UDP);
		return 0;
	}
	query.sock = np_sock_address(udp);
	np_socket_see(query.sock, &query.seen, NP_IPPROTO_UDP);
	if (np_cut_udp_wants(&query))
		np_cut_one(ctx->meta, (struct sock_common *)udp, state, &query);
	return 0;
}

/* -- those of one sandbox -------------------------------------------------------------------- */

struct np_walk_state {
	__u64 id; /* of their sandbox: they are noted with the one that they belong to */
	struct np_rung rung;
	__u32 from;   /* block */
	__u32 orders; /* how many there are */
	__u32 most;   /* that are written */
	__u32 pad;
};

/* The daemon destroys them by SOCK_DESTROY: bpf_sock_destroy takes what an iterator shows, and nothing else. A function of its own, so
 * that the verifier walks it once and not for every slot. */
__noinline int np_cut_slot(struct np_walk_state *walk, const struct np_socket *socket)
{
	struct np_cut_state *state = np_cut_state();
	struct np_cut_query query = {};
	struct np_cut_order *order;
	__u32 at, protocol;
	__u64 cookie;

	if (!walk || !socket || !state)
		return 0;
	cookie = *(volatile __u64 *)&socket->cookie;
	if (!cookie)
		return 0;
	query.id = walk->id;
	query.rung = walk->rung;
	query.sock = *(volatile __u64 *)&socket->sock;
	protocol = socket->protocol;
	if (cookie == NP_SOCKET_BUSY) { /* a socket is on its way into it: once more */
		state->busy++;
		return 0;
	}
	np_socket_see(query.sock, &query.seen, protocol);
	if (query.seen.order.cookie != cookie)
		return 0;
	if (!query.seen.refs) { /* closed: what it handed to devices is waited for all the same */
		if ((__s32)query.seen.in_flight > 0 && !state->reload)
			state->in_flight += query.seen.in_flight;
		return 0;
	}
	if (!(protocol == NP_IPPROTO_TCP ? np_cut_tcp_wants(&query) : np_cut_udp_wants(&query)))
		return 0;
	at = walk->orders++;
	order = at < walk->most ? bpf_map_lookup_elem(&np_cut_orders, &at) : NULL;
	if (order)
		*order = query.seen.order;
	return 0;
}

static __always_inline void np_cut_block(struct np_walk_state *walk, const struct np_socket_block *block)
{
	for (int i = 0; block && i < NP_BLOCK_SLOTS; i++)
		np_cut_slot(walk, &block->slots[i]);
}

/* Two blocks: while the memory of one is waited for, that of the other is on its way, too. */
static long np_cut_blocks(__u32 index, void *data)
{
	struct np_walk_state *walk = data;
	struct np_socket_key key = { .cgroup_id = walk->id, .block = walk->from + 2 * index };
	struct np_socket_block *one = bpf_map_lookup_elem(&np_sockets, &key), *other;

	key.block++;
	other = bpf_map_lookup_elem(&np_sockets, &key);
	np_block_fetch(one);
	np_block_fetch(other);
	np_cut_block(walk, one);
	np_cut_block(walk, other);
	return walk->orders > NP_CUT_ORDERS - 2 * NP_BLOCK_SLOTS; /* the next ones' might find no room */
}

/* Run by the daemon, never attached: of the kinds of programs that can be run so, the other one (syscall) may sleep, and must
 * not look at address rules. What it is asked stands where a packet would. */
SEC("tc")
int np_cut_walk(struct __sk_buff *skb)
{
	struct np_cut_walk *call = (void *)(long)skb->data;
	struct np_walk_state walk = {};
	struct np_sandbox *sandbox;
	__u32 slots, blocks, end;
	long done;

	if ((void *)(call + 1) > (void *)(long)skb->data_end)
		return -EINVAL;
	if (call->version != NP_ABI_VERSION)
		return -EPROTO;
	walk.id = call->cgroup_id;
	walk.from = call->from;
	walk.most = call->most;
	call->from = 0;
	sandbox = bpf_map_lookup_elem(&np_sandboxes, &walk.id);
	if (!sandbox)
		return -ENOENT;
	walk.rung = np_rung_of(sandbox);
	slots = *(volatile __u32 *)&sandbox->slots;
	if (slots & NP_SLOTS_LOST)
		return -EAGAIN;
	blocks = slots / NP_BLOCK_SLOTS;
	if (walk.from >= blocks)
		return 0;
	end = blocks - walk.from > NP_BLOCKS_AT_ONCE ? walk.from + NP_BLOCKS_AT_ONCE : blocks;
	done = bpf_loop((end - walk.from + 1) / 2, np_cut_blocks, &walk, 0);
	if (done < 0)
		return done;
	end = walk.from + 2 * (__u32)done;
	call = (void *)(long)skb->data;
	if (end < blocks && (void *)(call + 1) <= (void *)(long)skb->data_end)
		call->from = end;
	return walk.orders;
}
