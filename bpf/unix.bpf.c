/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The socket layer, AF_UNIX: a sandbox reaches its own unix sockets only. A
 * container engine, a message bus or our own control socket would otherwise do
 * the sandbox's bidding with the host's network.
 *
 * The hook sees the name before the kernel looks it up, so the question is: did this sandbox bind a socket to
 * exactly this name, and is it still there? The answer is in the kernel's own table of unix sockets.
 *
 * - An abstract name is unique together with the socket's type, so both are compared.
 * - The file that our socket is bound to must still be in its directory, and the directories above it, up to
 *   the mount, must still have the names that the path says: otherwise a symbolic link put in the place of a
 *   file or directory of ours would lead to somebody else's socket.
 * - A relative path is a bare name in the caller's working directory, or it is refused.
 *
 * What remains is a race: a rename between this look and the kernel's. The launcher hides the places where
 * hosts keep their sockets.
 */
#include <asm/errno.h>

#include "who.bpf.h"

#define NP_UNIX_PATH_MAX 108
#define NP_SUN_PATH	 2 /* offset of sun_path in struct sockaddr_un */

void *bpf_cast_to_kern_ctx(void *ctx) __ksym __weak;

/* A name, padded with zeros so that names are compared word by word. */
#define NP_NAME_WORDS 14
struct np_unix_name {
	union {
		char path[NP_NAME_WORDS * 8];
		__u64 words[NP_NAME_WORDS];
	};
	__u32 len; /* of the address without its family; a path name counts its NUL, as the kernel does */
};

struct np_unix_search {
	struct np_unix_name name;
	struct hlist_head *buckets;
	__u64 self;
	__u16 type;
	bool found;
};

static __always_inline bool np_unix_is_named(struct sock *sk, const struct np_unix_name *name)
{
	struct unix_address *addr = BPF_CORE_READ((struct unix_sock *)sk, addr);
	struct np_unix_name other = {};
	__u64 differ = 0;
	__u32 len;

	if (!addr)
		return false;
	len = (__u32)BPF_CORE_READ(addr, len) - NP_SUN_PATH;
	if (len != name->len || len > NP_UNIX_PATH_MAX + 1)
		return false;
	if (bpf_probe_read_kernel(other.path, len,
				  (void *)addr + bpf_core_field_offset(struct unix_address, name) + NP_SUN_PATH)) {
		np_error_count(NP_AT_UNIX_READ, 0);
		return false;
	}
#pragma unroll
	for (int i = 0; i < NP_NAME_WORDS; i++)
		differ |= other.words[i] ^ name->words[i];
	return !differ;
}

/* Writes down the path of a bound socket's file, from the file up to the root of its mount or, for a relative
 * name, up to the working directory, which must be the next one. Returns where in `found` it begins, or 0 when it
 * is too long, too deep, elsewhere or not there any more. */
static __always_inline __u32 np_unix_path_write(struct np_paths *paths, __u64 sk, bool relative)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task();
	struct dentry *root = BPF_CORE_READ((struct unix_sock *)sk, path.mnt, mnt_root);
	struct dentry *dentry = BPF_CORE_READ((struct unix_sock *)sk, path.dentry);
	__u32 at = NP_PATH_ROOM;

	if (!dentry || !BPF_CORE_READ(dentry, d_hash.pprev))
		return 0; /* not a path name, or unlinked since */
	for (int depth = 0; depth < 16; depth++) {
		__u32 len = BPF_CORE_READ(dentry, d_name.len);
		struct dentry *parent = BPF_CORE_READ(dentry, d_parent);

		if (dentry == root || dentry == parent)
			return at;
		if (len + 1 >= at)
			return 0;
		at -= len;
		if (bpf_probe_read_kernel(paths->found + (at & (NP_PATH_ROOM - 1)), len & (NP_PATH_ROOM - 1),
					  BPF_CORE_READ(dentry, d_name.name)))
			return 0;
		if (relative)
			return parent == BPF_CORE_READ(task, fs, pwd.dentry) ? at : 0;
		at -= 1;
		paths->found[at & (NP_PATH_ROOM - 1)] = '/';
		dentry = parent;
	}
	return 0;
}

/* Not inlined: the verifier walks it once, not per socket. */
__noinline int np_unix_path_holds(__u64 sk, const struct np_unix_name *name)
{
	__u32 zero = 0, begin, len;
	bool relative;
	struct np_paths *paths = bpf_map_lookup_elem(&np_paths, &zero);

	if (!paths || !name)
		return 0;
	relative = name->path[0] != '/';
	begin = np_unix_path_write(paths, sk, relative);
	len = name->len - 1; /* without the NUL */
	if (!begin || begin == NP_PATH_ROOM || len > NP_UNIX_PATH_MAX || NP_PATH_ROOM - begin > len)
		return 0;
	if (relative && NP_PATH_ROOM - begin != len)
		return 0;
	if (bpf_probe_read_kernel(paths->asked + ((NP_PATH_ROOM - len) & (NP_PATH_ROOM - 1)), len, name->path))
		return 0;
	for (__u32 i = 0; i < NP_PATH_ROOM; i++)
		if (i >= begin && paths->found[i] != paths->asked[i])
			return 0;
	return 1;
}

static __always_inline bool np_unix_is_ours(__u64 sk, const struct np_unix_search *s)
{
	struct np_place_of place = {};

	if (np_sandbox_of(sk, &place) != s->self)
		return false;
	if (!s->name.path[0])
		return BPF_CORE_READ((struct sock *)sk, sk_type) == s->type;
	return np_unix_path_holds(sk, &s->name);
}

static long np_unix_bucket(__u32 index, void *data)
{
	struct np_unix_search *s = data;
	struct hlist_node *node = NULL;

	if (bpf_probe_read_kernel(&node, sizeof(node), s->buckets + index)) {
		np_error_count(NP_AT_UNIX_READ, 0);
		return 1;
	}
	for (int i = 0; i < NP_UNIX_CHAIN_MAX && node; i++) {
		struct sock *sk = (void *)node - bpf_core_field_offset(struct sock, __sk_common.skc_node);

		if (np_unix_is_named(sk, &s->name) && np_unix_is_ours((__u64)sk, s)) {
			s->found = true;
			return 1;
		}
		node = BPF_CORE_READ(node, next);
	}
	return 0;
}

static __always_inline void np_report_unix(const struct np_who *who, const struct np_unix_search *s, enum np_hook hook,
					   enum np_reason reason)
{
	struct np_refusal r = {
		.box = who->box,
		.cgroup_id = who->id,
		.hook = hook,
		.reason = reason,
		.family = AF_UNIX,
	};
	struct np_event *e = np_refusal_open(&r);

	if (!e)
		return;
	np_event_add_task(e);
	e->unix_len = s->name.len < sizeof(e->unix_path) ? s->name.len : sizeof(e->unix_path);
	__builtin_memcpy(e->unix_path, s->name.path, sizeof(e->unix_path));
	bpf_ringbuf_submit(e, 0);
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
	return 0;
}

static __always_inline int np_reach_unix(struct bpf_sock_addr *ctx, enum np_hook hook)
{
	struct bpf_sock_addr_kern *kern = bpf_cast_to_kern_ctx(ctx);
	struct sock *sk = kern->sk;
	struct np_who who = np_who_is(sk);
	struct np_unix_search s = { .self = who.id };
	__u32 len = kern->uaddrlen - NP_SUN_PATH;
	long r;

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
	if (who.box && s.buckets)
		bpf_loop(NP_UNIX_BUCKETS, np_unix_bucket, &s, 0);
	if (s.found)
		return 1;
refuse:
	np_report_unix(&who, &s, hook, who.box ? NP_R_FOREIGN_UNIX : NP_R_UNREGISTERED);
	bpf_set_retval(-ECONNREFUSED);
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
