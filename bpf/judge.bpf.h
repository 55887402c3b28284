/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The decisions of gate.bpf.h as functions of their own. The verifier walks each of them once, whatever is known of the
 * facts at the place of the call; inlined, it would walk them once for every combination of facts that a path before
 * them has left (np_egress: 566,000 instructions instead of 28,000, and a million is its limit).
 */
#ifndef NP_BPF_JUDGE_BPF_H
#define NP_BPF_JUDGE_BPF_H

#include "gate.bpf.h"

/* enum np_reason. f is not changed. */
int np_reach_out(struct np_facts *f);
int np_reach_in(struct np_facts *f);

#endif
