/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The kernel's own types, only the members that the gate reads. CO-RE relocates
 * them against the running kernel's BTF at load time, so their order, size and
 * neighbours here mean nothing, and one header serves every architecture.
 * User-facing types (struct __sk_buff, struct bpf_sock_addr, ...) come from
 * <linux/bpf.h>.
 */
#ifndef NP_KERNEL_H
#define NP_KERNEL_H

#include <linux/types.h>

#define AF_UNIX	 1
#define AF_INET	 2
#define AF_INET6 10

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct kernfs_node {
	__u64 id;
};

struct cgroup {
	int level;
	struct kernfs_node *kn;
	struct cgroup *ancestors[0]; /* 6.1 and later: 7f203bc89eb6 */
};

struct sock_cgroup_data {
	struct cgroup *cgroup;
};

struct in6_addr {
	union {
		__u8 u6_addr8[16];
		__u32 u6_addr32[4];
	} in6_u;
};

struct hlist_node {
	struct hlist_node *next;
};

struct hlist_head {
	struct hlist_node *first;
};

struct unix_table {
	struct hlist_head *buckets;
};

struct netns_unix {
	struct unix_table table;
};

struct net {
	__u64 net_cookie;
	struct netns_unix unx;
};

typedef struct {
	struct net *net;
} possible_net_t;

struct pid {
	struct hlist_head tasks[4];
};

typedef struct {
	__s64 counter;
} atomic64_t;

typedef struct {
	int counter;
} atomic_t;

typedef struct refcount_struct {
	atomic_t refs;
} refcount_t;

struct sock_common {
	__be32 skc_daddr;
	__be32 skc_rcv_saddr;
	__be16 skc_dport;
	__u16 skc_num;
	unsigned short skc_family;
	volatile unsigned char skc_state;
	unsigned char skc_reuseport : 1;
	unsigned char skc_ipv6only : 1;
	int skc_bound_dev_if;
	struct in6_addr skc_v6_daddr;
	struct in6_addr skc_v6_rcv_saddr;
	struct hlist_node skc_node;
	possible_net_t skc_net;
	atomic64_t skc_cookie;
	refcount_t skc_refcnt;
};

struct sk_buff_head {
	__u32 qlen;
};

struct sock {
	struct sock_common __sk_common;
	struct sk_buff_head sk_receive_queue;
	refcount_t sk_wmem_alloc;
	int sk_sndbuf;
	__u32 sk_max_ack_backlog;
	__u8 sk_userlocks : 4;
	__u8 sk_kern_sock : 1; /* the kernel made it, for itself */
	__u16 sk_type;
	__u16 sk_protocol;
	struct socket *sk_socket; /* NULL: no program has it any more, or none has it yet */
	struct sock_cgroup_data sk_cgrp_data;
	struct pid *sk_peer_pid;
};

struct sk_buff {
	struct sock *sk;
	unsigned int end; /* behind head: all machines of 64 bits count from there */
	unsigned char *head;
};

struct skb_shared_info {
	__u8 flags;
	__u8 nr_frags;
};

struct inet_sock {
	struct sock sk;
};

struct udp_sock {
	struct inet_sock inet;
};

struct tcp_sock {
	__u32 write_seq;
	__u8 repair : 1;
};

struct sockaddr_un {
	char sun_path[108];
};

struct unix_address {
	int len;
	struct sockaddr_un name[0];
};

struct hlist_bl_node {
	struct hlist_bl_node **pprev;
};

struct qstr {
	union {
		struct {
			__u32 hash;
			__u32 len;
		};
	};
	const unsigned char *name;
};

enum dentry_flags {
	DCACHE_MOUNTED =
		0, /* something is mounted there, in whatever namespace. An enum since 6.15: asked for before it is used */
};

struct dentry {
	unsigned int d_flags;
	struct hlist_bl_node d_hash;
	struct dentry *d_parent;
	struct qstr d_name;
};

struct list_head {
	struct list_head *next;
};

struct vfsmount {
	struct dentry *mnt_root;
};

struct mount {
	struct mount *mnt_parent; /* itself: it is mounted nowhere */
	struct dentry *mnt_mountpoint;
	struct vfsmount mnt;
	struct list_head mnt_mounts; /* what is mounted on it, by mnt_child */
	struct list_head mnt_child;
};

struct path {
	struct vfsmount *mnt;
	struct dentry *dentry;
};

struct scm_stat {
	atomic_t nr_fds;
};

struct unix_sock {
	struct sock sk;
	struct unix_address *addr;
	struct path path;
	struct sock *peer;
	struct scm_stat scm_stat;
};

struct sockaddr;

struct bpf_sock_addr_kern {
	struct sock *sk;
	struct sockaddr *uaddr;
	__u32 uaddrlen;
};

struct seq_file;

struct bpf_iter_meta {
	struct seq_file *seq;
};

struct bpf_iter__tcp {
	struct bpf_iter_meta *meta;
	struct sock_common *sk_common;
};

struct bpf_iter__udp {
	struct bpf_iter_meta *meta;
	struct udp_sock *udp_sk;
};

struct css_set {
	struct cgroup *dfl_cgrp; /* in the v2 hierarchy */
};

struct fs_struct {
	struct path root;
	struct path pwd;
};

struct io_uring_task;

struct super_block {
	unsigned long s_magic;
};

struct inode {
	unsigned short i_mode;
	struct super_block *i_sb;
};

struct file {
	struct path f_path;
	struct inode *f_inode;
	void *private_data;
};

struct fdtable {
	unsigned int max_fds;
	struct file **fd;
};

struct files_struct {
	struct fdtable *fdt;
};

struct task_struct {
	int tgid;
	struct task_struct *group_leader;
	struct files_struct *files; /* NULL: it ends */
	struct hlist_node pid_links[4];
	struct io_uring_task *io_uring; /* not where CONFIG_IO_URING is off */
	struct fs_struct *fs;
	struct css_set *cgroups;
};

struct socket {
	struct sock *sk;
};

struct bpf_iter__task {
	struct bpf_iter_meta *meta;
	struct task_struct *task;
};

#pragma clang attribute pop

#endif
