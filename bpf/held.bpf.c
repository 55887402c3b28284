/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the processes of a cgroup hold open, thread by thread: asked before and after a cgroup is adopted. A
 * socket keeps the cgroup it was made in, so one that was made elsewhere would never meet the gate.
 */
#include "held.h"
#include "who.bpf.h"

/* True when cg is the cgroup with this id and depth, or lies below it. */
static __always_inline bool np_is_at_or_below(struct cgroup *cg, __u64 id, __u32 depth)
{
	return cg && (__u32)BPF_CORE_READ(cg, level) >= depth && np_ancestor_id(cg, depth) == id;
}

SEC("iter/task_file")
int np_held(struct bpf_iter__task_file *ctx)
{
	struct task_struct *task = ctx->task;
	struct file *file = ctx->file;
	struct np_held held = {};
	struct np_held_query *query;
	struct socket *socket;
	struct sock *sk, *peer;
	__u32 zero = 0;

	query = bpf_map_lookup_elem(&np_held_query, &zero);
	if (!task || !file || !query)
		return 0;
	if (!np_is_at_or_below(BPF_CORE_READ(task, cgroups, dfl_cgrp), query->cgroup_id, query->depth))
		return 0;
	socket = bpf_sock_from_file(file);
	if (!socket)
		return 0;
	sk = BPF_CORE_READ(socket, sk);
	if (!sk)
		return 0;
	held.pid = BPF_CORE_READ(task, tgid);
	held.fd = ctx->fd;
	held.family = BPF_CORE_READ(sk, __sk_common.skc_family);
	held.type = BPF_CORE_READ(sk, sk_type);
	held.protocol = BPF_CORE_READ(sk, sk_protocol);
	held.inside = np_is_at_or_below(BPF_CORE_READ(sk, sk_cgrp_data.cgroup), query->cgroup_id, query->depth);
	if (held.family == AF_UNIX) {
		peer = BPF_CORE_READ((struct unix_sock *)sk, peer);
		held.peer_outside = peer && !np_is_at_or_below(BPF_CORE_READ(peer, sk_cgrp_data.cgroup),
							       query->cgroup_id, query->depth);
	}
	bpf_seq_write(ctx->meta->seq, &held, sizeof(held));
	return 0;
}
