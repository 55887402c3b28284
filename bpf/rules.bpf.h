/* SPDX-License-Identifier: GPL-2.0-only */
/* What the live policy says of an address and a port. */
#ifndef NP_BPF_RULES_BPF_H
#define NP_BPF_RULES_BPF_H

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

/* Fills in what the policy says of the far end; for what does not stay on this host. */
static __always_inline void np_facts_add_rule(struct np_facts *f, struct np_rung rung)
{
	struct np_rule_query query = { .protocol = np_is_ported(f->protocol) ? f->protocol : 0, .port = f->port };
	struct np_in_force policy = np_in_force_now();

	if (!f->mode || f->mode == NP_NONE || (f->mode == NP_FULL && !policy.full_rules) || !policy.epoch)
		return;
	if (f->mode == NP_PROXIED && !f->port && !f->fragment)
		return; /* no rule allows port 0, and 0 in the table means a fragment */
	f->epoch = policy.epoch;
	query.addr = np_addr_carried(&f->addr);
	query.epoch = policy.epoch;
	query.set = f->mode == NP_FULL ? NP_SET_FULL : policy.sets >> rung.level % NP_LEVELS * 4 & 15;
	f->action = np_rule_of(&query);
	f->rule = query.rule;
	if (f->action && f->action != NP_DENY && f->action != NP_LOOK && rung.flags & NP_READ_ONLY) {
		/* nobody would see what it writes there */
		query.set = NP_SET_READ;
		if (np_rule_of(&query) != NP_ALLOW)
			f->action = NP_READ;
	}
	if (f->mode == NP_PROXIED && f->protocol == NP_IPPROTO_TCP) {
		struct np_listed_key key = { .epoch = policy.epoch, .port = f->port };
		struct np_listed *listed = bpf_map_lookup_elem(&np_ports, &key);

		f->inspected = listed && listed->inspected;
		if (f->inspected && f->action == NP_READ)
			f->action = NP_LOOK; /* there somebody does */
	}
}

#endif
