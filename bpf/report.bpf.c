/* SPDX-License-Identifier: GPL-2.0-only */
#include "report.bpf.h"

/* CPUs race for the bucket without a lock; whoever loses too often goes without: there may be too few for a moment,
 * never too many. */
__noinline int np_bucket_take(struct np_bucket *b, __u32 rate, __u32 burst, __u32 cost)
{
	__u64 full = burst * 1000ull, price = cost * 1000ull, now = bpf_ktime_get_ns(), last, add = 0;

	if (!b)
		return false;
	last = b->last_ns;
	if (now > last) /* another CPU may have been here with a later time */
		add = (now - last) / 1000 * rate / 1000;
	if (add && __sync_val_compare_and_swap(&b->last_ns, last, now) != last)
		add = 0; /* somebody else fills up for this time */
	if (add > full)
		add = full;
	for (int tries = 0; tries < 4; tries++) {
		__u64 tokens = *(volatile __u64 *)&b->tokens, next = tokens + add;

		if (next > full)
			next = full;
		/* An empty bucket is filled up as well. */
		if (__sync_val_compare_and_swap(&b->tokens, tokens, next < price ? next : next - price) == tokens)
			return next >= price;
	}
	return false;
}

/* Counts a refusal. Returns an event to fill and submit, or NULL when this one is only counted. */
static __always_inline struct np_event *np_refusal_open(struct np_sandbox *sandbox, const struct np_refusal *r)
{
	bool caller = r->hook == NP_HOOK_INGRESS; /* somebody else's packet */
	__u32 zero = 0, reason = r->reason;
	__u64 *count = bpf_map_lookup_elem(&np_counts, &reason);
	struct np_meter *meter;
	struct np_bucket *bucket;
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
	e->time_ns = bpf_ktime_get_ns();
	e->cgroup_id = r->cgroup_id;
	e->suppressed = meter->suppressed;
	return e;
}

static __always_inline void np_event_add_facts(struct np_event *e, const struct np_facts *f)
{
	e->protocol = f->protocol;
	e->rule = f->rule;
	e->epoch = f->epoch;
	e->addr = f->addr;
	e->port = f->port;
}

/* The calling process: right at the socket layer, where the caller is the sandbox. */
static __always_inline void np_event_add_task(struct np_event *e)
{
	e->pid = bpf_get_current_pid_tgid() >> 32;
	e->uid = (__u32)bpf_get_current_uid_gid();
	bpf_get_current_comm(e->comm, sizeof(e->comm));
}

__noinline int np_report_packet(struct np_sandbox *sandbox, const struct np_refusal *r, const struct np_facts *f)
{
	struct np_event *e = r && f ? np_refusal_open(sandbox, r) : NULL;

	if (!e)
		return 0;
	np_event_add_facts(e, f);
	e->near_port = r->near_port;
	e->ifindex = r->ifindex;
	bpf_ringbuf_submit(e, 0);
	return 0;
}

__noinline int np_report_call(struct np_sandbox *sandbox, const struct np_refusal *r, const struct np_facts *f)
{
	struct np_event *e = r && f ? np_refusal_open(sandbox, r) : NULL;

	if (!e)
		return 0;
	np_event_add_task(e);
	np_event_add_facts(e, f);
	bpf_ringbuf_submit(e, 0);
	return 0;
}

__noinline int np_report_name(struct np_sandbox *sandbox, const struct np_refusal *r, __u64 name, __u32 len)
{
	struct np_event *e = r ? np_refusal_open(sandbox, r) : NULL;

	if (!e)
		return 0;
	np_event_add_task(e);
	if (len > sizeof(e->unix_path))
		len = sizeof(e->unix_path);
	if (!bpf_probe_read_kernel(e->unix_path, len, (const void *)name))
		e->unix_len = len;
	bpf_ringbuf_submit(e, 0);
	return 0;
}
