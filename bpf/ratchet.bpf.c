/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The only writers of np_boxes. The map is frozen, so that user space has to come
 * through here, and here is a maximum and no other way to set a mode.
 */
#include <asm/errno.h>

#include "kernel.h"
#include "maps.bpf.h"

struct cgroup *bpf_cgroup_from_id(__u64 id) __ksym __weak;
void bpf_cgroup_release(struct cgroup *cg) __ksym __weak;

/* Each by itself: the higher level, and reading only if either says so. */
static __always_inline __u32 np_level_join(__u32 a, __u32 b)
{
	__u32 level = (a & 3) > (b & 3) ? a & 3 : b & 3;

	return level | ((a | b) & NP_READS_ONLY);
}

SEC("syscall")
int np_raise(struct np_raise *ctx)
{
	__u64 id = ctx->cgroup_id;
	__u32 zero = 0, depth = ctx->depth;
	struct np_box fresh = {};
	struct np_box *box;
	__u64 *depths;
	long r;

	if (ctx->version != NP_ABI_VERSION)
		return -EPROTO;
	if (ctx->mode < NP_FULL || ctx->mode > NP_NONE || ctx->level > (3 | NP_READS_ONLY) || !id || !depth ||
	    depth >= NP_DEPTH_MAX)
		return -EINVAL;
	depths = bpf_map_lookup_elem(&np_depths, &zero);
	if (!depths)
		return -EIO;
	box = bpf_map_lookup_elem(&np_boxes, &id);
	if (!box) {
		fresh.mode = ctx->mode;
		fresh.level = ctx->level;
		fresh.generation = ctx->generation;
		fresh.raised_ns = bpf_ktime_get_ns();
		fresh.meter.events.tokens = NP_EVENT_BURST * 1000ull;
		fresh.queries.tokens = NP_QUERY_BURST * 1000ull;
		fresh.meter.events.last_ns = fresh.queries.last_ns = fresh.raised_ns;
		__builtin_memcpy(fresh.session, ctx->session, sizeof(fresh.session));
		/* The depth before the entry: an entry that no walk looks for would leave its cgroup NONE. */
		__sync_fetch_and_or(depths, 1ull << depth);
		r = bpf_map_update_elem(&np_boxes, &id, &fresh, BPF_NOEXIST);
		if (r)
			return r;
		box = bpf_map_lookup_elem(&np_boxes, &id);
		if (!box)
			return -EIO;
	}
	if (ctx->mode > box->mode) {
		box->mode = ctx->mode;
		box->raised_ns = bpf_ktime_get_ns();
	}
	box->level = np_level_join(box->level, ctx->level);
	if (ctx->generation > box->generation)
		box->generation = ctx->generation;
	ctx->result_mode = box->mode;
	ctx->result_generation = box->generation;
	ctx->result_level = box->level;
	return 0;
}

/* Forgets a sandbox, but never one whose cgroup is alive: it could be registered anew at a lower mode.
 * (Where the kernel has no bpf_cgroup_from_id for these programs, the daemon alone sees to that.) */
SEC("syscall")
int np_retire(struct np_retire *ctx)
{
	__u64 id = ctx->cgroup_id;
	struct np_share *share;
	struct np_box *box;
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
	box = bpf_map_lookup_elem(&np_boxes, &id);
	share = bpf_map_lookup_elem(&np_share, &zero);
	if (box && share)
		__sync_fetch_and_add(&share->sockets, -(__s64)__sync_lock_test_and_set(&box->sockets, 0));
	return bpf_map_delete_elem(&np_boxes, &id);
}
