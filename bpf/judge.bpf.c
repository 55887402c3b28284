/* SPDX-License-Identifier: GPL-2.0-only */
#include "rules.bpf.h"

#include "judge.bpf.h"

__noinline int np_reach_out(struct np_facts *f)
{
	return f ? np_judge_out(f) : NP_R_INTERNAL;
}

__noinline int np_reach_in(struct np_facts *f)
{
	return f ? np_judge_in(f) : NP_R_INTERNAL;
}
