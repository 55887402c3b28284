/* SPDX-License-Identifier: GPL-2.0-only */
/* Telling user space: counters that are always exact, events that are rate-limited per sandbox. */
#pragma once

#include "gate.bpf.h"
#include "maps.bpf.h"

static __always_inline void np_error_count(enum np_place place, long error)
{
	struct np_error_key key = { .place = place, .error = (__s32)error };
	__u64 one = 1, *count = bpf_map_lookup_elem(&np_errors, &key);

	if (count)
		(*count)++;
	else
		bpf_map_update_elem(&np_errors, &key, &one, BPF_NOEXIST);
}

/* report.bpf.c. Takes so much out of a bucket; 0: there is not so much in it. Functions of their own, so that the verifier walks them once. */
int np_bucket_take(struct np_bucket *b, __u32 rate, __u32 burst, __u32 cost);

/* Who is refused, where, why. What was tried is in struct np_facts, or a name. Plain data, all of it set: the verifier of 6.1 wants
 * all of what a function is given. */
struct np_refusal {
	__u64 cgroup_id;     /* of the sandbox, or of a cgroup that is none */
	struct np_rung rung; /* that the decision was made at */
	__u8 hook;	     /* enum np_hook */
	__u8 reason;	     /* enum np_reason */
	__u8 family;
	__u8 pad;
	__u16 near_port;
	__u16 pad2;
	__u32 ifindex;
	__u32 pad3;
};

/* Count a refusal, and send an event unless there were too many. sandbox: NULL when it is none. Of a packet, of a call, and of a call
 * with the name of a unix socket: len bytes of an address behind its family, at this address of the kernel's memory. */
int np_report_packet(struct np_sandbox *sandbox, const struct np_refusal *r, const struct np_facts *f);
int np_report_call(struct np_sandbox *sandbox, const struct np_refusal *r, const struct np_facts *f);
int np_report_name(struct np_sandbox *sandbox, const struct np_refusal *r, __u64 name, __u32 len);
