/* SPDX-License-Identifier: GPL-2.0-only */
/* What the headers of a packet say: addresses, ports and whether it carries anything. */
#pragma once

#include "owner.bpf.h"

#define NP_ETH_P_IP   0x0800
#define NP_ETH_P_IPV6 0x86dd

struct np_packet {
	struct np_addr src, dst;
	__be16 sport, dport; /* 0 when the packet has none, as a later fragment */
	__u16 protocol;
	bool options;
	bool fragment;
	bool opening;
	bool bare;
	bool payload;
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
		p->payload = offset + header < payload_end;
		p->bare = !(flags & 0x02) && !p->payload;
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

/* The IP header alone. Returns where it ends, or an error. *end: where the packet does. */
static __always_inline long np_parse_ip(struct __sk_buff *skb, struct np_packet *p, __u32 *end)
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
		p->fragment = ((ip[6] & 0x1f) | ip[7]) != 0;
		*end = (__u32)ip[2] << 8 | ip[3];
		return header;
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
		*end = 40 + ((__u32)ip[4] << 8 | ip[5]);
		return 40;
	}
	return -1;
}

static __always_inline long np_parse(struct __sk_buff *skb, struct np_packet *p)
{
	__u32 end = 0;
	long header = np_parse_ip(skb, p, &end);

	if (header < 0 || p->fragment)
		return header < 0 ? header : 0;
	return np_parse_ports(skb, (__u32)header, end, p);
}
