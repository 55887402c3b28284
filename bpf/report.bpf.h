/* SPDX-License-Identifier: GPL-2.0-only */
/* Telling user space: counters that are always exact, events that are rate-limited per sandbox. */
#ifndef NP_REPORT_BPF_H
#define NP_REPORT_BPF_H

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

/* A token bucket in thousandths of an event. Two CPUs may race for the last token: one event more or less
 * does not matter, the counts beside it do and are atomic. */
static __always_inline bool np_meter_take(struct np_meter *m)
{
	__u64 now = bpf_ktime_get_ns(), elapsed_us = (now - m->last_ns) / 1000;
	__u64 tokens = m->tokens;

	if (elapsed_us > 0) {
		tokens += elapsed_us * NP_EVENT_RATE / 1000;
		if (elapsed_us > 1000000000ull || tokens > NP_EVENT_BURST * 1000ull)
			tokens = NP_EVENT_BURST * 1000ull;
		m->last_ns = now;
	}
	if (tokens < 1000) {
		m->tokens = tokens;
		return false;
	}
	m->tokens = tokens - 1000;
	return true;
}

/* Who is refused, where, why. Everything but the far end, which the caller fills in. */
struct np_refusal {
	struct np_box *box; /* NULL: no sandbox */
	__u64 cgroup_id;
	enum np_hook hook;
	enum np_reason reason;
	__u8 family;
	__u16 protocol;
};

/* Counts a refusal. Returns an event to fill and submit, or NULL when this one is only counted. */
static __always_inline struct np_event *np_refusal_open(const struct np_refusal *r)
{
	struct np_meter *meter = r->box ? &r->box->meter : NULL;
	__u32 zero = 0, reason = r->reason;
	__u64 *count = bpf_map_lookup_elem(&np_counts, &reason);
	struct np_event *e;

	if (count)
		(*count)++;
	if (!meter)
		meter = bpf_map_lookup_elem(&np_strays, &zero);
	if (!meter)
		return NULL;
	__sync_fetch_and_add(&meter->refused, 1);
	if (!np_meter_take(meter)) {
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
	e->mode = r->box ? r->box->mode : 0;
	e->generation = r->box ? r->box->generation : 0;
	e->family = r->family;
	e->protocol = r->protocol;
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

#endif
