/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The socket layer, AF_UNIX: a sandbox reaches its own unix sockets only. A
 * container engine, a message bus or our own control socket would otherwise do
 * the sandbox's bidding with the host's network.
 *
 * The hook sees the name, before the kernel looks it up, so the question is:
 * did this sandbox bind a socket to exactly this name? The answer is in the
 * kernel's own table of unix sockets. A path is compared as it was written; a
 * symbolic link that leads from an own name to a foreign socket is the launcher's
 * business (it hides the host's sockets) and, where BPF LSM programs load,
 * lsm.bpf.c's, which sees the peer itself.
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
	bool found;
};

/* The sandbox that a socket belongs to, 0 for none. Not inlined: the verifier walks it once, not per socket. */
__noinline __u64 np_unix_owner(__u64 sk)
{
	struct np_who who = np_who_is((void *)sk);

	return who.box ? who.id : 0;
}

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

		if (np_unix_is_named(sk, &s->name) && np_unix_owner((__u64)sk) == s->self) {
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

	if (len - 1 >= NP_UNIX_PATH_MAX)
		return 1; /* unnamed (AF_UNSPEC disconnects), or too long: the kernel refuses it by itself */
	r = np_unix_name_read(&s.name, (void *)kern->uaddr + NP_SUN_PATH, len);
	if (r < 0) {
		np_error_count(NP_AT_UNIX_READ, r);
		goto refuse;
	}
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
