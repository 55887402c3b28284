/* SPDX-License-Identifier: GPL-2.0-only */
#include "judge.bpf.h"

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

/* Is it the host, which a container sees beyond a device of its own? */
static __always_inline void np_facts_add_host(struct np_facts *f, __u64 netns, struct np_rung rung)
{
	if (f->mode == NP_FULL && f->protocol == NP_IPPROTO_TCP && !f->opening)
		return; /* it passes in any case */
	if (netns == np_host_netns || np_addr_kind(np_host_netns, &f->addr) != NP_ADDR_OWN)
		return;
	f->host = true;
	f->host_port = np_host_port_listed(f->port, rung);
}

__noinline int np_facts_add_far(struct np_facts *f, __u64 netns, const struct np_rung *rung)
{
	if (!f || !rung)
		return NP_R_INTERNAL;
	np_facts_add_rule(f, *rung);
	np_facts_add_host(f, netns, *rung);
	return 0;
}

__noinline int np_reach_out(struct np_facts *f)
{
	return f ? np_judge_out(f) : NP_R_INTERNAL;
}

__noinline int np_reach_in(struct np_facts *f)
{
	return f ? np_judge_in(f) : NP_R_INTERNAL;
}

__noinline int np_must_cut(struct np_facts *f, int own)
{
	return !f || np_judge_cut(f, own);
}
