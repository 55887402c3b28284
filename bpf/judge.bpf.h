/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The decisions of gate.bpf.h, and what fills in the facts for them, as functions of their own. The verifier walks each of them
 * once, whatever is known of the facts at the place of the call; inlined, it would walk them once for every combination of facts
 * that a path before them has left: half a million instructions of np_egress, and a million is its limit.
 */
#pragma once

#include "owner.bpf.h"

/* Fills in what the address of the far end and its kind (np_addr_kind()) tell. */
int np_facts_add_kind(struct np_facts *f, __u32 kind);

/* Fills in what the policy says of the far end, and whether that is the host, which a container sees beyond a device of its own;
 * for what does not stay on this host. */
int np_facts_add_far(struct np_facts *f, __u64 netns, const struct np_rung *rung);

/* At the socket layer: who is at an address of this host, and whether somebody is there whom it is to be led to. */
int np_facts_add_peer(struct bpf_sock_addr *ctx, struct np_facts *f, __u64 id, const struct np_rung *rung);
int np_facts_add_listener(struct bpf_sock_addr *ctx, struct np_facts *f);

/* enum np_reason. f is not changed. */
int np_reach_out(struct np_facts *f);
int np_reach_in(struct np_facts *f);
int np_must_cut(struct np_facts *f, int own); /* np_judge_cut() */
