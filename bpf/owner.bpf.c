/* SPDX-License-Identifier: GPL-2.0-only */
#include "owner.bpf.h"

void *bpf_rdonly_cast(const void *obj, __u32 btf_id) __ksym __weak;

/* The common case with plain loads: only made sandboxes, and a socket made right in one. Its sandbox or 0. */
static __always_inline __u64 np_sandbox_at_once(__u64 sk, __u64 mask)
{
	struct sock *sock = bpf_rdonly_cast((void *)sk, bpf_core_type_id_kernel(struct sock));
	struct cgroup *cg = sock->sk_cgrp_data.cgroup;
	__u64 id;

	if (mask != 2ull << np_slice_depth || !cg || (__u32)cg->level != np_slice_depth + 1)
		return 0;
	id = cg->kn->id;
	return bpf_map_lookup_elem(&np_sandboxes, &id) ? id : 0;
}

__noinline __u64 np_sandbox_of(__u64 sk, struct np_place_of *place)
{
	__u64 mask = np_depths_in_use(), found;
	struct cgroup *cg;
	__u32 mode = 0;
	int level;

	found = np_casts ? np_sandbox_at_once(sk, mask) : 0;
	if (found)
		return found;
	cg = BPF_CORE_READ((const struct sock *)sk, sk_cgrp_data.cgroup);
	if (!cg || !place)
		return 0; /* a kernel socket */
	level = BPF_CORE_READ(cg, level);
	for (int d = 1; d < NP_DEPTH_MAX && d <= level; d++)
		if (mask >> d & 1)
			found = np_stricter(found, np_ancestor_id(cg, d), &mode);
	if (found)
		return found;
	place->own_id = BPF_CORE_READ(cg, kn, id);
	if (np_slice_depth && (__u32)level >= np_slice_depth && np_slice_depth < NP_DEPTH_MAX)
		place->below_slice = np_ancestor_id(cg, np_slice_depth) == np_slice_id;
	return 0;
}
