/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Whose DNS query is it? The gate writes it down before the datagram leaves, under the
 * port that it comes from (and the namespace that this port is in), and marks the datagram with the number of what it wrote
 * (SO_RCVMARK gives it to the receiver). Who finds that number in the entry has the
 * entry of just this datagram, whoever uses the port by now.
 */
#pragma once

#include <linux/bpf.h>

#include "sandbox.h"

/* An entry of np_dns_origins, which the DNS gate maps and reads without a system call. */
struct np_dns_origin {
	__u32 number; /* odd while it is written; other with each change of the next three; 0: never written */
	__u32 generation;
	__u64 cgroup_id;       /* of the sandbox */
	struct np_addr source; /* of the datagram */
	struct np_addr server; /* the server that this port asked last: a hint, which no number covers */
};
_Static_assert(sizeof(struct np_dns_origin) == 48, "np_dns_origin layout: also the distance of two entries");

#define NP_DNS_ORIGINS 131072
/* Ports are the same in every network namespace: the place of one differs by the namespace, so that sandboxes that use the same
 * ones seldom meet. Where they do, the number tells whose entry it is, and the other query is asked again. */
#define NP_DNS_ORIGIN_INDEX(is_v6, port, netns) \
	((__u32)(is_v6) << 16 | (((__u32)(port) ^ (__u32)((netns)*0x9e3779b97f4a7c15ull >> 48)) & 0xffff))

/* Value of np_dns_server, kept with a socket whose datagrams are led to the DNS gate. */
struct np_dns_server {
	struct np_addr last[2];	   /* the server that was asked last: IPv4, IPv6 */
	struct np_addr peer;	   /* the one that the socket was connected to */
	__u16 port[2];		   /* where they were led, host order; 0: nowhere */
	struct bpf_spin_lock lock; /* who signs a datagram of this socket: see np_query_sign() */
};
_Static_assert(sizeof(struct np_dns_server) == 56, "np_dns_server layout");

/*
 * The DNS gate's answer carries the cgroup id of the sandbox that asked in bytes of the destination address that the
 * kernel does not look at, so that the gate can compare it with who has the port when the answer is sent: in sin_zero,
 * or the lower half in sin6_flowinfo and the upper one in sin6_scope_id. Offsets into struct sockaddr_in and _in6.
 */
#define NP_ANSWER_V4	  8
#define NP_ANSWER_V6_LOW  4
#define NP_ANSWER_V6_HIGH 24
