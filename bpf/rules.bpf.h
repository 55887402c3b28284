/* SPDX-License-Identifier: GPL-2.0-only */
/* What the live policy says of an address and a port. */
#pragma once

#include "maps.bpf.h"
#include "gate.bpf.h"

/* One load: a policy that is replaced meanwhile is seen wholly or not at all. */
static __always_inline struct np_in_force np_in_force_now(void)
{
	struct np_in_force policy = {};
	__u32 zero = 0;
	__u64 *word = bpf_map_lookup_elem(&np_in_force, &zero), now;

	if (word) {
		now = *(volatile __u64 *)word;
		__builtin_memcpy(&policy, &now, sizeof(policy));
	}
	return policy;
}

/* rules.bpf.c. A function of its own, so that the verifier walks it once. */
struct np_rule_query {
	struct np_addr addr;
	__u32 epoch;
	__u32 set;
	__u16 protocol;
	__u16 port; /* host order */
	__u32 rule; /* out */
};
__u32 np_rule_of(struct np_rule_query *query);

static __always_inline bool np_host_port_listed(__u16 port, struct np_rung rung)
{
	struct np_listed_key key = { .epoch = np_in_force_now().epoch, .port = port };
	struct np_listed *listed = bpf_map_lookup_elem(&np_ports, &key);

	return listed && (listed->host_modes >> rung.mode & 1) && !(rung.flags & NP_READ_ONLY);
}
