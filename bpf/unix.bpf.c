/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The socket layer, AF_UNIX: a sandbox reaches its own unix sockets only. A
 * container engine, a message bus or our own control socket would otherwise do
 * the sandbox's bidding with the host's network.
 *
 * The hook sees the name before the kernel looks it up, so the question is: does this name lead to a socket that
 * this sandbox bound, and to nothing else? The answer is in the kernel's own table of unix sockets.
 *
 * - An abstract name is unique together with the socket's type, so both are compared.
 * - A path name is compared with the whole path that a socket of ours has now: from its file up, across mounts, to
 *   the root directory of the caller, or to its working directory when the name is relative. Each step up is one
 *   that the kernel's lookup takes down, and no other, because
 *     - a directory has one entry of a name, so that entry is no symbolic link elsewhere,
 *     - nothing is mounted over a directory on the way but the mount that we came up through,
 *     - the entries are still there, and their file system does not look them up anew (FUSE, NFS).
 *   Whatever is not shown to be so is refused: a name that goes through a symbolic link, through "..", or through
 *   /proc, and a socket that is seen through another mount than it was bound in.
 *
 * After a wait the kernel looks the name up once more, and nobody asks us then: a call that would wait is refused with
 * EAGAIN, see np_unix_would_wait().
 *
 * What remains is a race: a rename between this look and the kernel's. The launcher hides the places where
 * hosts keep their sockets; and where the kernel takes BPF LSM programs, peer.bpf.c judges the socket that was found.
 */
#include <asm/errno.h>

#include "unix.bpf.h"

#define NP_REVALIDATES 4 /* DCACHE_OP_REVALIDATE, the same since 2.6.38 */

#define NP_UNIX_LISTENS 10 /* TCP_LISTEN, for unix sockets as well */

void *bpf_cast_to_kern_ctx(void *ctx) __ksym __weak;

/* A name, padded with zeros so that names are compared word by word; a power of two, so that a mask is a bound. */
#define NP_NAME_ROOM  128
#define NP_NAME_WORDS (NP_NAME_ROOM / 8)
struct np_unix_name {
	union {
		char path[NP_NAME_ROOM];
		__u64 words[NP_NAME_WORDS];
	};
	__u32 len;  /* of the address without its family; a path name counts its NUL, as the kernel does */
	__u32 leaf; /* of a path name: bytes behind the last slash */
};

struct np_unix_search {
	struct np_unix_name name;
	struct hlist_head *buckets;
	__u64 self;
	__u64 found;  /* address of the socket of ours that the name leads to, or 0 */
	__u32 bucket; /* that it is in */
	__u16 type;
	__u16 walks; /* in vain, from sockets of ours whose file has the right name in another place */
};

/* -- abstract names --------------------------------------------------------------- */

__noinline int np_unix_is_named(__u64 sk, const struct np_unix_name *name)
{
	struct unix_address *addr = BPF_CORE_READ((struct unix_sock *)sk, addr);
	struct np_unix_name other = {};
	__u64 differ = 0;
	__u32 len;

	if (!addr || !name)
		return 0;
	len = (__u32)BPF_CORE_READ(addr, len) - NP_SUN_PATH;
	if (len != name->len || len > NP_UNIX_PATH_MAX + 1)
		return 0;
	if (bpf_probe_read_kernel(other.path, len,
				  (void *)addr + bpf_core_field_offset(struct unix_address, name) + NP_SUN_PATH)) {
		np_error_count(NP_AT_UNIX_READ, 0);
		return 0;
	}
#pragma unroll
	for (int i = 0; i < NP_NAME_WORDS; i++)
		differ |= other.words[i] ^ name->words[i];
	return !differ;
}

/* -- path names --------------------------------------------------------------------- */

/* A walk from a socket's file up to where the lookup of its name begins. */
struct np_walk {
	const struct np_unix_name *name;
	struct mount *mount;
	struct dentry *dentry;
	struct mount
		*above; /* came up through it: mounted at `dentry`; NULL: came from an entry of `dentry`, or starts */
	struct vfsmount *from_mnt; /* where the lookup begins */
	struct dentry *from;
	__u32 rest;   /* bytes of the name in front of what is matched */
	bool arrived; /* the whole name is matched, and the walk is where the lookup begins */
	bool covered; /* while looking: something else is mounted there, or there are too many mounts to tell */
	__u64 child;  /* while looking: the next one in the mount's list of mounts on it */
};

static long np_walk_look(__u32 index, void *data)
{
	struct np_walk *w = data;
	struct list_head *head = (void *)w->mount + bpf_core_field_offset(struct mount, mnt_mounts);
	struct mount *mount = (void *)w->child - bpf_core_field_offset(struct mount, mnt_child);

	(void)index;
	if ((__u64)head == w->child || !w->child) {
		w->covered = !w->child;
		return 1;
	}
	if (BPF_CORE_READ(mount, mnt_mountpoint) == w->dentry)
		return 1;
	w->child = (__u64)BPF_CORE_READ(mount, mnt_child.next);
	return 0;
}

/* Is something mounted at the place where the walk is, in this mount? The entry itself tells that nothing is, where we can
 * ask the kernel which flag that is: a host has dozens of mounts, and all of them are looked at otherwise. */
static __always_inline bool np_walk_is_covered(struct np_walk *w)
{
	struct dentry *dentry = w->dentry;
	struct mount *mount = w->mount;

	if (bpf_core_enum_value_exists(enum dentry_flags, DCACHE_MOUNTED) &&
	    !(BPF_CORE_READ(dentry, d_flags) & bpf_core_enum_value(enum dentry_flags, DCACHE_MOUNTED)))
		return false;

	w->covered = true;
	w->child = (__u64)BPF_CORE_READ(mount, mnt_mounts.next);
	bpf_loop(NP_MOUNTS_MAX, np_walk_look, w, 0);
	return w->covered;
}

/* Drops "/" and "/." from the end of what is left of the name: they lead nowhere else. */
static __always_inline __u32 np_walk_trim(const struct np_unix_name *name, __u32 rest)
{
	for (int i = 0; i < 8; i++) {
		char last, before;

		if (!rest || rest > NP_UNIX_PATH_MAX)
			break;
		last = name->path[(rest - 1) & (NP_NAME_ROOM - 1)];
		before = rest > 1 ? name->path[(rest - 2) & (NP_NAME_ROOM - 1)] : '/';
		if (last != '/' && (last != '.' || before != '/'))
			break;
		rest--;
	}
	return rest;
}

/* Is this entry's name, of so many bytes, the last part of what is left of the name? Then it returns how much is left in front of it;
 * -1: it is not. A function of its own, so that the verifier walks it once, and so are those below. */
__noinline int np_walk_match(__u64 entry, __u32 len, const struct np_unix_name *name, __u32 rest)
{
	__u32 begin = rest - len;
	__u64 path;

	if (!name || !len || len > rest || rest > NP_UNIX_PATH_MAX)
		return -1;
	if (begin && name->path[(begin - 1) & (NP_NAME_ROOM - 1)] != '/')
		return -1;
	path = np_sock_address(name) + begin;
#pragma unroll
	for (int i = 0; i < NP_UNIX_PATH_MAX; i += 16) {
		__u64 there[2] = {}, wanted[2] = {};
		__u32 n = len > 16 ? 16 : len;

		if (bpf_probe_read_kernel(there, n, (void *)entry + i) ||
		    bpf_probe_read_kernel(wanted, n, (void *)path + i) || there[0] != wanted[0] ||
		    there[1] != wanted[1])
			return -1;
		if (len <= 16)
			break;
		len -= 16;
	}
	return (int)np_walk_trim(name, begin);
}

/* One step: out of a mount, or out of a directory. 1 ends the walk. */
static long np_walk_step(__u32 index, void *data)
{
	struct np_walk *w = data;
	struct mount *mount = w->mount, *parent;
	struct vfsmount *mnt = (void *)mount + bpf_core_field_offset(struct mount, mnt);
	struct dentry *dentry = w->dentry;
	int rest;

	(void)index;
	if (!w->rest) { /* what is mounted over the beginning does not matter: the lookup starts below it */
		w->arrived = mnt == w->from_mnt && dentry == w->from;
		return 1;
	}
	if (dentry == BPF_CORE_READ(mnt, mnt_root)) {
		parent = BPF_CORE_READ(mount, mnt_parent);
		if (parent == mount) /* the top of this tree of mounts, and the name goes on */
			return 1;
		if (!w->above && np_walk_is_covered(w))
			return 1;
		w->dentry = BPF_CORE_READ(mount, mnt_mountpoint);
		w->above = mount;
		w->mount = parent;
		return 0;
	}
	if (!BPF_CORE_READ(dentry, d_hash.pprev) || BPF_CORE_READ(dentry, d_flags) & NP_REVALIDATES)
		return 1; /* removed since, or not for certain what the file system will find */
	rest = np_walk_match((__u64)BPF_CORE_READ(dentry, d_name.name), BPF_CORE_READ(dentry, d_name.len), w->name,
			     w->rest);
	if (rest < 0)
		return 1;
	w->rest = (__u32)rest;
	if (!w->above && np_walk_is_covered(w))
		return 1;
	w->dentry = BPF_CORE_READ(dentry, d_parent);
	w->above = NULL;
	return 0;
}

/* Does this path name lead to the file of this socket? 1: yes; -1: no, only its last part is right; 0: no. */
__noinline int np_unix_leads_to(__u64 sk, const struct np_unix_name *name)
{
	struct fs_struct *fs = BPF_CORE_READ((struct task_struct *)bpf_get_current_task(), fs);
	struct vfsmount *mnt = BPF_CORE_READ((struct unix_sock *)sk, path.mnt);
	struct np_walk w = { .dentry = BPF_CORE_READ((struct unix_sock *)sk, path.dentry) };

	if (!name || !fs || !mnt || !w.dentry)
		return 0;
	w.name = name;
	w.mount = (void *)mnt - bpf_core_field_offset(struct mount, mnt);
	w.rest = np_walk_trim(name, name->len - 1); /* without the NUL */
	if (name->path[0] == '/') {
		w.from_mnt = BPF_CORE_READ(fs, root.mnt);
		w.from = BPF_CORE_READ(fs, root.dentry);
	} else {
		w.from_mnt = BPF_CORE_READ(fs, pwd.mnt);
		w.from = BPF_CORE_READ(fs, pwd.dentry);
	}
	bpf_loop(NP_PATH_DEPTH_MAX, np_walk_step, &w, 0);
	if (w.arrived)
		return 1;
	return w.rest == name->len - 1 ? 0 : -1;
}

/* -- the search ----------------------------------------------------------------------- */

static __always_inline bool np_unix_is_it(struct sock *sk, struct np_unix_search *s)
{
	int leads;

	/* The server's end of a connection has the name of the listener and the cgroup of the client: it makes nobody
	 * the owner of that name. */
	if (BPF_CORE_READ(sk, sk_type) != NP_SOCK_DGRAM && BPF_CORE_READ(sk, __sk_common.skc_state) != NP_UNIX_LISTENS)
		return false;
	if (!s->name.path[0])
		return BPF_CORE_READ(sk, sk_type) == s->type && np_unix_is_named((__u64)sk, &s->name) &&
		       np_sandbox_is((__u64)sk, s->self);
	if (BPF_CORE_READ((struct unix_sock *)sk, path.dentry, d_name.len) != s->name.leaf)
		return false;
	if (!np_sandbox_is((__u64)sk, s->self) || s->walks >= NP_UNIX_WALKS_MAX)
		return false;
	leads = np_unix_leads_to((__u64)sk, &s->name);
	if (leads < 0)
		s->walks++;
	return leads > 0;
}

/* Notes the socket if the name leads to it. */
__noinline int np_unix_try(__u64 sk, struct np_unix_search *s)
{
	if (!s || !np_unix_is_it((void *)sk, s))
		return 0;
	s->found = sk;
	return 1;
}

/* 1 ends the search. */
__noinline int np_unix_look(__u32 bucket, struct np_unix_search *s)
{
	struct hlist_node *node = NULL;

	if (!s)
		return 1;
	if (bpf_probe_read_kernel(&node, sizeof(node), s->buckets + bucket)) {
		np_error_count(NP_AT_UNIX_READ, 0);
		return 1;
	}
	for (int i = 0; i < NP_UNIX_CHAIN_MAX && node; i++) {
		struct sock *sk = (void *)node - bpf_core_field_offset(struct sock, __sk_common.skc_node);

		if (np_unix_try((__u64)sk, s)) {
			s->bucket = bucket;
			return 1;
		}
		node = BPF_CORE_READ(node, next);
	}
	return 0;
}

static long np_unix_bucket(__u32 index, void *data)
{
	return np_unix_look(index, data) != 0;
}

/* Where in np_unix_hints the bucket is noted in which the socket of this name was found the last time. */
static __always_inline __u32 np_unix_hint_at(const struct np_unix_search *s)
{
	__u64 x = s->self ^ s->type;

#pragma unroll
	for (int i = 0; i < NP_NAME_WORDS; i++)
		x = (x ^ s->name.words[i]) * 0x9e3779b97f4a7c15ull;
	return (__u32)(x >> 32) % NP_UNIX_HINTS;
}

/* A program calls the same few sockets again and again, so the search begins in the bucket where this name was found the
 * last time. It asks there what it asks anywhere, and goes on through the whole table when the answer is no: a hint that
 * is old, of another name, or of another sandbox costs time and decides nothing. The kernel's own hash would do for abstract
 * names only: that of a path is the number of an inode, which nobody knows before the path is looked up. */
static __always_inline void np_unix_search_run(struct np_unix_search *s)
{
	__u32 at = np_unix_hint_at(s);
	__u32 *hint = bpf_map_lookup_elem(&np_unix_hints, &at);

	if (!s->buckets || !hint)
		return;
	np_unix_look(*(volatile __u32 *)hint % NP_UNIX_BUCKETS, s);
	if (s->found)
		return;
	bpf_loop(NP_UNIX_BUCKETS, np_unix_bucket, s, 0);
	if (s->found)
		*(volatile __u32 *)hint = s->bucket;
}

/* How many bytes are behind the last slash of a path name. A function of its own, and from the end: the verifier walks it once, and
 * each of its rounds once. */
__noinline int np_unix_leaf(const struct np_unix_name *name)
{
	__u32 leaf = 0, len;

	if (!name)
		return 0;
	len = name->len;
	for (; leaf < NP_UNIX_PATH_MAX && leaf + 1 < len; leaf++)
		if (name->path[(len - 2 - leaf) & (NP_NAME_ROOM - 1)] == '/')
			break;
	return leaf;
}

/* Reads the name that the program asked for. 0, or the helper's error. */
static __always_inline long np_unix_name_read(struct np_unix_name *name, const void *path, __u32 len)
{
	long r;

	if (bpf_probe_read_kernel(name->path, 1, path))
		return -EFAULT;
	if (!name->path[0]) { /* abstract: every byte counts, NULs included */
		name->len = len;
		return bpf_probe_read_kernel(name->path, len, path);
	}
	r = bpf_probe_read_kernel_str(name->path, len + 1, path); /* a path name ends at its NUL or at len */
	if (r < 0)
		return r;
	name->len = r;
	name->leaf = np_unix_leaf(name);
	return 0;
}

/* unix_recvq_full() of the kernel. */
static __always_inline bool np_unix_is_full(struct sock *sk)
{
	return BPF_CORE_READ(sk, sk_receive_queue.qlen) > BPF_CORE_READ(sk, sk_max_ack_backlog);
}

/* Would the kernel wait before or after it has looked up the name, and look it up once more? unix_stream_connect()
 * waits for room in the listener's backlog and starts again. unix_dgram_sendmsg() waits for room in the sender's
 * buffer before it looks, and for room in the receiver's queue, after which it looks again if the receiver has been
 * closed meanwhile. A sandbox can make each of these waits as long as it likes, with a rename in it. unix_dgram_connect()
 * never waits. Should another call take the last room between this look and the kernel's, it was a race like a rename
 * in the same moment: counting the calls on their way would gain nothing. */
__noinline int np_unix_would_wait(__u64 caller, __u64 found, int sends)
{
	struct sock *self = (void *)caller, *other = (void *)found;

	if (!sends)
		return BPF_CORE_READ(self, sk_type) != NP_SOCK_DGRAM && np_unix_is_full(other);
	if (BPF_CORE_READ(self, sk_wmem_alloc.refs.counter) - 1 >= BPF_CORE_READ(self, sk_sndbuf))
		return true;
	return other != self && BPF_CORE_READ((struct unix_sock *)other, peer) != self && np_unix_is_full(other);
}

static __always_inline int np_reach_unix(struct bpf_sock_addr *ctx, enum np_hook hook)
{
	struct bpf_sock_addr_kern *kern = bpf_cast_to_kern_ctx(ctx);
	struct sock *sk = kern->sk;
	struct np_owner owner = np_owner_of(sk);
	struct np_unix_search s = { .self = owner.id };
	__u32 len = kern->uaddrlen - NP_SUN_PATH;
	long r;

	if (np_judges_peers)
		return np_allow();
	/* Unnamed (AF_UNSPEC disconnects), or too long: the kernel refuses it by itself. The barriers keep the compiler
	 * from checking len - 1 in one register and using len in another: 6.12's verifier then sees no bound. */
	if (!len)
		return 1;
	barrier_var(len);
	if (len > NP_UNIX_PATH_MAX)
		return 1;
	barrier_var(len);
	r = np_unix_name_read(&s.name, (void *)kern->uaddr + NP_SUN_PATH, len);
	if (r < 0) {
		np_error_count(NP_AT_UNIX_READ, r);
		goto refuse;
	}
	s.type = BPF_CORE_READ(sk, sk_type);
	s.buckets = BPF_CORE_READ(sk, __sk_common.skc_net.net, unx.table.buckets);
	if (owner.sandbox)
		np_unix_search_run(&s);
	if (s.found && !np_unix_would_wait(np_sock_address(sk), s.found, hook == NP_HOOK_UNIX_SEND))
		return 1;
refuse:
	np_report_unix(&owner, s.found ? NP_R_UNIX_WOULD_WAIT : NP_R_FOREIGN_UNIX, np_sock_address(s.name.path),
		       s.name.len, hook);
	bpf_set_retval(s.found ? -EAGAIN : -ECONNREFUSED);
	return 0;
}

/* Attach types BPF_CGROUP_UNIX_CONNECT and BPF_CGROUP_UNIX_SENDMSG are set by the loader: the section name
 * here only gives the program type, because the libbpf we build with has no name for them. */
SEC("cgroup/connect4")
int np_unix_connect(struct bpf_sock_addr *ctx)
{
	return np_reach_unix(ctx, NP_HOOK_UNIX_CONNECT);
}

SEC("cgroup/connect4")
int np_unix_send(struct bpf_sock_addr *ctx)
{
	return np_reach_unix(ctx, NP_HOOK_UNIX_SEND);
}
