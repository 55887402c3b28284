/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A steered connection: it was meant for somebody out there and leads to the
 * inspector. The gate keeps its identity; the inspector asks for it with
 *
 *   getsockopt(accepted, NP_SOL_FLOW, NP_SO_FLOW, &flow, &len)
 *
 * which works once, in the inspector's cgroup only. A connection without one is nobody's, and reset.
 *
 * The identity is bound to the connection, not to the client's port, which another sandbox may have by the time the
 * inspector accepts; nor to an address and a port alone, which sandboxes have at the same time, each in a network namespace of
 * its own. Before the SYN leaves, the sandbox's side puts the flow into np_flows, under the namespace, the address, the port
 * and the sequence number that the SYN carries. When the handshake ends, the inspector's side takes it out again, by
 * the same four as the accepted socket knows them, and keeps it with that socket (np_met). If the sandbox's socket is
 * gone by then, its entry is, too, and the connection stays without an identity.
 */
#pragma once

#include "sandbox.h"

#define NP_SOL_FLOW 0x6e70
#define NP_SO_FLOW  1

/* The client's end, as the inspector's socket names its peer, and the very connection from there. */
struct np_flow_key {
	__u64 netns; /* the kernel's cookie of the network namespace, which is never given twice */
	struct np_addr addr;
	__u16 port; /* host order */
	__u16 pad;
	__u32 isn; /* initial sequence number of the client */
};
_Static_assert(sizeof(struct np_flow_key) == 32, "np_flow_key layout");

struct np_flow {
	__u64 cgroup_id;     /* of the sandbox */
	struct np_addr addr; /* where it was meant to go */
	__u16 port;	     /* host order */
	__u16 client_gone;   /* filled in for the inspector: the client has reset the connection */
	__u32 generation;    /* of the sandbox when it connected */
	__u32 isn;	     /* as in the key */
	__u32 pid;	     /* of the process that called connect(), as the host counts; 0: not known. For people */
};
_Static_assert(sizeof(struct np_flow) == 40, "np_flow layout");

/* A socket on 127.0.0.1 or ::1 that the gate leads to. */
struct np_listener {
	__u64 cookie; /* of the socket: nobody else may sit on the port when it is gone */
	__u16 port;   /* host order; 0: there is none */
	__u16 pad;
	__u32 pad2;
};
_Static_assert(sizeof(struct np_listener) == 16, "np_listener layout");

/* The one entry of np_inspector, for the host's network namespace, and a value of np_namespaces, for another one that sandboxes
 * live in, under the kernel's cookie of it. IPv4 first, then IPv6. */
struct np_inspector {
	struct np_listener tcp[2]; /* the inspector's listeners */
	struct np_listener dns[2]; /* the DNS gate's UDP sockets */
};
_Static_assert(sizeof(struct np_inspector) == 64, "np_inspector layout");
