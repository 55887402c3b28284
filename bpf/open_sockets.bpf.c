/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the processes of a cgroup hold open, thread by thread: asked before and after a cgroup is adopted. A
 * socket keeps the cgroup it was made in, so one that was made elsewhere would never meet the gate.
 *
 * Tables of descriptors are read where they are, without taking hold of a file, as iter/task_file and /proc/PID/fd do: a file that
 * its program closes meanwhile would stay open until the look is over, and with it the port of a listener, which the program could
 * not bind again. So what is read may be gone, and somebody else's by then: an objection counts when a second look at the
 * descriptor finds the same file, and the same in it.
 *
 * Not every open file is in a table of descriptors. Those on their way to a unix socket are counted by that socket, and
 * whoever holds the socket can take them out of it at any time; so are connections that nobody has accepted yet, with
 * all that was sent over them. Files that were registered with an io_uring are in none of the kernel's structures that we
 * could follow, and the ring itself can be without a descriptor: a task that has used one since its last exec() shows it.
 */
#include "open_sockets.h"
#include "owner.bpf.h"

#define AF_NETLINK	     16
#define NP_TCP_LISTEN	     10
#define NP_SOCKFS_MAGIC	     0x534f434b
#define NP_ANON_INODES_MAGIC 0x09041934
#define NP_OPEN_TRIES	     4 /* after which what was found last counts */

/* True when cg is the cgroup with this id and depth, or lies below it. */
static __always_inline bool np_is_at_or_below(struct cgroup *cg, const struct np_open_query *query)
{
	return cg && (__u32)BPF_CORE_READ(cg, level) >= query->depth &&
	       np_ancestor_id(cg, query->depth) == query->cgroup_id;
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

	if (!np_is_at_or_below(BPF_CORE_READ(peer, sk_cgrp_data.cgroup), query))
		return true;
	if (BPF_CORE_READ(sk, sk_type) == NP_SOCK_DGRAM || !BPF_CORE_READ((struct unix_sock *)peer, addr))
		return false;
	task = np_listener_of(sk);
	return !task || !np_is_at_or_below(BPF_CORE_READ(task, cgroups, dfl_cgrp), query);
}

/* -- what speaks against a file ------------------------------------------------------ */

/* One thread's files. */
struct np_files_look {
	const struct np_open_query *query;
	struct file **files;
	__u32 starting;
	__u32 fd; /* where something was found, and what */
	__u32 objection;
};

static __always_inline enum np_objection np_ip_objection(struct sock *sk, const struct np_open_query *query)
{
	__u16 type = BPF_CORE_READ(sk, sk_type), protocol = BPF_CORE_READ(sk, sk_protocol);

	if (!np_is_at_or_below(BPF_CORE_READ(sk, sk_cgrp_data.cgroup), query))
		return NP_OBJECT_IP_OUTSIDE;
	if (query->netns && np_netns_of((__u64)sk) != query->netns)
		return NP_OBJECT_IP_ELSEWHERE;
	if (type == NP_SOCK_DGRAM && protocol == NP_IPPROTO_UDP)
		return NP_OBJECT_NONE;
	if (type != NP_SOCK_STREAM || protocol != NP_IPPROTO_TCP)
		return NP_OBJECT_IP_OTHER;
	return BPF_CORE_READ_BITFIELD_PROBED((struct tcp_sock *)sk, repair) ? NP_OBJECT_REPAIRED : NP_OBJECT_NONE;
}

/*
 * The gate sees what a unix socket is connected to, and when it sends, only if it was made inside. One that is connected
 * for good (SOCK_STREAM, SOCK_SEQPACKET) and serves as standard input or output is where whoever started the process
 * wanted it; a datagram socket can be sent from and connected anew at any time.
 *
 * With a process that its runtime is about to make a container's first of, the runtime talks over such pairs, made outside, and
 * takes them back. Whatever else it holds, it was handed for its command.
 */
static __always_inline enum np_objection np_unix_objection(struct sock *sk, const struct np_open_query *query, __u32 fd,
							   bool starting)
{
	struct unix_sock *u = (struct unix_sock *)sk;
	struct sock *peer = BPF_CORE_READ(u, peer);
	bool inside = np_is_at_or_below(BPF_CORE_READ(sk, sk_cgrp_data.cgroup), query);

	if (BPF_CORE_READ(u, scm_stat.nr_fds.counter))
		return NP_OBJECT_IN_FLIGHT;
	if (BPF_CORE_READ(sk, __sk_common.skc_state) == NP_TCP_LISTEN && BPF_CORE_READ(sk, sk_receive_queue.qlen))
		return NP_OBJECT_NOT_ACCEPTED;
	if ((fd <= 2 || starting) && peer && BPF_CORE_READ(sk, sk_type) != NP_SOCK_DGRAM)
		return NP_OBJECT_NONE;
	if (!inside)
		return NP_OBJECT_UNIX_OUTSIDE;
	return peer && np_peer_is_outside(sk, peer, query) ? NP_OBJECT_PEER_OUTSIDE : NP_OBJECT_NONE;
}

static __always_inline enum np_objection np_socket_objection(struct file *file, const struct np_open_query *query,
							     __u32 fd, bool starting)
{
	struct socket *socket = BPF_CORE_READ(file, private_data);
	struct sock *sk = BPF_CORE_READ(socket, sk);

	if (!sk) /* opened with O_PATH: it leads nowhere */
		return NP_OBJECT_NONE;
	switch (BPF_CORE_READ(sk, __sk_common.skc_family)) {
	case AF_INET:
	case AF_INET6:
		return np_ip_objection(sk, query);
	case AF_UNIX:
		return np_unix_objection(sk, query, fd, starting);
	case AF_NETLINK:
		return NP_OBJECT_NONE;
	default:
		return NP_OBJECT_FAMILY;
	}
}

static __always_inline bool np_is_ring(struct file *file)
{
	static const char ring[] = "[io_uring]";
	char name[sizeof(ring)] = {};

	bpf_probe_read_kernel_str(name, sizeof(name), BPF_CORE_READ(file, f_path.dentry, d_name.name));
#pragma unroll
	for (unsigned i = 0; i < sizeof(ring); i++)
		if (name[i] != ring[i])
			return false;
	return true;
}

/* address: of a struct file. A function of its own, so that the verifier walks it once. */
__noinline int np_file_objection(__u64 address, __u32 fd, __u32 starting)
{
	struct file *file = (struct file *)address;
	struct np_open_query *query;
	__u32 zero = 0;

	query = bpf_map_lookup_elem(&np_open_query, &zero);
	if (!query)
		return NP_OBJECT_TOO_MANY; /* never */
	switch (BPF_CORE_READ(file, f_inode, i_sb, s_magic)) {
	case NP_SOCKFS_MAGIC:
		return np_socket_objection(file, query, fd, starting);
	case NP_ANON_INODES_MAGIC:
		return np_is_ring(file) ? NP_OBJECT_RING_HELD : NP_OBJECT_NONE;
	default:
		return NP_OBJECT_NONE;
	}
}

/* -- whose files ------------------------------------------------------------------------ */

static __always_inline struct file *np_file_at(const struct np_files_look *look, __u32 fd)
{
	struct file *file = NULL;

	bpf_probe_read_kernel(&file, sizeof(file), look->files + fd);
	return file;
}

static long np_file_look(__u32 fd, void *data)
{
	struct np_files_look *look = data;
	struct file *last = NULL;

	for (int i = 0; i < NP_OPEN_TRIES; i++) {
		struct file *file = np_file_at(look, fd);
		__u32 objection = file ? np_file_objection((__u64)file, fd, look->starting) : NP_OBJECT_NONE;

		if (objection == NP_OBJECT_NONE) {
			look->objection = NP_OBJECT_NONE;
			return 0;
		}
		if (file == last && objection == look->objection)
			break;
		last = file;
		look->fd = fd;
		look->objection = objection;
	}
	return 1;
}

static __always_inline void np_files_walk(struct task_struct *task, struct np_files_look *look)
{
	struct task_struct *leader = BPF_CORE_READ(task, group_leader);
	struct files_struct *files = BPF_CORE_READ(task, files);
	struct fdtable *fdt;
	__u32 room;

	if (!files || (leader != task && BPF_CORE_READ(leader, files) == files)) /* its process shows them */
		return;
	fdt = BPF_CORE_READ(files, fdt);
	look->files = BPF_CORE_READ(fdt, fd);
	room = BPF_CORE_READ(fdt, max_fds);
	if (room > look->query->most || bpf_loop(room, np_file_look, look, 0) < 0) /* it has a bound of its own, too */
		look->objection = NP_OBJECT_TOO_MANY;
}

SEC("iter/task")
int np_open_sockets(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	struct np_files_look look = {};
	struct np_open_socket open = {};
	struct np_open_query *query;
	__u32 zero = 0;

	if (!task)
		return 0;
	query = bpf_map_lookup_elem(&np_open_query, &zero);
	if (!query || !np_is_at_or_below(BPF_CORE_READ(task, cgroups, dfl_cgrp), query))
		return 0;
	open.pid = BPF_CORE_READ(task, tgid);
	if (bpf_core_field_exists(task->io_uring) && BPF_CORE_READ(task, io_uring)) {
		open.objection = NP_OBJECT_RING_USED;
	} else {
		look.query = query;
		look.starting = query->starting == NP_STARTING_ALL || query->starting == open.pid;
		np_files_walk(task, &look);
		open.objection = look.objection;
		open.fd = look.fd;
	}
	if (open.objection)
		bpf_seq_write(ctx->meta->seq, &open, sizeof(open));
	return 0;
}
