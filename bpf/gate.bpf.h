/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The decisions of the gate. Pure: plain data in, a reason out; no ctx, no map,
 * no helper. The same text runs in the kernel and, under sanitizers, in unit tests.
 */
#pragma once

#include "addr.h"
#include "sandbox.h"
#include "event.h"
#include "nat.h"
#include "reason.h"
#include "rules.h"
#include "synth.h"

enum {
	NP_IPPROTO_HOPOPTS = 0,
	NP_IPPROTO_ICMP = 1,
	NP_IPPROTO_TCP = 6,
	NP_IPPROTO_UDP = 17,
	NP_IPPROTO_ICMPV6 = 58,
	NP_SOCK_STREAM = 1,
	NP_SOCK_DGRAM = 2,
	NP_SOCK_RAW = 3,
	NP_ESTABLISHED = 1, /* TCP_ESTABLISHED: of UDP sockets, too, when they are connected */
	NP_LISTENING = 10,  /* TCP_LISTEN */
	NP_DNS_PORT = 53,
};

/* Whose socket is at the far end of an attempt that stays on this host. */
enum np_peer {
	NP_PEER_NOBODY = 0, /* no socket there that a look-up finds, or one on its way out (TIME_WAIT) */
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
	bool host;	     /* it does not, but leads to the host: from a container */
	bool host_port;	     /* the policy lists the port of the host in this mode */
	bool opening;	     /* TCP: opens a connection (connect(), SYN without ACK, or what a listener gets) */
	bool connecting;     /* it is connect() that asks */
	bool bare;	     /* TCP: neither SYN nor payload: carries nothing */
	bool payload;	     /* TCP: some */
	bool options;	     /* IP options or extension headers */
	bool fragment;	     /* a later one: it has no ports */
	bool many;	     /* multicast or broadcast */
	bool inspected;	     /* the policy wants the port inspected */
	bool inspector;	     /* connect(): it is there to be led to. Packets and sockets: the far end is its port */
	bool dns_gate; /* lookups at the socket layer: it is there to be led to. All else: the far end is its UDP port */
	bool steered;  /* UDP: the socket was led to the DNS gate before */
	bool answer;   /* inbound UDP: the socket is connected, or sent there */
	bool inbound;  /* inbound: the policy lets callers reach this port */
	bool withdrawn; /* an open connection: the policy let callers reach its near port, and does no longer */
	bool forward;	/* the far end is a socket that may call this sandbox: netpawl forward */
	__u32 action;	/* enum np_action of the address rule that matches; 0: none does */
	__u32 rule;	/* its number, for the event */
	__u32 epoch;	/* of the policy */
};

np_pure bool np_is_ported(__u16 protocol)
{
	return protocol == NP_IPPROTO_TCP || protocol == NP_IPPROTO_UDP;
}

/* Is this a DNS query for the DNS gate? All traffic to port 53 is, whichever server it names. Two exceptions: a server
 * that the sandbox runs for itself, and (TCP) the last segments to one that it ran, which has ended. */
np_pure bool np_is_query(const struct np_facts *f)
{
	if (f->mode != NP_PROXIED || !np_is_ported(f->protocol) || f->port != NP_DNS_PORT || f->many)
		return false;
	if (!f->local)
		return true;
	return f->peer != NP_PEER_SELF && (f->peer != NP_PEER_NOBODY || f->protocol == NP_IPPROTO_UDP || f->opening);
}

/* Must a connection be led to the inspector's listener? */
np_pure bool np_wants_inspector(const struct np_facts *f)
{
	if (f->mode != NP_PROXIED || f->protocol != NP_IPPROTO_TCP)
		return false;
	if (np_is_query(f))
		return true;
	return !f->local && (np_addr_is_synthetic(&f->addr) || (f->inspected && f->action != NP_ALLOW));
}

/* -- decisions --------------------------------------------------------------- */

/* May a socket of this kind be made? ICMP datagram sockets are ping; raw ones would read others' traffic; of what else there is (SCTP,
 * DCCP, ...) neither the packet layer nor the cut knows ports, so it is in no mode. */
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

/*
 * No socket is there that the look-up finds. Two may be there all the same: one that is bound to the device of the address,
 * which only the kernel's own look-up asks for; and one that is made between this look and the delivery. A sandbox
 * judges by the sender what reaches it, but the host's sockets take what comes. So nothing is sent that such a socket could
 * read or answer: no datagram (np_egress drops it), no SYN with data, and off loopback no SYN at all.
 */
np_pure enum np_reason np_judge_nobody(const struct np_facts *f)
{
	bool loopback = np_addr_is_loopback(&f->addr) || np_addr_is_any(&f->addr);

	if (f->host_port) /* then it is the host's, whoever it is */
		return NP_R_HOST_PORT;
	if (f->protocol == NP_IPPROTO_UDP && f->connecting)
		return NP_R_NOTHING_SENT;
	if (f->protocol == NP_IPPROTO_TCP && !f->opening) /* the kernel's RST is what its sender waits for */
		return NP_R_NO_LISTENER;
	return loopback && !f->payload ? NP_R_NO_LISTENER : NP_R_HOST_LOOPBACK;
}

/* Something that stays on this host: loopback, or any address of the host itself. */
np_pure enum np_reason np_judge_local(const struct np_facts *f)
{
	bool ported = np_is_ported(f->protocol);

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
		return np_judge_nobody(f);
	case NP_PEER_HOST:
		if (f->forward && f->mode != NP_NONE && !f->opening)
			return NP_R_FORWARDED;
		if (f->dns_gate) /* for whom the socket layer has sent, and nobody else */
			return f->mode == NP_PROXIED && f->steered ? NP_R_STEERED : NP_R_HOST_LOOPBACK;
		/* The inspector resets connections that the socket layer has not steered to it, so the packet layer
		 * need not know which are. */
		if (f->mode == NP_PROXIED && f->protocol == NP_IPPROTO_TCP && f->inspector)
			return NP_R_STEERED;
		return f->host_port ? NP_R_HOST_PORT : NP_R_HOST_LOOPBACK;
	case NP_PEER_OTHER:
		break;
	}
	return NP_R_HOST_LOOPBACK;
}

/* The host's listeners are as far for a container, to which they lie beyond a device, as for a sandbox to which they are local. */
np_pure enum np_reason np_judge_host(const struct np_facts *f)
{
	if (f->host_port)
		return NP_R_HOST_PORT;
	if (f->mode == NP_FULL && (!np_is_ported(f->protocol) || (f->protocol == NP_IPPROTO_TCP && !f->opening)))
		return NP_R_OPEN_MODE; /* as in np_judge_local() */
	return f->mode == NP_NONE ? NP_R_MODE_NONE : NP_R_HOST_LOOPBACK;
}

/* The server that is named does not matter, for nothing goes there. */
np_pure enum np_reason np_judge_dns(const struct np_facts *f)
{
	bool there = f->protocol == NP_IPPROTO_TCP ? f->inspector : f->dns_gate;

	if (f->options)
		return NP_R_IP_OPTIONS;
	return there ? NP_R_STEERED : NP_R_NO_DNS_GATE;
}

/* What PROXIED says of a destination that is not on this host. */
np_pure enum np_reason np_judge_proxied(const struct np_facts *f)
{
	if (f->options) /* IPv6 extension headers would hide the ports that the rule asks for */
		return NP_R_IP_OPTIONS;
	if (np_addr_is_loopback(&f->addr)) /* on its way to a device all the same: SO_BINDTODEVICE */
		return NP_R_HOST_LOOPBACK;
	if (np_addr_is_synthetic(&f->addr)) { /* no rule speaks of these: the name behind it is judged */
		/* glibc connects a UDP socket to each address of an answer, only to sort them. */
		if (f->protocol == NP_IPPROTO_UDP && f->connecting)
			return NP_R_NOTHING_SENT;
		if (f->protocol != NP_IPPROTO_TCP)
			return NP_R_NOT_IN_POLICY;
		return f->inspector ? NP_R_STEERED : NP_R_NO_INSPECTOR;
	}
	if (f->action == NP_ALLOW) /* the compiler gives no allow for what the inspector or the DNS gate must see */
		return NP_R_RULE_ALLOWS;
	if (f->protocol == NP_IPPROTO_TCP && f->inspected)
		return f->inspector ? NP_R_STEERED : NP_R_NO_INSPECTOR;
	switch (f->action) {
	case NP_DENY:
		return NP_R_RULE_DENIES;
	case NP_ASK:
		return NP_R_NEEDS_APPROVAL;
	case NP_DECIDE:
		return NP_R_NEEDS_DECIDER;
	case NP_READ:
		return NP_R_READ_ONLY;
	}
	return NP_R_NOT_IN_POLICY;
}

/* May the sandbox reach out? Asked by connect, sendmsg, and of every packet that leaves. */
np_pure enum np_reason np_judge_out(const struct np_facts *f)
{
	if (!f->mode)
		return NP_R_UNREGISTERED;
	if (np_is_query(f))
		return np_judge_dns(f);
	if (np_addr_is_metadata(&f->addr) && f->action != NP_ALLOW && !(f->action == NP_LOOK && f->mode == NP_PROXIED))
		return NP_R_METADATA;
	if (f->many) /* in every mode: the kernel hands a copy to every listener of this host that wants it */
		return NP_R_MULTICAST;
	if (f->local)
		return np_judge_local(f);
	/* Another sandbox's, which is nobody's to call; the host's firewall is not relied on. */
	if (np_addr_is_natted(&f->addr))
		return f->mode == NP_NONE ? NP_R_MODE_NONE : NP_R_HOST_LOOPBACK;
	if (f->host)
		return np_judge_host(f);
	switch (f->mode) {
	case NP_FULL:
		return f->action == NP_DENY ? NP_R_RULE_DENIES : NP_R_OPEN_MODE;
	case NP_PROXIED:
		return np_judge_proxied(f);
	case NP_NONE:
		break;
	}
	return NP_R_MODE_NONE;
}

/* -- shorter ways in FULL, where no rule speaks of addresses ------------------------- */

/* Each asks whether it is clear from the addresses alone that np_judge_out() lets it pass. False: nothing is known. */

/* A destination beyond the host. What no address tells is left: the broadcast addresses of networks, and the host's own as containers
 * see them. Neither matters for a TCP packet that opens nothing. */
np_pure bool np_judge_plain_far(const struct np_addr *dst)
{
	return !np_addr_is_many(dst) && !np_addr_is_metadata(dst) && !np_addr_is_natted(dst);
}

/* A TCP packet that opens nothing. If it stays on this host its source has to be the sandbox's own as well. */
np_pure bool np_judge_plain(const struct np_addr *src, const struct np_addr *dst, bool local)
{
	if (local)
		return np_addr_is_loopback(src) && np_addr_is_loopback(dst) && !np_addr_is_many(dst);
	return np_judge_plain_far(dst);
}

/* A TCP packet that opens a connection, or a UDP one, to a socket of the same sandbox: that passes in every mode. */
np_pure bool np_judge_plain_own(const struct np_addr *src, const struct np_addr *dst)
{
	return np_addr_is_loopback(src) && np_addr_is_localhost(dst);
}

/* From beyond the host: answers to what the sandbox may send, and in FULL callers at ports that the policy names. In
 * PROXIED nobody may call: what the sandbox answered would go past the inspector. */
np_pure enum np_reason np_judge_from_outside(const struct np_facts *f)
{
	bool answer = f->protocol == NP_IPPROTO_TCP ? !f->opening : f->answer;

	if (f->mode == NP_FULL && !np_is_ported(f->protocol))
		return NP_R_OPEN_MODE; /* ping */
	if (f->mode == NP_FULL && f->inbound)
		return NP_R_INBOUND_PORT;
	if (f->mode == NP_FULL && answer)
		return NP_R_OPEN_MODE;
	if (f->host && f->host_port && answer)
		return NP_R_HOST_PORT;
	return f->mode == NP_PROXIED && f->action == NP_ALLOW && answer ? NP_R_RULE_ALLOWS : NP_R_INBOUND;
}

/* May this packet reach a socket of the sandbox? f->peer is its sender. */
np_pure enum np_reason np_judge_in(const struct np_facts *f)
{
	if (!f->mode)
		return NP_R_UNREGISTERED;
	if (!f->local)
		return np_judge_from_outside(f);
	if (f->mode == NP_FULL && !np_is_ported(f->protocol))
		return NP_R_OPEN_MODE;
	if (f->peer == NP_PEER_HOST && f->forward && f->mode != NP_NONE)
		return NP_R_FORWARDED;
	if (f->peer == NP_PEER_SELF)
		return NP_R_OWN_LOOPBACK;
	/* A host's socket that is bound to a device is not found: nobody, but no sandbox either. */
	if ((f->peer == NP_PEER_HOST || f->peer == NP_PEER_NOBODY) && f->host_port && !f->opening)
		return NP_R_HOST_PORT;
	if (f->peer == NP_PEER_HOST && f->inspector && !f->opening && f->mode == NP_PROXIED &&
	    f->protocol == NP_IPPROTO_TCP)
		return NP_R_STEERED;
	/* Answers to sockets that asked. */
	if (f->peer == NP_PEER_HOST && f->dns_gate && f->steered && f->mode == NP_PROXIED)
		return NP_R_STEERED;
	/* The kernel's own RST, or an ACK out of TIME_WAIT: without them closing would hang. */
	if (f->peer == NP_PEER_NOBODY && f->protocol == NP_IPPROTO_TCP && f->bare)
		return NP_R_NO_LISTENER;
	return NP_R_INBOUND;
}

/* Sharing a port (SO_REUSEPORT, SO_REUSEADDR) with a socket outside of the sandbox would divert callers of that
 * socket. A socket that is bound to a device is one that our look-up by address does not find: see
 * np_judge_option(). */
np_pure enum np_reason np_judge_bind(enum np_mode mode, const struct np_addr *addr, bool own, enum np_peer holder)
{
	if (!mode)
		return NP_R_UNREGISTERED;
	if (np_addr_has_device(addr))
		return np_addr_is_many(addr) ? NP_R_MULTICAST : NP_R_METADATA;
	if (!own && !np_addr_is_many(addr))
		return NP_R_FOREIGN_SOURCE;
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
		case 25: /* SO_BINDTODEVICE, SO_BINDTOIFINDEX: a socket that our look-up by address does not find, but the */
		case 62: /*   kernel does, for a packet of the device that it is bound to */
			return NP_R_SOCKET_OPTION;
		}
		break;
	case 6: /* SOL_TCP */
		/* TCP_REPAIR: with CAP_NET_ADMIN a program would choose sequence numbers, by which the inspector's end of
		 * a connection is told from others, and be "connected" without a handshake. */
		if (option == 19 || option == 37 /* TCP_TX_DELAY: as pacing */)
			return NP_R_SOCKET_OPTION;
		break;
	case 0: /* SOL_IP */
		/* IP_FREEBIND, IP_TRANSPARENT: an address that is not the host's. Whoever answers a sandbox (the DNS gate,
		 * a service of the host, netpawl forward) would carry its bytes there. */
		if (option == 15 || option == 19)
			return NP_R_SOCKET_OPTION;
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
		if (option == 78 /* IPV6_FREEBIND */ || option == 75 /* IPV6_TRANSPARENT */)
			return NP_R_SOCKET_OPTION;
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
	if (np_addr_is_metadata(&f->addr) && f->action != NP_ALLOW)
		return true;
	if (f->mode == NP_FULL && !f->local)
		return f->action == NP_DENY || f->withdrawn;
	if (f->mode == NP_FULL && (f->protocol != NP_IPPROTO_TCP || f->opening))
		return false; /* each of its packets is judged anew */
	if (own)
		return false;
	if (f->host)
		return !f->host_port;
	if (f->local)
		return !f->host_port && !((f->inspector || f->dns_gate) && f->mode == NP_PROXIED);
	return f->mode != NP_PROXIED || f->action != NP_ALLOW || np_addr_is_synthetic(&f->addr);
}
