/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The host's ports that sandboxes hold. Sandboxes without a network namespace of their own share the host's, so a port that one
 * of them takes is taken from everybody. One in another namespace takes none of the host's: of its sockets, only where UDP ones
 * sent to is here, for a container has a way out of its own.
 *
 *   np_holds      (protocol, port, slot) -> which socket of which sandbox. Sockets share a port by SO_REUSEPORT, and
 *                 by different addresses: each has a slot.
 *   np_hold_slots (protocol, port) -> how many slots are in use: most ports of a host have none, and cost one look.
 *   np_peers      cookie of a UDP socket -> where it sent to, for only from there it may have an answer.
 *   np_holder     with the socket: that it is counted, and its slot.
 *
 * An entry outlives its socket for a while. That is on purpose: it names the socket by its address and cookie, the
 * reader looks at the socket itself, and so there is no moment at which a listener is there and its entry is not.
 */
#pragma once

#include "sandbox.h"

struct np_hold_key {
	__u16 port; /* host order */
	__u8 protocol;
	__u8 slot;
};
_Static_assert(sizeof(struct np_hold_key) == 4, "np_hold_key layout: np_holder keeps it as one word");

struct np_hold {
	__u64 sock;   /* address of the kernel's struct sock: only ever read, and only while the cookie fits */
	__u64 cookie; /* of the socket; never given twice */
	__u64 cgroup_id;
	__u64 since_ns;	     /* CLOCK_MONOTONIC of the bind */
	struct np_addr addr; /* that it was bound to */
	__u32 v6only;
	__u32 reported_s; /* CLOCK_MONOTONIC of the last event about a caller from beyond the host; 0: there was none */
};
_Static_assert(sizeof(struct np_hold) == 56, "np_hold layout");

/* Where an unconnected UDP socket sent to, the last of them. Value of np_peers; the key is the socket's cookie. */
struct np_peers {
	__u32 next;		     /* place in digests[] of the next one */
	__u32 digests[NP_UDP_PEERS]; /* of an address and a port; 0: none */
};

#define NP_HOLD_SLOTS_INDEX(udp, port) ((__u32)(udp) << 16 | (port))

/* Kept with a socket of a sandbox. */
struct np_holder {
	__u64 cgroup_id; /* of the sandbox that it is counted for; 0: it is not counted */
	__u32 key;	 /* struct np_hold_key, when held */
	__u16 held;
	__u16 noted : 1; /* it is in np_sockets: see cut.h */
	__u16 self : 15; /* a digest of where it found the same sandbox on this host when it sent the last time; 0: nowhere */
};

/* The one entry of np_share: what all sandboxes have together. */
struct np_share {
	__s64 sockets;
};

/* Context of np_listens: does this sandbox listen on this TCP port? 0, or -ENOENT: it does not. */
struct np_listens {
	__u32 version; /* NP_ABI_VERSION, else -EPROTO */
	__u16 port;
	__u16 v6only; /* out */
	__u64 cgroup_id;
	__u64 netns;	     /* in which network namespace: the kernel's cookie of it */
	struct np_addr addr; /* out: at which it listens */
};
_Static_assert(sizeof(struct np_listens) == 40, "np_listens layout");
