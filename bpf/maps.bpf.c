/* SPDX-License-Identifier: GPL-2.0-only */
#include "maps.bpf.h"

struct np_sandboxes_map np_sandboxes SEC(".maps");
struct np_depths_map np_depths SEC(".maps");
struct np_host_addrs_map np_host_addrs SEC(".maps");
struct np_in_force_map np_in_force SEC(".maps");
struct np_ports_map np_ports SEC(".maps");
struct np_nets_map np_nets SEC(".maps");
struct np_net_ports_map np_net_ports SEC(".maps");
struct np_inspector_map np_inspector SEC(".maps");
struct np_namespaces_map np_namespaces SEC(".maps");
struct np_homes_map np_homes SEC(".maps");
struct np_steered_map np_steered SEC(".maps");
struct np_dns_server_map np_dns_server SEC(".maps");
struct np_dns_origins_map np_dns_origins SEC(".maps");
struct np_met_map np_met SEC(".maps");
struct np_flows_map np_flows SEC(".maps");
struct np_unix_hints_map np_unix_hints SEC(".maps");
struct np_events_map np_events SEC(".maps");
struct np_strays_map np_strays SEC(".maps");
struct np_counts_map np_counts SEC(".maps");
struct np_errors_map np_errors SEC(".maps");
struct np_cut_targets_map np_cut_targets SEC(".maps");
struct np_cut_flows_map np_cut_flows SEC(".maps");
struct np_cut_map np_cut SEC(".maps");
struct np_sockets_map np_sockets SEC(".maps");
struct np_cut_orders_map np_cut_orders SEC(".maps");
struct np_open_query_map np_open_query SEC(".maps");
struct np_holds_map np_holds SEC(".maps");
struct np_hold_slots_map np_hold_slots SEC(".maps");
struct np_holder_map np_holder SEC(".maps");
struct np_peers_map np_peers SEC(".maps");
struct np_no_peers_map np_no_peers SEC(".maps");
struct np_share_map np_share SEC(".maps");
struct np_forwards_map np_forwards SEC(".maps");

const volatile __u64 np_slice_id = 0;
const volatile __u32 np_slice_depth = 0;
const volatile __u64 np_host_netns = 0;
const volatile __u32 np_sockets_all = 0;
const volatile bool np_casts = false;
const volatile bool np_sees_cgroups = false;
const volatile bool np_destroys = false;
const volatile bool np_judges_peers = false;

char LICENSE[] SEC("license") = "GPL";
