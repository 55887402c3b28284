/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The only writers of np_sandboxes. The map is frozen, so that user space has to come
 * through here, and here is a maximum and no other way to set a mode.
 */
#include <asm/errno.h>

#include "cut.h"
#include "kernel.h"
#include "maps.bpf.h"

struct cgroup *bpf_cgroup_from_id(__u64 id) __ksym __weak;
void bpf_cgroup_release(struct cgroup *cg) __ksym __weak;

struct np_raising {
	struct np_sandbox *sandbox;
	struct np_rung rung; /* what is asked; then what stands */
	__u64 done;
};

static long np_raise_try(__u32 index, void *data)
{
	struct np_raising *raising = data;
	struct np_sandbox *sandbox = raising->sandbox;
	struct np_rung stood = np_rung_of(sandbox), stands = np_rung_join(stood, raising->rung);
	__u64 before, after;

	(void)index;
	__builtin_memcpy(&before, &stood, sizeof(before));
	__builtin_memcpy(&after, &stands, sizeof(after));
	if (__sync_val_compare_and_swap((__u64 *)&sandbox->rung, before, after) != before)
		return 0;
	if (stands.mode > stood.mode)
		sandbox->raised_ns = bpf_ktime_get_ns();
	raising->rung = stands;
	raising->done = true;
	return 1;
}

/* Replaces the rung by the stricter of what stands and what is asked, in one step that loses to nobody else's raise.
 * False: others raised it all the time. */
static __always_inline bool np_rung_raise(struct np_sandbox *sandbox, struct np_rung *rung)
{
	struct np_raising raising = { .sandbox = sandbox, .rung = *rung };

	bpf_loop(16, np_raise_try, &raising, 0);
	*rung = raising.rung;
	return raising.done;
}

/* Whose it is, for people: a cgroup that outlived its sandbox may be adopted by another session. Nothing is judged by it. */
static __always_inline void np_label(struct np_sandbox *sandbox, const struct np_raise *call)
{
	const __u64 *from = (const __u64 *)call->session;
	__u64 *to = (__u64 *)sandbox->session;

#pragma unroll /* a context is read at offsets that are known */
	for (int i = 0; i < NP_LABEL_SIZE / 8; i++)
		if (to[i] != from[i])
			to[i] = from[i];
}

SEC("syscall")
int np_raise(struct np_raise *ctx)
{
	__u64 id = ctx->cgroup_id;
	__u32 zero = 0, depth = ctx->depth;
	struct np_rung rung = ctx->rung;
	struct np_sandbox fresh = {};
	struct np_sandbox *sandbox;
	__u64 *depths;
	long r;

	if (ctx->version != NP_ABI_VERSION)
		return -EPROTO;
	if (!np_rung_is_valid(&rung) || !id || !depth || depth >= NP_DEPTH_MAX)
		return -EINVAL;
	depths = bpf_map_lookup_elem(&np_depths, &zero);
	if (!depths)
		return -EIO;
	sandbox = bpf_map_lookup_elem(&np_sandboxes, &id);
	if (!sandbox) {
		fresh.rung = rung;
		fresh.raised_ns = bpf_ktime_get_ns();
		fresh.meter.events.tokens = NP_EVENT_BURST * 1000ull;
		fresh.queries.tokens = NP_QUERY_BURST * 1000ull;
		fresh.meter.events.last_ns = fresh.queries.last_ns = fresh.raised_ns;
		__builtin_memcpy(fresh.session, ctx->session, sizeof(fresh.session));
		/* The depth before the entry: an entry that no walk looks for would leave its cgroup NONE. */
		__sync_fetch_and_or(depths, 1ull << depth);
		r = bpf_map_update_elem(&np_sandboxes, &id, &fresh, BPF_NOEXIST);
		if (r)
			return r;
		sandbox = bpf_map_lookup_elem(&np_sandboxes, &id);
		if (!sandbox)
			return -EIO;
	} else {
		np_label(sandbox, ctx);
	}
	if (!np_rung_raise(sandbox, &rung))
		return -EAGAIN;
	ctx->rung = rung;
	return 0;
}

static long np_block_forget(__u32 block, void *id)
{
	struct np_socket_key key = { .cgroup_id = *(__u64 *)id, .block = block };

	bpf_map_delete_elem(&np_sockets, &key);
	return 0;
}

/* Forgets a sandbox, but never one whose cgroup is alive: it could be registered anew at a lower mode.
 * (Where the kernel has no bpf_cgroup_from_id for these programs, the daemon alone sees to that.) */
SEC("syscall")
int np_retire(struct np_retire *ctx)
{
	__u64 id = ctx->cgroup_id;
	struct np_share *share;
	struct np_sandbox *sandbox;
	__u32 zero = 0;

	if (ctx->version != NP_ABI_VERSION)
		return -EPROTO;
	if (np_sees_cgroups) {
		struct cgroup *cg = bpf_cgroup_from_id(id);

		if (cg) {
			bpf_cgroup_release(cg);
			return -EBUSY;
		}
	}
	/* Sockets that outlive their sandbox (somebody else holds them) are no longer counted: nobody may see them go. */
	sandbox = bpf_map_lookup_elem(&np_sandboxes, &id);
	share = bpf_map_lookup_elem(&np_share, &zero);
	if (sandbox && share)
		__sync_fetch_and_add(&share->sockets, -(__s64)__sync_lock_test_and_set(&sandbox->sockets, 0));
	if (sandbox)
		bpf_loop((sandbox->slots & ~NP_SLOTS_LOST) / NP_BLOCK_SLOTS, np_block_forget, &id, 0);
	return bpf_map_delete_elem(&np_sandboxes, &id);
}
