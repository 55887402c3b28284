/* SPDX-License-Identifier: GPL-2.0-only */
#include "owner.bpf.h"

void *bpf_rdonly_cast(const void *obj, __u32 btf_id) __ksym __weak;

/* Plain loads: there are only made sandboxes, and the socket was made right in a cgroup as deep as they are. */
__noinline __u64 np_sandbox_guess(__u64 sk)
{
	struct sock *sock;
	struct cgroup *cg;

	if (!np_casts)
		return 0;
	sock = bpf_rdonly_cast((void *)sk, bpf_core_type_id_kernel(struct sock));
	cg = sock->sk_cgrp_data.cgroup;
	if (np_depths_in_use() != 2ull << np_slice_depth || !cg || (__u32)cg->level != np_slice_depth + 1)
		return 0;
	return cg->kn->id;
}

__noinline __u64 np_netns_of(__u64 sk)
{
	struct sock_common *skc;

	if (!np_casts)
		return BPF_CORE_READ((struct sock_common *)sk, skc_net.net, net_cookie);
	skc = bpf_rdonly_cast((void *)sk, bpf_core_type_id_kernel(struct sock_common));
	return skc->skc_net.net->net_cookie;
}

__noinline __u64 np_sandbox_of(__u64 sk, struct np_place_of *place)
{
	__u64 mask = np_depths_in_use(), found = 0;
	struct cgroup *cg;
	__u32 mode = 0;
	int level;

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
