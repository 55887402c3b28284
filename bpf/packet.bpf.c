/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The packet layer: judges what is on the wire, whatever call made it. This is
 * the boundary; it does not rely on anything that the socket layer approved.
 */
#include "dns_query.bpf.h"
#include "headers.bpf.h"
#include "judge.bpf.h"
#include "pages.bpf.h"
#include "plain.bpf.h"
#include "ports.bpf.h"
#include "steer.bpf.h"

#define NP_LOOPBACK_IFINDEX 1	 /* lo is device 1 of every network namespace */
#define NP_TC_NEXT	    (-1) /* TCX_NEXT, and TC_ACT_UNSPEC to clsact */
#define NP_TC_DROP	    2
#define NP_TCP_CLOSE	    7 /* the state of unconnected UDP sockets, too */
#define NP_DROP_QUIETLY	    2 /* of cgroup_skb/egress: what sent a datagram is told that it was sent */

static __always_inline void np_report_drop(struct __sk_buff *skb, const struct np_owner *owner,
					   const struct np_facts *f, enum np_hook hook, enum np_reason reason,
					   __u16 near_port)
{
	struct np_refusal r = {
		.cgroup_id = owner->id,
		.rung = owner->rung,
		.hook = hook,
		.reason = reason,
		.family = skb->protocol == bpf_htons(NP_ETH_P_IP)     ? AF_INET
			  : skb->protocol == bpf_htons(NP_ETH_P_IPV6) ? AF_INET6
								      : 0,
		.near_port = near_port,
	};

	/* Else the compiler keeps the field's address from an earlier look, which the verifier refuses. */
	barrier_var(skb);
	r.ifindex = skb->ifindex;
	np_report_packet(owner->sandbox, &r, f);
}

/* A TCP socket with a connection, as opposed to a listener, a raw socket or a packet of nobody's. */
static __always_inline bool np_is_connection(struct bpf_sock *sk)
{
	sk = sk ? bpf_sk_fullsock(sk) : NULL;
	return sk && sk->type == NP_SOCK_STREAM && sk->state != NP_LISTENING;
}

/*
 * The reason that the refusal of a packet is reported with; 0: it is not reported, because connect() asked the socket
 * layer, which reports every attempt that it refuses. A refused packet of an established connection is a leftover from
 * before the mode or the policy changed: the connection is about to be cut, and the daemon reports that. Its FIN or
 * RST, an ACK, and what the far end still sends are no attempt of the sandbox. Payload that goes out is one, and its
 * loss is reported as what it is.
 */
static __always_inline enum np_reason np_packet_reported(struct bpf_sock *sk, const struct np_facts *f, bool out,
							 enum np_reason reason)
{
	if (f->protocol != NP_IPPROTO_TCP || f->opening || reason == NP_R_MALFORMED || !np_is_connection(sk))
		return reason;
	return out && !f->bare ? NP_R_CONNECTION_CUT : 0;
}

/* The facts of an outgoing packet, without the peer. A function of its own, so that the verifier walks what follows once. */
__noinline int np_facts_out(struct np_facts *f, const struct np_packet *p, __u32 mode, __u64 netns)
{
	if (!f || !p)
		return 0;
	f->mode = mode;
	f->protocol = p->protocol;
	f->port = bpf_ntohs(p->dport);
	f->addr = p->dst;
	f->opening = p->opening;
	f->bare = p->bare;
	f->payload = p->payload;
	f->options = p->options;
	f->fragment = p->fragment;
	f->many = np_addr_is_many(&p->dst) || (p->protocol != NP_IPPROTO_TCP && !np_addr_is_localhost(&p->dst) &&
					       np_addr_kind(netns, &p->dst) == NP_ADDR_BROADCAST);
	return 0;
}

/* Docker's own resolver, in containers on networks that somebody has named: an address on their loopback, whose port 53 netfilter
 * has led to another one by now. */
static __always_inline bool np_is_engine_resolver(__u64 netns, const struct np_addr *addr)
{
	return netns != np_host_netns && np_addr_is_v4(addr) && addr->w[3] == np_net32(0x7f00000b);
}

/* Who is at the other end of a packet that stays on this host. flow: as that end sees it. A function of its own, so that the
 * verifier walks it once. */
__noinline int np_facts_add_far_end(struct __sk_buff *skb, struct np_facts *f, struct np_tuple *flow, __u64 id,
				    __u32 flags)
{
	struct np_rung rung = { .flags = (__u8)flags };
	struct np_inspector *inspector;
	__u64 cookie = 0, *forward, netns;
	struct bpf_sock *sk;

	if (!f || !flow)
		return 0;
	rung.mode = f->mode;
	f->peer = np_peer_find(skb, flow, id, &cookie);
	if (f->peer == NP_PEER_SELF || f->peer == NP_PEER_OTHER)
		return 0;
	sk = skb->sk;
	netns = np_netns_of_socket(sk);
	f->host_port = np_host_port_listed(np_is_engine_resolver(netns, &f->addr) ? NP_DNS_PORT : f->port, rung);
	if (f->peer != NP_PEER_HOST)
		return 0;
	forward = cookie ? bpf_map_lookup_elem(&np_forwards, &cookie) : NULL;
	f->forward = forward && *forward == id;
	inspector = sk ? np_inspector_in(netns) : NULL;
	f->inspector = inspector && np_is_listener(inspector->tcp, &f->addr, f->port);
	if (!inspector || f->protocol != NP_IPPROTO_UDP || !np_is_listener(inspector->dns, &f->addr, f->port))
		return 0;
	/* For every datagram: that of a connected socket did not meet the socket layer, which looked there at first. */
	f->dns_gate = true;
	sk = skb->sk;
	f->steered = sk && bpf_sk_storage_get(&np_dns_server, sk, NULL, 0) &&
		     np_listener_is_kept(skb, flow,
					 np_addr_is_v4(&f->addr) ? inspector->dns[0].cookie : inspector->dns[1].cookie);
	return 0;
}

/*
 * A packet that stays on this host tells its receiver which sandbox sent it, by its priority: nothing on the way over
 * lo changes that number, and it has no other use there. So the sender is known even if its socket is gone by then, or
 * cannot be looked up. A packet without such a number comes from no sandbox, except for those that the kernel sends
 * without a socket (SYN-ACKs on 6.1, RST, TIME_WAIT), which carry no data. Below their generation cgroup ids have 31
 * bits; only privileged processes set priorities above 6.
 */
static __always_inline __u32 np_sender_number(__u64 cgroup_id)
{
	return 1u << 31 | (__u32)cgroup_id;
}

/* Who sent a packet that stays on this host. flow: as the sender sees it. */
static __always_inline void np_facts_add_sender(struct __sk_buff *skb, struct np_facts *f, struct np_tuple *flow,
						const struct np_owner *owner)
{
	__u32 number = skb->priority;

	if (number >> 31)
		f->peer = number == np_sender_number(owner->id) ? NP_PEER_SELF : NP_PEER_OTHER;
	else
		np_facts_add_far_end(skb, f, flow, owner->id, owner->rung.flags);
}

/* Does the packet carry the number of the very sandbox whose socket gets it? Then np_egress has let it pass, and gives the number of
 * sandboxes only: it need not be looked up that this is one. False: nothing is known. */
static __always_inline bool np_is_own_packet(struct __sk_buff *skb)
{
	__u64 id = np_packet_guess(skb);

	return id && skb->priority == np_sender_number(id);
}

/* np_parse() as a function of its own, so that the verifier walks what follows once and not for each kind of packet. */
__noinline long np_packet_read(struct __sk_buff *skb, struct np_packet *p)
{
	return p ? np_parse(skb, p) : -1;
}

enum np_neighbours { NP_NEIGHBOURS_NOT, NP_NEIGHBOURS_PASS, NP_NEIGHBOURS_DROP };

/*
 * Neighbour discovery and group reports of IPv6, which the kernel sends by sockets of its own. These are of the cgroup in which the
 * network namespace was made, and container runtimes make it in the container's: all the same they are no packets of the sandbox.
 * No program sends by them; a raw socket that says the same is none of them. What the kernel says of neighbours passes in
 * every mode, as it does on the host, because others may live in that namespace, too. Groups are of the sandbox's choice, if it
 * joined them before it was adopted: these are for FULL.
 */
__noinline int np_neighbours(struct __sk_buff *skb, __u32 protocol, __u32 mode)
{
	struct bpf_sock *sk = skb->sk ? bpf_sk_fullsock(skb->sk) : NULL;
	__u8 type = 0;

	if (!sk || sk->type != NP_SOCK_RAW || sk->protocol != NP_IPPROTO_ICMPV6 ||
	    !BPF_CORE_READ_BITFIELD_PROBED((const struct sock *)np_sock_address(sk), sk_kern_sock))
		return NP_NEIGHBOURS_NOT;
	if (mode == NP_FULL)
		return NP_NEIGHBOURS_PASS;
	if (protocol != NP_IPPROTO_ICMPV6 || np_load(skb, 40, &type, sizeof(type)) < 0)
		return NP_NEIGHBOURS_DROP;
	/* router solicitation, neighbour solicitation and advertisement */
	return type == 133 || type == 135 || type == 136 ? NP_NEIGHBOURS_PASS : NP_NEIGHBOURS_DROP;
}

/* May it be one of these? For callers that ask np_neighbours() about few packets only. */
static __always_inline bool np_is_neighbourly(const struct __sk_buff *skb, const struct np_packet *p)
{
	return skb->protocol == bpf_htons(NP_ETH_P_IPV6) &&
	       (p->protocol == NP_IPPROTO_ICMPV6 || p->protocol == NP_IPPROTO_HOPOPTS);
}

static __always_inline int np_egress_pass(struct __sk_buff *skb, bool local, __u64 id)
{
	if (local)
		skb->priority = np_sender_number(id);
	return np_allow();
}

/* Does a socket of TCP or UDP get, or send, a packet in which we did not find these? IPv6 extension headers hide them. */
static __always_inline bool np_is_hidden(struct bpf_sock *sk, const struct np_packet *p)
{
	if (np_is_ported(p->protocol))
		return false;
	sk = sk ? bpf_sk_fullsock(sk) : NULL;
	return sk && np_is_ported(sk->protocol);
}

/* The long way of np_egress. */
static __always_inline int np_egress_judged(struct __sk_buff *skb, const struct np_owner *owner, bool local)
{
	__u64 netns = np_netns_of_socket(skb->sk);
	struct np_rung rung = owner->rung;
	struct bpf_sock *sk = skb->sk;
	struct np_packet p = {};
	struct np_facts f = {};
	enum np_reason reason;
	long r = np_packet_read(skb, &p);

	np_facts_out(&f, &p, rung.mode, netns);
	if (r < 0) {
		np_error_count(NP_AT_PACKET_LOAD, r);
		reason = NP_R_MALFORMED;
		goto refuse;
	}
	if (np_is_neighbourly(skb, &p)) {
		int own = np_neighbours(skb, p.protocol, rung.mode);

		if (own)
			return own == NP_NEIGHBOURS_PASS ? np_allow() : np_verdict(0);
	}
	f.local = local;
	if (f.local && !np_is_own_addr(netns, &p.src)) { /* whoever answers it would send to beyond the host */
		reason = NP_R_FOREIGN_SOURCE;
		goto refuse;
	}
	if (!f.local) {
		np_facts_add_far(&f, netns, &rung);
		if (f.host && np_is_hidden(sk, &p)) { /* the host's ports have to be seen */
			reason = NP_R_IP_OPTIONS;
			goto refuse;
		}
	} else if (np_is_ported(p.protocol) && (f.mode != NP_FULL || p.protocol == NP_IPPROTO_UDP || p.opening)) {
		struct np_tuple flow = {
			.near_addr = p.dst,
			.near_port = p.dport,
			.far_addr = p.src,
			.far_port = p.sport,
			.protocol = p.protocol,
		};

		np_facts_add_far_end(skb, &f, &flow, owner->id, rung.flags);
	}
	reason = np_reach_out(&f);
	if (reason == NP_R_STEERED && f.dns_gate)
		reason = np_judge_query(skb, owner->sandbox, &p, owner->id, rung.generation);
	if (reason == NP_R_NO_LISTENER && p.protocol == NP_IPPROTO_UDP) /* a connected socket gets EPERM */
		return sk && sk->dst_port ? 0 : np_verdict(NP_DROP_QUIETLY);
	if (NP_REASON_ALLOWS(reason))
		return np_egress_pass(skb, local, owner->id);
refuse:
	reason = np_packet_reported(sk, &f, true, reason);
	if (reason)
		np_report_drop(skb, owner, &f, NP_HOOK_EGRESS, reason, 0);
	return 0;
}

SEC("cgroup_skb/egress")
int np_egress(struct __sk_buff *skb)
{
	struct np_owner owner = np_owner_of_packet(skb);
	bool local = skb->ifindex == NP_LOOPBACK_IFINDEX;

	if (owner.rung.mode == NP_FULL && np_is_plain_here(skb, local, owner.id))
		return np_egress_pass(skb, local, owner.id);
	return np_egress_judged(skb, &owner, local);
}

/* Who may call the socket that got this packet from beyond the host. A socket that has no entry among the ports yet
 * gets it now: it was open when its cgroup was adopted, or the kernel chose its port in a connect() that failed. Only
 * the first caller then meets silence. */
static __always_inline void np_facts_add_receiver(struct __sk_buff *skb, struct bpf_sock *sk, struct np_facts *f,
						  const struct np_owner *owner, const struct np_packet *p)
{
	__u16 port = bpf_ntohs(p->dport);
	struct np_holder *holder;
	__u64 cookie;

	if (!np_is_ported(p->protocol))
		return;
	if (p->protocol == NP_IPPROTO_UDP && sk->state == NP_ESTABLISHED) {
		f->answer = true;
		return;
	}
	if (p->protocol == NP_IPPROTO_TCP && sk->state != NP_TCP_LISTEN)
		return;
	f->inbound = f->mode == NP_FULL && np_inbound_listed(port);
	f->opening = p->protocol == NP_IPPROTO_TCP;
	sk = bpf_sk_fullsock(sk);
	if (!sk)
		return;
	cookie = bpf_get_socket_cookie(skb);
	holder = bpf_sk_storage_get(&np_holder, sk, NULL, BPF_SK_STORAGE_GET_F_CREATE);
	if (holder)
		np_hold_ensure(holder, sk, cookie, owner->id, p->protocol, port);
	if (p->protocol == NP_IPPROTO_UDP)
		f->answer = np_peer_is_known(cookie, np_sock_address(sk), &p->src, bpf_ntohs(p->sport));
}

/* A connection of a sandbox in FULL to beyond the host: what it may not do was refused when it was opened. While it is not answered yet
 * somebody may call it who does not answer: both ends of a connection may have called. */
static __always_inline bool np_is_open(const struct bpf_sock *sk)
{
	return sk->state != NP_TCP_LISTEN && sk->state != NP_TCP_CLOSE && sk->state != NP_TCP_SYN_SENT;
}

/* The long way of np_ingress. */
static __always_inline int np_ingress_judged(struct __sk_buff *skb, const struct np_owner *owner, bool local)
{
	struct np_rung rung = owner->rung;
	struct bpf_sock *sk = skb->sk;
	struct np_packet p = {};
	struct np_facts f = { .mode = rung.mode, .local = local };
	enum np_reason reason;
	long r = np_packet_read(skb, &p);

	f.protocol = p.protocol;
	f.addr = p.src;
	f.port = bpf_ntohs(p.sport);
	f.opening = p.opening;
	f.bare = p.bare;
	if (r < 0) {
		np_error_count(NP_AT_PACKET_LOAD, r);
		reason = NP_R_MALFORMED;
		goto refuse;
	}
	if (np_is_hidden(sk, &p)) {
		reason = NP_R_IP_OPTIONS;
		goto refuse;
	}
	if (!f.local) {
		np_facts_add_far(&f, np_netns_of_socket(skb->sk), &rung);
		if (sk)
			np_facts_add_receiver(skb, sk, &f, owner, &p);
	} else if (np_is_ported(p.protocol)) {
		struct np_tuple flow = {
			/* the sender is the one who would get an answer */
			.near_addr = p.src,  .near_port = p.sport,   .far_addr = p.dst,
			.far_port = p.dport, .protocol = p.protocol,
		};

		np_facts_add_sender(skb, &f, &flow, owner);
	}
	reason = np_reach_in(&f);
	if (NP_REASON_ALLOWS(reason))
		return np_allow();
refuse:
	reason = np_packet_reported(sk, &f, false, reason);
	if (reason)
		np_report_drop(skb, owner, &f, NP_HOOK_INGRESS, reason, bpf_ntohs(p.dport));
	return 0;
}

SEC("cgroup_skb/ingress")
int np_ingress(struct __sk_buff *skb)
{
	bool local = skb->ifindex == NP_LOOPBACK_IFINDEX;
	struct bpf_sock *sk = skb->sk; /* on the way in it is the receiver */
	struct np_owner owner;

	if (local && np_is_own_packet(skb))
		return np_allow();
	owner = np_owner_of_packet(skb);
	if (owner.rung.mode == NP_FULL && !local && sk && np_is_open(sk))
		return np_allow();
	/* What a sandbox sends to itself: np_egress has judged it, in every mode. */
	if (local && owner.rung.mode && skb->priority == np_sender_number(owner.id))
		return np_allow();
	return np_ingress_judged(skb, &owner, local);
}

static __always_inline int np_device_pass(struct __sk_buff *skb)
{
	return np_pages_settle(skb) ? NP_TC_NEXT : NP_TC_DROP;
}

/* The long way of np_device. */
static __always_inline int np_device_judged(struct __sk_buff *skb, const struct np_owner *owner, bool loopback)
{
	__u64 netns = np_netns_of_socket(skb->sk);
	struct np_rung rung = owner->rung;
	struct np_packet p = {};
	struct np_facts f = {};
	enum np_reason reason = NP_R_PROTOCOL;
	long r = np_packet_read(skb, &p);

	if (r >= 0 && np_is_neighbourly(skb, &p)) {
		int own = np_neighbours(skb, p.protocol, rung.mode);

		if (own)
			return own == NP_NEIGHBOURS_PASS ? NP_TC_NEXT : NP_TC_DROP;
	}
	np_facts_out(&f, &p, rung.mode, netns);
	if (!loopback && r < 0 && f.mode == NP_FULL)
		return np_device_pass(skb); /* Not IP. FULL may speak it; no other mode has a use for it. */
	if (!loopback && r >= 0) {
		np_facts_add_far(&f, netns, &rung);
		reason = np_reach_out(&f);
		if (NP_REASON_ALLOWS(reason))
			return np_device_pass(skb);
	}
	np_report_drop(skb, owner, &f, NP_HOOK_DEVICE, reason, 0);
	return NP_TC_DROP;
}

/* What the host forwards for a sandbox with a way out leaves with an address of the host's; while the host's rules for
 * that are gone, not at all. */
static __always_inline int np_device_forwarded(struct __sk_buff *skb)
{
	struct np_packet p = {};

	return np_packet_read(skb, &p) >= 0 && np_addr_is_natted(&p.src) ? NP_TC_DROP : NP_TC_NEXT;
}

/* The last gate, on every device: what did not come through the IP stack (AF_PACKET), or came through a hole
 * in a hook above. Packets of sockets that belong to no sandbox, and forwarded ones, are none of our business.
 * A packet socket with PACKET_QDISC_BYPASS, and AF_XDP, go past every tc hook: making such a socket takes
 * CAP_NET_RAW, which the launcher takes away. */
SEC("tc")
int np_device(struct __sk_buff *skb)
{
	bool loopback = skb->ifindex == NP_LOOPBACK_IFINDEX;
	struct bpf_sock *sk = skb->sk;
	struct np_owner owner;

	if (!sk && skb->ingress_ifindex && skb->ingress_ifindex != skb->ifindex)
		return np_device_forwarded(skb);
	/* What an inet socket sends over lo, np_egress has judged by its peer. */
	if (!sk || (loopback && (sk->family == AF_INET || sk->family == AF_INET6)))
		return NP_TC_NEXT;
	owner = np_owner_of_packet(skb);
	if (!owner.inside)
		return NP_TC_NEXT;
	if (owner.rung.mode == NP_FULL && !loopback && np_is_plain_there(skb))
		return np_device_pass(skb);
	return np_device_judged(skb, &owner, loopback);
}
