/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Every map of the gate. Defined in maps.bpf.c, declared here, so that the type
 * that bpftool shows is the type that the programs use.
 */
#pragma once

#include <linux/bpf.h>
#include <stdbool.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "dns_origin.h"
#include "sandbox.h"
#include "cut.h"
#include "event.h"
#include "flow.h"
#include "open_sockets.h"
#include "ports.h"
#include "rules.h"

/* Sandboxes: cgroup id -> rung. Frozen: no user, root included, can write it; only np_raise and
 * np_retire do, and they cannot lower. A cgroup that is not in it is NONE. */
struct np_sandboxes_map {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC); /* memory for the sandboxes there are, not for 65,536 */
	__uint(max_entries, NP_SANDBOXES_MAX);
	__type(key, __u64);
	__type(value, struct np_sandbox);
};
extern struct np_sandboxes_map np_sandboxes SEC(".maps");

/* One load: a rung that is raised meanwhile is seen wholly or not at all. */
static __always_inline struct np_rung np_rung_of(const struct np_sandbox *sandbox)
{
	__u64 word = *(const volatile __u64 *)&sandbox->rung;
	struct np_rung rung;

	__builtin_memcpy(&rung, &word, sizeof(rung));
	return rung;
}

/* One word: bit d is set when some sandbox lies d levels below the root. Frozen as well. It tells which
 * ancestors of a socket's cgroup are worth looking up, so nested cgroups cost nothing extra. */
struct np_depths_map {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
};
extern struct np_depths_map np_depths SEC(".maps");

/* Addresses of the host's own devices (NP_ADDR_OWN) and the broadcast addresses of its networks (NP_ADDR_BROADCAST), and the same
 * of containers, kept by the daemon from netlink. In its own namespace a sandbox's are only for the right errno at connect(): the
 * packet layer knows a local packet by its device. The host's are also for containers, from where they lie beyond a device. */
struct np_host_addrs_map {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, NP_HOST_ADDRS_MAX);
	__type(key, struct np_own_addr);
	__type(value, __u8);
};
extern struct np_host_addrs_map np_host_addrs SEC(".maps");

/* Which policy holds: see rules.h. Written by the daemon through its memory map, in one store. */
struct np_in_force_map {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct np_in_force);
};
extern struct np_in_force_map np_in_force SEC(".maps");

/* Ports that the policy speaks of as such: of the host (host_loopback), and inspected ones. */
struct np_ports_map {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, NP_LISTED_PORTS_MAX);
	__type(key, struct np_listed_key);
	__type(value, struct np_listed);
};
extern struct np_ports_map np_ports SEC(".maps");

/* The policy's address rules. */
struct np_nets_map {
	__uint(type, BPF_MAP_TYPE_LPM_TRIE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, NP_NETS_MAX);
	__type(key, struct np_net_key);
	__type(value, __u32);
};
extern struct np_nets_map np_nets SEC(".maps");

struct np_net_ports_map {
	__uint(type, BPF_MAP_TYPE_LPM_TRIE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, NP_NET_PORTS_MAX);
	__type(key, struct np_port_key);
	__type(value, struct np_port_rule);
};
extern struct np_net_ports_map np_net_ports SEC(".maps");

/* Where the inspector and the DNS gate are in the host's network namespace, written by the daemon. */
struct np_inspector_map {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct np_inspector);
};
extern struct np_inspector_map np_inspector SEC(".maps");

/* The same in other namespaces that sandboxes live in. Whoever is in neither is led nowhere. */
struct np_namespaces_map {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, NP_NAMESPACES_MAX);
	__type(key, __u64);
	__type(value, struct np_inspector);
};
extern struct np_namespaces_map np_namespaces SEC(".maps");

/* Which sandbox lives in which of them. */
struct np_homes_map {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, NP_HOMES_MAX);
	__type(key, __u64);
	__type(value, struct np_home);
};
extern struct np_homes_map np_homes SEC(".maps");

/* Where a steered socket was meant to go, kept with the sandbox's socket. */
struct np_steered_map {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct np_flow);
};
extern struct np_steered_map np_steered SEC(".maps");

/* Which servers a socket asked whose datagrams lead to the DNS gate, likewise. */
struct np_dns_server_map {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct np_dns_server);
};
extern struct np_dns_server_map np_dns_server SEC(".maps");

/* Whose queries come from which port; see dns_origin.h. Frozen: the DNS gate reads it, the packet layer alone writes. */
struct np_dns_origins_map {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, NP_DNS_ORIGINS);
	__type(key, __u32);
	__type(value, struct np_dns_origin);
};
extern struct np_dns_origins_map np_dns_origins SEC(".maps");

/* The same, kept with the inspector's end of the connection from the end of the handshake until the inspector asks. */
struct np_met_map {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct np_flow);
};
extern struct np_met_map np_met SEC(".maps");

/* Steered connections whose handshake has not ended yet: see flow.h. No LRU: a full table refuses. */
struct np_flows_map {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, NP_FLOWS_MAX);
	__type(key, struct np_flow_key);
	__type(value, struct np_flow);
};
extern struct np_flows_map np_flows SEC(".maps");

/* In which bucket of the kernel's table of unix sockets a name was found the last time, by a digest of the name: where the
 * next search for it begins. Whatever is in it, the search finds what it would find without. */
struct np_unix_hints_map {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, NP_UNIX_HINTS);
	__type(key, __u32);
	__type(value, __u32);
};
extern struct np_unix_hints_map np_unix_hints SEC(".maps");

struct np_events_map {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, NP_RING_BYTES);
};
extern struct np_events_map np_events SEC(".maps");

/* Rate limit of events from cgroups below the slice that are no sandbox. */
struct np_strays_map {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct np_meter);
};
extern struct np_strays_map np_strays SEC(".maps");

/* Refusals by reason, of all sandboxes. */
struct np_counts_map {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, NP_REASON_COUNT);
	__type(key, __u32);
	__type(value, __u64);
};
extern struct np_counts_map np_counts SEC(".maps");

/* Failed helpers by place and errno. */
struct np_errors_map {
	__uint(type, BPF_MAP_TYPE_PERCPU_HASH);
	__uint(max_entries, NP_ERR_PLACES_MAX);
	__type(key, struct np_error_key);
	__type(value, __u64);
};
extern struct np_errors_map np_errors SEC(".maps");

/* Sandboxes to cut or to look at, filled by the daemon for one cut: enum np_cut_found. */
struct np_cut_targets_map {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, NP_SANDBOXES_PER_SESSION);
	__type(key, __u64);
	__type(value, __u8);
};
extern struct np_cut_targets_map np_cut_targets SEC(".maps");

/* Connections between two sockets of the sandboxes that are being cut -> cgroup id of the sandbox. */
struct np_cut_flows_map {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, NP_CUT_FLOWS_MAX);
	__type(key, struct np_cut_flow);
	__type(value, __u64);
};
extern struct np_cut_flows_map np_cut_flows SEC(".maps");

struct np_cut_map {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct np_cut_state);
};
extern struct np_cut_map np_cut SEC(".maps");

/* The sockets of sandboxes: see cut.h. */
struct np_sockets_map {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, NP_SOCKET_BLOCKS_MAX);
	__type(key, struct np_socket_key);
	__type(value, struct np_socket_block);
};
extern struct np_sockets_map np_sockets SEC(".maps");

/* What np_cut_walk has found. */
struct np_cut_orders_map {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, NP_CUT_ORDERS);
	__type(key, __u32);
	__type(value, struct np_cut_order);
};
extern struct np_cut_orders_map np_cut_orders SEC(".maps");

/* The cgroup that np_open_sockets looks at. */
struct np_open_query_map {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct np_open_query);
};
extern struct np_open_query_map np_open_query SEC(".maps");

/* The host's ports that sandboxes hold: see ports.h. */
struct np_holds_map {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, NP_HOLDS_MAX);
	__type(key, struct np_hold_key);
	__type(value, struct np_hold);
};
extern struct np_holds_map np_holds SEC(".maps");

struct np_hold_slots_map {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 2 * 65536);
	__type(key, __u32);
	__type(value, __u32);
};
extern struct np_hold_slots_map np_hold_slots SEC(".maps");

struct np_holder_map {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct np_holder);
};
extern struct np_holder_map np_holder SEC(".maps");

struct np_peers_map {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, NP_HOLDS_MAX);
	__type(key, __u64);
	__type(value, struct np_peers);
};
extern struct np_peers_map np_peers SEC(".maps");

/* An empty one, which is too large for a program's stack. Nobody writes it. */
struct np_no_peers_map {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_RDONLY_PROG);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct np_peers);
};
extern struct np_no_peers_map np_no_peers SEC(".maps");

struct np_share_map {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct np_share);
};
extern struct np_share_map np_share SEC(".maps");

/* Sockets of the host, by cookie, that may call a listener of a sandbox: netpawl forward. Written by the daemon; an
 * entry lets nobody into a sandbox whose mode is NONE. */
struct np_forwards_map {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, NP_FORWARD_SOCKETS_MAX);
	__type(key, __u64);
	__type(value, __u64); /* cgroup id of the sandbox */
};
extern struct np_forwards_map np_forwards SEC(".maps");

/* Set between open and load. */
extern const volatile __u64 np_slice_id;    /* cgroup id of netpawl's slice */
extern const volatile __u32 np_slice_depth; /* its level below the v2 root */
extern const volatile __u64 np_host_netns;  /* cookie of the host's network namespace: the daemon's */
extern const volatile __u32 np_sockets_all; /* that all sandboxes may have together */
extern const volatile bool np_casts;	    /* the kernel has bpf_rdonly_cast: 6.2 */
extern const volatile bool np_sees_cgroups; /* the kernel lets np_retire ask whether a cgroup lives */
extern const volatile bool np_destroys;	    /* it has bpf_sock_destroy: 6.5 */
extern const volatile bool np_judges_peers; /* peer.bpf.c judges unix sockets, so that names need not be */
