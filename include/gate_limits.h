/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The bounds that the gate needs, each with its reason; those of user space are in user/vocab/limits.h. A stranger can
 * make us allocate up to these numbers and no further. Read by both compilers: plain numbers only.
 */
#pragma once

/* -- names ---------------------------------------------------------------- */
#define NP_LABEL_SIZE 136  /* the same with its NUL, padded to 8: what bpftool shows in np_sandboxes */

/* -- the gate ------------------------------------------------------------- */
#define NP_SANDBOXES_MAX 65536	/* sandboxes alive at once: entries of np_sandboxes, about 300 bytes each when used */
#define NP_DEPTH_MAX 32		/* cgroup depth of a sandbox: the walk in the kernel is bounded by it */
#define NP_HOST_ADDRS_MAX 32768	/* addresses of the host's own devices, and of containers' ... */
#define NP_NETNS_ADDRS_MAX 32	/* ... of which each has so many: what it adds beyond them is nobody's loss but its own */
#define NP_LISTED_PORTS_MAX 1024 /* host_loopback, inspect_ports and inbound in the gate, of two policies during a reload */
#define NP_ERR_PLACES_MAX 512	/* distinct (place, errno) pairs counted by np_errors */
#define NP_CUT_FLOWS_MAX 65536	/* own-loopback flows remembered during one cut; beyond it they are cut too */
#define NP_NAMESPACES_MAX 4096	/* network namespaces that sandboxes have of their own: each takes some 100 kB of the kernel and six descriptors */
#define NP_HOMES_MAX 16384	/* sandboxes in them: containers of one pod share one */
#define NP_FLOWS_MAX 65536	/* connections that were steered to the inspector and not met by it yet */
#define NP_FLOWS_PER_SANDBOX 1024	/* of one sandbox: a flood of them takes no place from others */
#define NP_QUERY_BURST 1000	/* DNS queries that one sandbox may send at once: a share of the gate's NP_DNS_ROOM ... */
#define NP_QUERY_RATE 2000	/* ... and per second after that; more are dropped */
#define NP_QUERY_COST 512	/* bytes of a datagram that are worth one query: what a plain one may have (RFC 1035) */
#define NP_UNIX_CHAIN_MAX 64	/* sockets looked at in one bucket of the unix socket table */
#define NP_UNIX_WALKS_MAX 64	/* unix sockets of one sandbox with the right file name in a wrong place, for one look */
#define NP_PATH_DEPTH_MAX 128	/* steps from a unix socket's file up to the root: 54 directories are in a name, the rest are mounts */
#define NP_MOUNTS_MAX 8192	/* mounts on one mount that are looked at; a host with containers has some hundreds on its root */
#define NP_UNIX_BUCKETS 512	/* UNIX_HASH_SIZE * 2: the kernel's unix socket table */
#define NP_UNIX_HINTS 4096	/* names whose bucket is remembered, of all sandboxes: two that share a place cost each other time */
#define NP_SOCKETS_PER_SANDBOX 2048	/* TCP and UDP sockets of one sandbox, accepted ones apart: each may take a port that all share */
#define NP_BLOCK_SLOTS 16	/* sockets that one entry of np_sockets has room for: as many as a sandbox's first slots */
#define NP_SOCKET_BLOCKS_MAX 65536 /* entries of np_sockets, about 450 bytes each when used: sockets of all sandboxes, and slots of closed ones */
#define NP_SLOTS_MIN 16		/* slots of a sandbox at first, one block; they double when there is no room */
#define NP_SLOTS_MAX 131072	/* of one sandbox: accepted sockets are as many as its callers make */
#define NP_SLOT_DOUBLINGS 14	/* numbers of slots from the least to the most, each twice the one before */
#define NP_BLOCKS_AT_ONCE 32	/* that one call of np_cut_walk looks at, some 100 us: meanwhile its CPU takes no packet, and no answer of the disk */
#define NP_SLOT_TRIES 8		/* slots that a new socket tries before they are doubled */
#define NP_CUT_ORDERS 1024	/* sockets that one call of np_cut_walk names */
#define NP_SOCKETS_SURE 64	/* of them, what a sandbox has in any case, however many others hold */
#define NP_HOLDS_MAX 65536	/* sockets of sandboxes at ports: more than there are ephemeral ports */
#define NP_PORT_SLOTS 32	/* sockets of sandboxes at one port: SO_REUSEPORT, one for each CPU */
#define NP_CALLER_EVENT_S 10	/* a caller from beyond the host is one event a listener in this time: callers are strangers */
#define NP_HOLD_FRESH_MS 1000	/* after a bind() the port is hidden from callers, whether its socket listens yet, or still */
#define NP_UDP_PEERS 64		/* places that an unconnected UDP socket may have an answer from: the last ones it sent to */
#define NP_FORWARD_SOCKETS_MAX 4096 /* of all of them together */

/* -- events --------------------------------------------------------------- */
#define NP_RING_BYTES (1u << 20)   /* kernel ring: 8,000 events, forty times one sandbox's burst */
#define NP_EVENT_BURST 200	   /* events one sandbox may send at once ... */
#define NP_EVENT_RATE 50	   /* ... and per second after that; the rest is counted, not sent */

/* -- sessions ------------------------------------------------------------- */
#define NP_SANDBOXES_PER_SESSION 1024 /* sandboxes one session may have at once */

/* -- policy file ---------------------------------------------------------- */
#define NP_NETS_MAX 65536	      /* address ranges in the gate, of two policies during a reload */
#define NP_NET_PORTS_MAX 262144	      /* port entries of these, likewise */
