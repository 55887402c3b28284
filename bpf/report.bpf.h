/* SPDX-License-Identifier: GPL-2.0-only */
/* Telling user space: counters that are always exact, events that are rate-limited per sandbox. */
#pragma once

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

/* CPUs race for the bucket without a lock; whoever loses too often goes without: there may be too few for a moment,
 * never too many. */
static __always_inline bool np_bucket_take(struct np_bucket *b, __u64 rate, __u64 burst, __u64 cost)
{
	const __u64 full = burst * 1000;
	__u64 now = bpf_ktime_get_ns(), last = b->last_ns, add = 0;

	if (now > last) /* another CPU may have been here with a later time */
		add = (now - last) / 1000 * rate / 1000;
	if (add && __sync_val_compare_and_swap(&b->last_ns, last, now) != last)
		add = 0; /* somebody else fills up for this time */
	for (int tries = 0; tries < 4; tries++) {
		__u64 tokens = *(volatile __u64 *)&b->tokens;
		__u64 next = add < full && tokens + add < full ? tokens + add : full;
		bool take = next >= cost * 1000;

		if (take)
			next -= cost * 1000;
		if (__sync_val_compare_and_swap(&b->tokens, tokens, next) == tokens)
			return take;
	}
	return false;
}

/* Who is refused, where, why. Everything but the far end, which the caller fills in. */
struct np_refusal {
	struct np_sandbox *sandbox; /* NULL: no sandbox */
	struct np_rung rung;	    /* that the decision was made at */
	__u64 cgroup_id;
	enum np_hook hook;
	enum np_reason reason;
	__u8 family;
	__u16 protocol;
	__u32 rule, epoch;
};

/* Counts a refusal. Returns an event to fill and submit, or NULL when this one is only counted. */
static __always_inline struct np_event *np_refusal_open(const struct np_refusal *r)
{
	struct np_sandbox *sandbox = r->sandbox;
	bool caller = r->hook == NP_HOOK_INGRESS; /* somebody else's packet */
	struct np_meter *meter;
	struct np_bucket *bucket;
	__u32 zero = 0, reason = r->reason;
	__u64 *count = bpf_map_lookup_elem(&np_counts, &reason);
	struct np_event *e;

	if (count)
		(*count)++;
	if (sandbox) {
		barrier_var(sandbox); /* no arithmetic on it before it is known not to be NULL */
		meter = &sandbox->meter;
		bucket = caller ? &sandbox->callers : &meter->events;
	} else {
		meter = bpf_map_lookup_elem(&np_strays, &zero);
		if (!meter)
			return NULL;
		bucket = &meter->events;
	}
	if (!caller)
		__sync_fetch_and_add(&meter->refused, 1);
	if (!np_bucket_take(bucket, NP_EVENT_RATE, NP_EVENT_BURST, 1)) {
		__sync_fetch_and_add(&meter->suppressed, 1);
		return NULL;
	}
	e = bpf_ringbuf_reserve(&np_events, sizeof(*e), 0);
	if (!e) {
		__sync_fetch_and_add(&meter->suppressed, 1);
		np_error_count(NP_AT_RING_RESERVE, 0);
		return NULL;
	}
	__builtin_memset(e, 0, sizeof(*e));
	e->version = NP_ABI_VERSION;
	e->hook = r->hook;
	e->reason = r->reason;
	e->rung = r->rung;
	e->family = r->family;
	e->protocol = r->protocol;
	e->rule = r->rule;
	e->epoch = r->epoch;
	e->time_ns = bpf_ktime_get_ns();
	e->cgroup_id = r->cgroup_id;
	e->suppressed = meter->suppressed;
	return e;
}

/* The calling process: right at the socket layer, where the caller is the sandbox. */
static __always_inline void np_event_add_task(struct np_event *e)
{
	e->pid = bpf_get_current_pid_tgid() >> 32;
	e->uid = (__u32)bpf_get_current_uid_gid();
	bpf_get_current_comm(e->comm, sizeof(e->comm));
}
