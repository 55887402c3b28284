/* SPDX-License-Identifier: GPL-2.0-only */
#include "rules.bpf.h"

/* The action (enum np_action) of the first rule that matches, or 0. */
__noinline __u32 np_rule_of(struct np_rule_query *query)
{
	struct np_net_key net = { .prefixlen = NP_NET_FIXED_BITS + 128 };
	struct np_port_key port = { .prefixlen = NP_PORT_FIXED_BITS + 16 };
	struct np_port_rule *found;
	__u32 *class;

	if (!query)
		return 0;
	net.epoch = query->epoch;
	net.set = query->set;
	net.family = np_addr_is_v4(&query->addr) ? 4 : 6;
	net.addr = query->addr;
	class = bpf_map_lookup_elem(&np_nets, &net);
	if (!class)
		return 0;
	port.epoch = query->epoch;
	port.class = *class;
	port.protocol = query->protocol;
	port.port = bpf_htons(query->port);
	found = bpf_map_lookup_elem(&np_net_ports, &port);
	if (!found)
		return 0;
	query->rule = found->rule;
	return found->action;
}
