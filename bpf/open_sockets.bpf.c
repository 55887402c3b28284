/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the processes of a cgroup hold open, thread by thread: asked before and after a cgroup is adopted. A
 * socket keeps the cgroup it was made in, so one that was made elsewhere would never meet the gate.
 *
 * Not every open file is in a table of descriptors. Those on their way to a unix socket are counted by that socket, and
 * whoever holds the socket can take them out of it at any time; so are connections that nobody has accepted yet, with
 * all that was sent over them. Files that were registered with an io_uring are in none of the kernel's structures that we
 * could follow, and the ring itself can be without a descriptor: a task that has used one since its last exec() shows it.
 */
#include "open_sockets.h"
#include "owner.bpf.h"

#define NP_TCP_LISTEN 10

/* True when cg is the cgroup with this id and depth, or lies below it. */
static __always_inline bool np_is_at_or_below(struct cgroup *cg, __u64 id, __u32 depth)
{
	return cg && (__u32)BPF_CORE_READ(cg, level) >= depth && np_ancestor_id(cg, depth) == id;
}

#define NP_PIDTYPE_TGID 1

/* The process that listened when this socket connected to it; NULL when it is gone. */
static __always_inline struct task_struct *np_listener_of(struct sock *sk)
{
	struct hlist_node *node = BPF_CORE_READ(sk, sk_peer_pid, tasks[NP_PIDTYPE_TGID].first);

	if (!node)
		return NULL;
	return (void *)node - bpf_core_field_offset(struct task_struct, pid_links[NP_PIDTYPE_TGID]);
}

/* The server's end of a connection is made by the client's connect(), in the client's cgroup: only who listened tells
 * where the server is. That end has a name, the listener's. */
static __always_inline bool np_peer_is_outside(struct sock *sk, struct sock *peer, const struct np_open_query *query)
{
	struct task_struct *task;

	if (!np_is_at_or_below(BPF_CORE_READ(peer, sk_cgrp_data.cgroup), query->cgroup_id, query->depth))
		return true;
	if (BPF_CORE_READ(sk, sk_type) == NP_SOCK_DGRAM || !BPF_CORE_READ((struct unix_sock *)peer, addr))
		return false;
	task = np_listener_of(sk);
	return !task || !np_is_at_or_below(BPF_CORE_READ(task, cgroups, dfl_cgrp), query->cgroup_id, query->depth);
}

/* The query, when it is about this task. */
static __always_inline struct np_open_query *np_open_query_of(struct task_struct *task)
{
	__u32 zero = 0;
	struct np_open_query *query = bpf_map_lookup_elem(&np_open_query, &zero);

	if (!query || !np_is_at_or_below(BPF_CORE_READ(task, cgroups, dfl_cgrp), query->cgroup_id, query->depth))
		return NULL;
	return query;
}

static __always_inline void np_open_socket_add_unix(struct np_open_socket *open, struct sock *sk,
						    const struct np_open_query *query)
{
	struct unix_sock *u = (struct unix_sock *)sk;
	struct sock *peer = BPF_CORE_READ(u, peer);

	open->connected = peer != NULL;
	open->peer_outside = peer && np_peer_is_outside(sk, peer, query);
	open->in_flight = BPF_CORE_READ(u, scm_stat.nr_fds.counter);
	if (BPF_CORE_READ(sk, __sk_common.skc_state) == NP_TCP_LISTEN)
		open->not_accepted = BPF_CORE_READ(sk, sk_receive_queue.qlen);
}

SEC("iter/task_file")
int np_open_sockets(struct bpf_iter__task_file *ctx)
{
	struct task_struct *task = ctx->task;
	struct file *file = ctx->file;
	struct np_open_socket open = {};
	struct np_open_query *query;
	struct socket *socket;
	struct sock *sk;

	if (!task || !file)
		return 0;
	query = np_open_query_of(task);
	if (!query)
		return 0;
	socket = bpf_sock_from_file(file);
	if (!socket)
		return 0;
	sk = BPF_CORE_READ(socket, sk);
	if (!sk)
		return 0;
	open.pid = BPF_CORE_READ(task, tgid);
	open.fd = ctx->fd;
	open.family = BPF_CORE_READ(sk, __sk_common.skc_family);
	open.type = BPF_CORE_READ(sk, sk_type);
	open.protocol = BPF_CORE_READ(sk, sk_protocol);
	open.inside = np_is_at_or_below(BPF_CORE_READ(sk, sk_cgrp_data.cgroup), query->cgroup_id, query->depth);
	if (open.family == AF_UNIX)
		np_open_socket_add_unix(&open, sk, query);
	if (open.family == AF_INET || open.family == AF_INET6)
		open.elsewhere = query->netns && np_netns_of((__u64)sk) != query->netns;
	if ((open.family == AF_INET || open.family == AF_INET6) && open.protocol == NP_IPPROTO_TCP)
		open.repaired = BPF_CORE_READ_BITFIELD_PROBED((struct tcp_sock *)sk, repair);
	bpf_seq_write(ctx->meta->seq, &open, sizeof(open));
	return 0;
}

/* Every thread: np_open_sockets visits those with descriptors of their own. */
SEC("iter/task")
int np_open_rings(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	struct np_open_socket open = {};

	if (!task || !np_open_query_of(task) || !bpf_core_field_exists(task->io_uring) ||
	    !BPF_CORE_READ(task, io_uring))
		return 0;
	open.pid = BPF_CORE_READ(task, tgid);
	bpf_seq_write(ctx->meta->seq, &open, sizeof(open));
	return 0;
}
