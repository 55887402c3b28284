/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The packet layer: judges what is on the wire, whatever call made it. This is
 * the boundary; it does not rely on anything that the socket layer approved.
 */
#include "judge.bpf.h"
#include "ports.bpf.h"
#include "steer.bpf.h"

#define NP_LOOPBACK_IFINDEX 1 /* lo is device 1 of every network namespace */
#define NP_ETH_P_IP	    0x0800
#define NP_ETH_P_IPV6	    0x86dd
#define NP_TC_NEXT	    (-1) /* TCX_NEXT, and TC_ACT_UNSPEC to clsact */
#define NP_TC_DROP	    2
#define NP_TCP_CLOSE	    7 /* the state of unconnected UDP sockets, too */

struct np_packet {
	struct np_addr src, dst;
	__be16 sport, dport; /* 0 when the packet has none, as a later fragment */
	__u16 protocol;
	bool options;
	bool fragment;
	bool opening;
	bool bare;
};

static __always_inline long np_load(struct __sk_buff *skb, __u32 offset, void *to, __u32 len)
{
	return bpf_skb_load_bytes_relative(skb, offset, to, len, BPF_HDR_START_NET);
}

/* Ports and TCP flags. payload_end is the length of the IP packet. */
static __always_inline long np_parse_ports(struct __sk_buff *skb, __u32 offset, __u32 payload_end, struct np_packet *p)
{
	__u8 tcp[14];
	__be16 ports[2];
	long r;

	if (p->protocol == NP_IPPROTO_TCP) {
		__u8 flags, header;

		r = np_load(skb, offset, tcp, sizeof(tcp));
		if (r < 0)
			return r;
		__builtin_memcpy(ports, tcp, sizeof(ports));
		flags = tcp[13];
		header = tcp[12] >> 4 << 2;
		p->opening = (flags & 0x12) == 0x02; /* SYN without ACK */
		p->bare = !(flags & 0x02) && offset + header >= payload_end;
	} else if (p->protocol == NP_IPPROTO_UDP) {
		r = np_load(skb, offset, ports, sizeof(ports));
		if (r < 0)
			return r;
	} else {
		return 0;
	}
	p->sport = ports[0];
	p->dport = ports[1];
	return 0;
}

static __always_inline long np_parse(struct __sk_buff *skb, struct np_packet *p)
{
	if (skb->protocol == bpf_htons(NP_ETH_P_IP)) {
		__u8 ip[20];
		__u32 header;
		__be32 word;
		long r = np_load(skb, 0, ip, sizeof(ip));

		if (r < 0)
			return r;
		header = (ip[0] & 0x0f) * 4;
		p->protocol = ip[9];
		__builtin_memcpy(&word, ip + 12, 4);
		p->src = np_addr_v4(word);
		__builtin_memcpy(&word, ip + 16, 4);
		p->dst = np_addr_v4(word);
		p->options = header != 20;
		if (((ip[6] & 0x1f) | ip[7]) != 0) {
			p->fragment = true;
			return 0;
		}
		return np_parse_ports(skb, header, (__u32)ip[2] << 8 | ip[3], p);
	}
	if (skb->protocol == bpf_htons(NP_ETH_P_IPV6)) {
		__u8 ip[40];
		long r = np_load(skb, 0, ip, sizeof(ip));

		if (r < 0)
			return r;
		p->protocol = ip[6]; /* an extension header has a number of its own, which is not TCP or UDP */
		__builtin_memcpy(&p->src, ip + 8, 16);
		__builtin_memcpy(&p->dst, ip + 24, 16);
		p->options = p->protocol != NP_IPPROTO_TCP && p->protocol != NP_IPPROTO_UDP &&
			     p->protocol != NP_IPPROTO_ICMPV6;
		return np_parse_ports(skb, 40, 40 + ((__u32)ip[4] << 8 | ip[5]), p);
	}
	return -1;
}

static __always_inline void np_report_packet(struct __sk_buff *skb, const struct np_who *who, const struct np_facts *f,
					     enum np_hook hook, enum np_reason reason, __u16 near_port)
{
	struct np_refusal r = {
		.box = who->box,
		.rung = who->rung,
		.cgroup_id = who->id,
		.hook = hook,
		.reason = reason,
		.family = skb->protocol == bpf_htons(NP_ETH_P_IP)     ? AF_INET
			  : skb->protocol == bpf_htons(NP_ETH_P_IPV6) ? AF_INET6
								      : 0,
		.protocol = f->protocol,
		.rule = f->rule,
		.epoch = f->epoch,
	};
	struct np_event *e = np_refusal_open(&r);

	if (!e)
		return;
	e->addr = f->addr;
	e->port = f->port;
	e->near_port = near_port;
	e->ifindex = skb->ifindex;
	bpf_ringbuf_submit(e, 0);
}

/* A TCP socket with a connection, as opposed to a listener, a raw socket or a packet of nobody's. */
static __always_inline bool np_is_connection(struct bpf_sock *sk)
{
	sk = sk ? bpf_sk_fullsock(sk) : NULL;
	return sk && sk->type == NP_SOCK_STREAM && sk->state != NP_LISTENING;
}

/*
 * What the refusal of a packet is called, and 0 when it is not to be told: connect() asked the socket layer, which tells of
 * every attempt that it refuses. A packet of a connection that was made, and is refused now, is what is left of it since
 * the mode or the policy changed: it is about to be cut, and the daemon tells of that. Its FIN or RST, an ACK, and what the
 * far end still sends are nobody's attempt. Payload that goes out was somebody's, and its loss is told for what it is.
 */
static __always_inline enum np_reason np_packet_told(struct bpf_sock *sk, const struct np_facts *f, bool out,
						     enum np_reason reason)
{
	if (f->protocol != NP_IPPROTO_TCP || f->opening || reason == NP_R_MALFORMED || !np_is_connection(sk))
		return reason;
	return out && !f->bare ? NP_R_CONNECTION_CUT : 0;
}

/* The facts of an outgoing packet, without the peer. */
static __always_inline struct np_facts np_facts_out(const struct np_packet *p, enum np_mode mode)
{
	struct np_facts f = {
		.mode = mode,
		.protocol = p->protocol,
		.port = bpf_ntohs(p->dport),
		.addr = p->dst,
		.opening = p->opening,
		.bare = p->bare,
		.options = p->options,
		.fragment = p->fragment,
		.many = np_addr_is_many(&p->dst),
	};

	if (p->protocol != NP_IPPROTO_TCP && np_host_addr_kind(&p->dst) == NP_ADDR_BROADCAST)
		f.many = true;
	return f;
}

/* Who is at the other end of a packet that stays on this host. flow: as that end sees it. */
static __always_inline void np_facts_add_far_end(struct __sk_buff *skb, struct np_facts *f, const struct np_tuple *flow,
						 const struct np_who *who)
{
	struct np_inspector *inspector = np_inspector_now();
	struct bpf_sock *sk = skb->sk;

	__u64 cookie = 0, *forward;

	f->peer = np_peer_find(skb, flow, who->id, &cookie);
	if (f->peer != NP_PEER_HOST)
		return;
	forward = cookie ? bpf_map_lookup_elem(&np_forwards, &cookie) : NULL;
	f->forward = forward && *forward == who->id;
	f->host_port = np_host_port_listed(f->port, who->rung);
	f->inspector = np_is_inspector(&f->addr, f->port);
	if (!inspector || f->protocol != NP_IPPROTO_UDP || !np_is_door(inspector->dns, &f->addr, f->port))
		return;
	/* For every datagram: that of a connected socket did not meet the socket layer, which looked there at first. */
	f->dns_gate = true;
	f->steered = sk && bpf_sk_storage_get(&np_asked, sk, NULL, 0) &&
		     np_door_is_kept(skb, flow,
				     np_addr_is_v4(&f->addr) ? inspector->dns[0].cookie : inspector->dns[1].cookie);
}

/* A sandbox has its share of the DNS gate's attention and of its socket's buffer: large datagrams, and those that are
 * many in one (UDP_SEGMENT), cost more. */
static __always_inline bool np_query_may(struct __sk_buff *skb, struct np_box *box)
{
	__u64 cost = 1 + skb->len / NP_QUERY_COST + skb->gso_segs;

	if (!box)
		return false;
	barrier_var(box); /* no arithmetic on it before it is known not to be NULL */
	return np_bucket_take(&box->queries, NP_QUERY_RATE, NP_QUERY_BURST, cost);
}

/* Makes the entry this sandbox's, unless it is already. Returns its number; 0 when others write there all the time. */
static __always_inline __u32 np_ask_claim(struct np_ask *ask, const struct np_who *who, const struct np_addr *source)
{
	__u32 generation = who->rung.generation;

	for (int tries = 0; tries < 8; tries++) {
		__u32 number = *(volatile __u32 *)&ask->number, next = number + 2;

		if (number & 1)
			continue;
		if (number && ask->cgroup_id == who->id && ask->generation == generation &&
		    np_addr_equal(&ask->source, source)) {
			if (__sync_val_compare_and_swap(&ask->number, number, number) == number)
				return number; /* and so was all that we compared */
			continue;
		}
		if (__sync_val_compare_and_swap(&ask->number, number, number + 1) != number)
			continue;
		ask->cgroup_id = who->id;
		ask->generation = generation;
		ask->source = *source;
		if (!next)
			next = 2;					     /* 0 stands for a packet without a mark */
		__sync_val_compare_and_swap(&ask->number, number + 1, next); /* with a barrier */
		return next;
	}
	return 0;
}

/* Writes down whose query this is, for the DNS gate to find. False: it must not leave. */
static __always_inline bool np_query_sign(struct __sk_buff *skb, const struct np_who *who, const struct np_packet *p)
{
	__u32 at = NP_ASKS_INDEX(!np_addr_is_v4(&p->src), bpf_ntohs(p->sport)), number;
	struct np_ask *ask = bpf_map_lookup_elem(&np_asks, &at);
	struct bpf_sock *sk = skb->sk;
	struct np_asked *asked = sk ? bpf_sk_storage_get(&np_asked, sk, NULL, 0) : NULL;

	if (!ask || !asked)
		return false;
	number = np_ask_claim(ask, who, &p->src);
	if (!number)
		return false;
	if (sk->dst_port)
		ask->asked = asked->peer;
	else if (np_addr_is_v4(&p->src))
		ask->asked = asked->last[0];
	else
		ask->asked = asked->last[1];
	skb->mark = number;
	return true;
}

/* A query that the socket layer has led to the DNS gate. Its answer must come back to this sandbox, so the address that
 * it comes from must be the sandbox's own (IP_PKTINFO lets a program choose one). */
static __always_inline enum np_reason np_judge_query(struct __sk_buff *skb, const struct np_who *who,
						     const struct np_packet *p)
{
	struct np_tuple back = {
		.near_addr = p->src,
		.near_port = p->sport,
		.far_addr = p->dst,
		.far_port = p->dport,
		.protocol = NP_IPPROTO_UDP,
	};

	if (np_peer_find(skb, &back, who->id, NULL) != NP_PEER_SELF)
		return NP_R_HOST_LOOPBACK;
	if (!np_query_may(skb, who->box))
		return NP_R_TOO_MANY_QUERIES;
	return np_query_sign(skb, who, p) ? NP_R_STEERED : NP_R_INTERNAL;
}

/* np_parse() as a function of its own, so that the verifier walks what follows once and not for each kind of packet. */
__noinline long np_packet_read(struct __sk_buff *skb, struct np_packet *p)
{
	return p ? np_parse(skb, p) : -1;
}

SEC("cgroup_skb/egress")
int np_egress(struct __sk_buff *skb)
{
	struct np_who who = np_who_sends(skb);
	struct bpf_sock *sk = skb->sk;
	struct np_packet p = {};
	struct np_facts f;
	enum np_reason reason;
	long r = np_packet_read(skb, &p);

	f = np_facts_out(&p, who.rung.mode);
	if (r < 0) {
		np_error_count(NP_AT_PACKET_LOAD, r);
		reason = NP_R_MALFORMED;
		goto refuse;
	}
	f.local = skb->ifindex == NP_LOOPBACK_IFINDEX;
	if (!f.local)
		np_facts_add_rule(&f, who.rung);
	else if (np_is_ported(p.protocol) && (f.mode != NP_FULL || p.protocol == NP_IPPROTO_UDP || p.opening)) {
		struct np_tuple flow = {
			.near_addr = p.dst,
			.near_port = p.dport,
			.far_addr = p.src,
			.far_port = p.sport,
			.protocol = p.protocol,
		};

		np_facts_add_far_end(skb, &f, &flow, &who);
	}
	reason = np_reach_out(&f);
	if (reason == NP_R_STEERED && f.dns_gate)
		reason = np_judge_query(skb, &who, &p);
	if (NP_REASON_ALLOWS(reason))
		return np_allow();
refuse:
	reason = np_packet_told(sk, &f, true, reason);
	if (reason)
		np_report_packet(skb, &who, &f, NP_HOOK_EGRESS, reason, 0);
	return 0;
}

/* Who may call the socket that got this packet from beyond the host. A socket that has no entry among the ports yet
 * gets it now: it was open when its cgroup was adopted, or the kernel chose its port in a connect() that failed. Only
 * the first caller then meets silence. */
static __always_inline void np_facts_add_receiver(struct __sk_buff *skb, struct bpf_sock *sk, struct np_facts *f,
						  const struct np_who *who, const struct np_packet *p)
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
		np_hold_ensure(holder, sk, cookie, who->id, p->protocol, port);
	if (p->protocol == NP_IPPROTO_UDP)
		f->answer = np_peer_is_known(cookie, np_sock_address(sk), &p->src, bpf_ntohs(p->sport));
}

/* An established connection of a sandbox in FULL: what it may not do was refused when it was opened. */
static __always_inline bool np_is_open(const struct bpf_sock *sk)
{
	return sk->state != NP_TCP_LISTEN && sk->state != NP_TCP_CLOSE;
}

SEC("cgroup_skb/ingress")
int np_ingress(struct __sk_buff *skb)
{
	struct np_who who = np_who_sends(skb); /* on the way in the packet's socket is the receiver */
	struct np_facts f = { .mode = who.rung.mode };
	struct bpf_sock *sk = skb->sk;
	struct np_packet p = {};
	enum np_reason reason;
	long r;

	if (f.mode == NP_FULL && sk && np_is_open(sk))
		return np_allow();
	r = np_packet_read(skb, &p);
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
	f.local = skb->ifindex == NP_LOOPBACK_IFINDEX;
	if (!f.local) {
		np_facts_add_rule(&f, who.rung);
		if (sk)
			np_facts_add_receiver(skb, sk, &f, &who, &p);
	} else if (np_is_ported(p.protocol)) {
		struct np_tuple flow = {
			/* the sender is the one who would get an answer */
			.near_addr = p.src,  .near_port = p.sport,   .far_addr = p.dst,
			.far_port = p.dport, .protocol = p.protocol,
		};

		np_facts_add_far_end(skb, &f, &flow, &who);
	}
	reason = np_reach_in(&f);
	if (NP_REASON_ALLOWS(reason))
		return np_allow();
refuse:
	reason = np_packet_told(sk, &f, false, reason);
	if (reason)
		np_report_packet(skb, &who, &f, NP_HOOK_INGRESS, reason, bpf_ntohs(p.dport));
	return 0;
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
	struct np_packet p = {};
	struct np_facts f;
	struct np_who who;
	enum np_reason reason;
	long r;

	/* What an inet socket sends over lo, np_egress has judged by its peer. */
	if (!sk || (loopback && (sk->family == AF_INET || sk->family == AF_INET6)))
		return NP_TC_NEXT;
	who = np_who_sends(skb);
	if (!who.inside)
		return NP_TC_NEXT;
	r = np_packet_read(skb, &p);
	f = np_facts_out(&p, who.rung.mode);
	if (loopback) {
		reason = NP_R_PROTOCOL;
	} else if (r < 0) {
		/* Not IP. FULL may speak it; no other mode has a use for it. */
		if (f.mode == NP_FULL)
			return NP_TC_NEXT;
		reason = NP_R_PROTOCOL;
	} else {
		np_facts_add_rule(&f, who.rung);
		reason = np_reach_out(&f);
		if (NP_REASON_ALLOWS(reason))
			return NP_TC_NEXT;
	}
	np_report_packet(skb, &who, &f, NP_HOOK_DEVICE, reason, 0);
	return NP_TC_DROP;
}
