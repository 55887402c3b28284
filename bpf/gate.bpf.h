/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The decisions of the gate. Pure: plain data in, a reason out; no ctx, no map,
 * no helper. The same text runs in the kernel and, under sanitizers, in unit tests.
 */
#ifndef NP_GATE_BPF_H
#define NP_GATE_BPF_H

#include "box.h"
#include "event.h"
#include "reason.h"

#ifdef __BPF__
#define np_pure static __always_inline
#else
#include <stdbool.h>
#define np_pure static inline
#endif

/* Constants in network order, for both compilers and for case labels. */
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define np_net32(x) __builtin_bswap32(x)
#else
#define np_net32(x) ((__u32)(x))
#endif

enum {
	NP_IPPROTO_ICMP = 1,
	NP_IPPROTO_TCP = 6,
	NP_IPPROTO_UDP = 17,
	NP_IPPROTO_ICMPV6 = 58,
	NP_SOCK_STREAM = 1,
	NP_SOCK_DGRAM = 2,
};

/* Whose socket is at the far end of an attempt that stays on this host. */
enum np_peer {
	NP_PEER_NOBODY = 0, /* no socket there, or one on its way out (TIME_WAIT) */
	NP_PEER_SELF,	    /* the same sandbox */
	NP_PEER_HOST,	    /* a socket that belongs to no sandbox */
	NP_PEER_OTHER,	    /* another sandbox */
};

/* All that is known of one attempt when it is judged. */
struct np_facts {
	enum np_mode mode;   /* 0: the cgroup is not registered */
	__u16 protocol;	     /* IPPROTO_* */
	__u16 port;	     /* the far end's, host order; 0 when unknown */
	struct np_addr addr; /* the far end's */
	bool local;	     /* it stays on this host */
	enum np_peer peer;   /* for local attempts */
	bool host_port;	     /* the policy lists the port of the host in this mode */
	bool opening;	     /* TCP: opens a connection (connect(), or SYN without ACK) */
	bool bare;	     /* TCP: neither SYN nor payload: carries nothing */
	bool options;	     /* IP options or extension headers */
	bool many;	     /* multicast or broadcast */
};

/* -- addresses, written once on 16 bytes ------------------------------------ */

np_pure struct np_addr np_addr_v4(__be32 v4)
{
	struct np_addr a = { .w = { 0, 0, np_net32(0xffff), v4 } };

	return a;
}

np_pure bool np_addr_is_v4(const struct np_addr *a)
{
	return a->d[0] == 0 && a->w[2] == np_net32(0xffff);
}

np_pure bool np_addr_is_any(const struct np_addr *a)
{
	return a->d[0] == 0 && a->w[3] == 0 && (a->w[2] == 0 || a->w[2] == np_net32(0xffff));
}

np_pure bool np_addr_is_loopback(const struct np_addr *a)
{
	if (np_addr_is_v4(a))
		return a->b[12] == 127;
	return a->d[0] == 0 && a->w[2] == 0 && a->w[3] == np_net32(1);
}

/* Multicast and broadcast, as far as the address tells. Subnet broadcasts are in np_host_addrs. */
np_pure bool np_addr_is_many(const struct np_addr *a)
{
	if (np_addr_is_v4(a))
		return (a->b[12] & 0xf0) == 0xe0 || a->w[3] == 0xffffffff ||
		       a->w[3] == np_net32(0x7fffffff); /* 127.255.255.255: every wildcard socket of the host */
	return a->b[0] == 0xff;
}

/* An IPv4 address inside an IPv6 one (NAT64 64:ff9b::/96, 6to4 2002::/16) is that IPv4 address. */
np_pure struct np_addr np_addr_carried(const struct np_addr *a)
{
	if (a->w[0] == np_net32(0x0064ff9b) && a->w[1] == 0 && a->w[2] == 0)
		return np_addr_v4(a->w[3]);
	if (a->b[0] == 0x20 && a->b[1] == 0x02) {
		struct np_addr v4 = np_addr_v4(0);

		v4.b[12] = a->b[2];
		v4.b[13] = a->b[3];
		v4.b[14] = a->b[4];
		v4.b[15] = a->b[5];
		return v4;
	}
	return *a;
}

/* Where clouds keep credentials for whoever asks, and the link-local ranges they are served from. */
np_pure bool np_addr_is_metadata(const struct np_addr *addr)
{
	struct np_addr a = np_addr_carried(addr);

	if (np_addr_is_v4(&a)) {
		switch (a.w[3]) {
		case np_net32(0x646464c8): /* 100.100.100.200, Alibaba */
		case np_net32(0xa83f8110): /* 168.63.129.16, Azure */
		case np_net32(0xc00000c0): /* 192.0.0.192, Oracle */
			return true;
		}
		return a.b[12] == 169 && a.b[13] == 254; /* 169.254.0.0/16 */
	}
	if (a.b[0] == 0xfe)
		return (a.b[1] & 0xc0) == 0x80; /* fe80::/10 */
	if (a.b[0] != 0xfd)
		return false;
	return a.w[0] == np_net32(0xfd000ec2) ||				/* fd00:ec2::/32, AWS */
	       (a.w[0] == np_net32(0xfd2000ce) && a.w[1] == 0 && a.w[2] == 0 && /* fd20:ce::254, */
		a.w[3] == np_net32(0x254)) ||					/*   Google */
	       (a.w[0] == np_net32(0xfd000042) && a.w[1] == 0 && a.w[2] == 0 && /* fd00:42::42, */
		a.w[3] == np_net32(0x42));					/*   Scaleway */
}

/* -- decisions --------------------------------------------------------------- */

/* May a socket of this kind be made? ICMP datagram sockets are ping; raw ones would read others' traffic. */
np_pure enum np_reason np_judge_create(enum np_mode mode, __u32 type, __u32 protocol)
{
	if (!mode)
		return NP_R_UNREGISTERED;
	if (type == NP_SOCK_STREAM && protocol == NP_IPPROTO_TCP)
		return NP_R_OPEN_MODE;
	if (type == NP_SOCK_DGRAM && protocol == NP_IPPROTO_UDP)
		return NP_R_OPEN_MODE;
	if (mode == NP_FULL && type == NP_SOCK_DGRAM && (protocol == NP_IPPROTO_ICMP || protocol == NP_IPPROTO_ICMPV6))
		return NP_R_OPEN_MODE;
	return NP_R_PROTOCOL;
}

/* Something that stays on this host: loopback, or any address of the host itself. */
np_pure enum np_reason np_judge_local(const struct np_facts *f)
{
	bool ported = f->protocol == NP_IPPROTO_TCP || f->protocol == NP_IPPROTO_UDP;

	if (f->options) /* they would hide the ports, and nobody needs them on the way to himself */
		return NP_R_IP_OPTIONS;
	if (f->mode == NP_FULL) {
		/* Only the opening packet is judged: the others answer someone who may call us. */
		if (!ported || (f->protocol == NP_IPPROTO_TCP && !f->opening))
			return NP_R_OPEN_MODE;
	} else if (!ported) {
		return NP_R_PROTOCOL;
	}
	switch (f->peer) {
	case NP_PEER_SELF:
		return NP_R_OWN_LOOPBACK;
	case NP_PEER_NOBODY:
		return NP_R_NO_LISTENER;
	case NP_PEER_HOST:
		return f->host_port ? NP_R_HOST_PORT : NP_R_HOST_LOOPBACK;
	case NP_PEER_OTHER:
		break;
	}
	return NP_R_HOST_LOOPBACK;
}

/* What PROXIED says of a destination that is not on this host. */
np_pure enum np_reason np_judge_proxied(const struct np_facts *f)
{
	if (f->protocol == NP_IPPROTO_TCP && (f->port == 80 || f->port == 443))
		return NP_R_NO_INSPECTOR;
	if ((f->protocol == NP_IPPROTO_TCP || f->protocol == NP_IPPROTO_UDP) && f->port == 53)
		return NP_R_NO_DNS_GATE;
	return NP_R_NOT_IN_POLICY;
}

/* May the sandbox reach out? Asked by connect, sendmsg, and of every packet that leaves. */
np_pure enum np_reason np_judge_out(const struct np_facts *f)
{
	if (!f->mode)
		return NP_R_UNREGISTERED;
	if (np_addr_is_metadata(&f->addr))
		return NP_R_METADATA;
	if (f->many) /* in every mode: the kernel hands a copy to every listener of this host that wants it */
		return NP_R_MULTICAST;
	if (f->local)
		return np_judge_local(f);
	switch (f->mode) {
	case NP_FULL:
		return NP_R_OPEN_MODE;
	case NP_PROXIED:
		return np_judge_proxied(f);
	case NP_NONE:
		break;
	}
	return NP_R_MODE_NONE;
}

/* May this packet reach a socket of the sandbox? f->peer is its sender. */
np_pure enum np_reason np_judge_in(const struct np_facts *f)
{
	if (!f->mode)
		return NP_R_UNREGISTERED;
	if (f->mode == NP_FULL)
		return NP_R_OPEN_MODE;
	if (!f->local)
		return NP_R_INBOUND;
	if (f->peer == NP_PEER_SELF)
		return NP_R_OWN_LOOPBACK;
	if (f->peer == NP_PEER_HOST && f->host_port && !f->opening)
		return NP_R_HOST_PORT;
	/* The kernel's own RST, or an ACK out of TIME_WAIT: without them closing would hang. */
	if (f->peer == NP_PEER_NOBODY && f->protocol == NP_IPPROTO_TCP && f->bare)
		return NP_R_NO_LISTENER;
	return NP_R_INBOUND;
}

/* Sharing a port (SO_REUSEPORT, SO_REUSEADDR) with an outsider would take his callers from him. */
np_pure enum np_reason np_judge_bind(enum np_mode mode, enum np_peer holder)
{
	if (!mode)
		return NP_R_UNREGISTERED;
	if (holder == NP_PEER_HOST || holder == NP_PEER_OTHER)
		return NP_R_PORT_TAKEN;
	return NP_R_OPEN_MODE;
}

/* Options that would get around the packet layer, in every mode. */
np_pure enum np_reason np_judge_option(int level, int option)
{
	switch (level) {
	case 1: /* SOL_SOCKET */
		switch (option) {
		case 51: /* SO_ATTACH_REUSEPORT_CBPF, _EBPF: a program picks the receiver where our look-up */
		case 52: /*   picks another */
		case 47: /* SO_MAX_PACING_RATE, SO_TXTIME: packets wait in a queue below us, for as long as */
		case 61: /*   the sandbox likes */
			return NP_R_SOCKET_OPTION;
		}
		break;
	case 0: /* SOL_IP */
		/* Joining a group makes the kernel itself send reports, with an address that the sandbox chose. */
		switch (option) {
		case 35: /* IP_ADD_MEMBERSHIP */
		case 39: /* IP_ADD_SOURCE_MEMBERSHIP */
		case 41: /* IP_MSFILTER */
		case 42: /* MCAST_JOIN_GROUP */
		case 46: /* MCAST_JOIN_SOURCE_GROUP */
		case 48: /* MCAST_MSFILTER */
			return NP_R_MULTICAST;
		}
		break;
	case 41: /* SOL_IPV6 */
		switch (option) {
		case 20: /* IPV6_JOIN_GROUP */
		case 27: /* IPV6_JOIN_ANYCAST */
		case 42:
		case 46:
		case 48:
			return NP_R_MULTICAST;
		}
		break;
	}
	return NP_R_OPEN_MODE;
}

/* Must this open connection go, now that the mode is what it is? own: its other end is in the same sandbox. */
np_pure bool np_judge_cut(const struct np_facts *f, bool own)
{
	if (np_addr_is_metadata(&f->addr))
		return true;
	if (f->mode == NP_FULL)
		return false;
	return !own && !(f->local && f->host_port);
}

#endif
