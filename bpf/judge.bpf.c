/* SPDX-License-Identifier: GPL-2.0-only */
#include "judge.bpf.h"
#include "steer.bpf.h"

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

__noinline int np_facts_add_kind(struct np_facts *f, __u32 kind)
{
	if (!f)
		return 0;
	f->many = kind == NP_ADDR_BROADCAST || np_addr_is_many(&f->addr);
	f->local = kind == NP_ADDR_OWN || np_addr_is_loopback(&f->addr) || np_addr_is_any(&f->addr);
	return 0;
}

__noinline int np_facts_add_far(struct np_facts *f, __u64 netns, const struct np_rung *rung)
{
	if (!f || !rung)
		return NP_R_INTERNAL;
	np_facts_add_rule(f, *rung);
	np_facts_add_host(f, netns, *rung);
	return 0;
}

__noinline int np_facts_add_peer(struct bpf_sock_addr *ctx, struct np_facts *f, __u64 id, const struct np_rung *rung)
{
	struct np_tuple flow = {};

	if (!f || !rung)
		return 0;
	flow.near_addr = f->addr;
	flow.near_port = ctx->user_port;
	flow.protocol = f->protocol;
	if (np_addr_is_any(&f->addr)) /* to the kernel "any" as a destination is loopback */
		flow.near_addr.b[15] = 1, flow.near_addr.b[12] = np_addr_is_v4(&f->addr) ? 127 : 0;
	if (np_addr_is_v4(&f->addr))
		flow.far_addr = np_addr_v4(0);
	f->peer = np_peer_find(ctx, &flow, id, NULL);
	if (f->peer == NP_PEER_SELF || f->peer == NP_PEER_OTHER)
		return 0; /* the rest is about the host */
	f->host_port = np_host_port_listed(f->port, *rung);
	f->dns_gate =
		f->protocol == NP_IPPROTO_UDP && np_is_dns_gate(bpf_get_netns_cookie(ctx), &flow.near_addr, f->port);
	return 0;
}

static __always_inline bool np_listener_is_there(struct bpf_sock_addr *ctx, const struct np_facts *f)
{
	struct np_inspector *inspector = np_inspector_in(bpf_get_netns_cookie(ctx));
	struct np_tuple flow = { .near_addr = np_loopback_for(&f->addr), .protocol = f->protocol };
	struct np_listener listener;

	if (!inspector)
		return false;
	listener = np_listener_for(inspector, f->protocol, np_addr_is_v4(&f->addr));
	flow.near_port = bpf_htons(listener.port);
	return np_listener_is_kept(ctx, &flow, listener.cookie);
}

__noinline int np_facts_add_listener(struct bpf_sock_addr *ctx, struct np_facts *f)
{
	if (!f)
		return 0;
	if (np_wants_inspector(f))
		f->inspector = f->connecting && np_listener_is_there(ctx, f);
	else if (np_is_query(f))
		f->dns_gate = np_listener_is_there(ctx, f);
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
