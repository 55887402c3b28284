/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * AF_UNIX where the kernel takes BPF LSM programs: these run when the kernel has found the other socket, so there is no
 * name to be doubted and nothing to race with. A sandbox reaches sockets of its own, by whatever name.
 *
 * LSM programs see the whole host. Whoever is no sandbox passes after one look at his socket's cgroup. Every stream
 * and seqpacket connection passes unix_stream_connect; every datagram, connected or not, and the connection of a
 * datagram socket pass unix_may_send. A socketpair needs neither: both ends are of one maker.
 */
#include <asm/errno.h>

#include "unix.bpf.h"

static __always_inline int np_judge_peer(__u64 sk, __u64 other, enum np_hook hook)
{
	struct unix_address *addr;
	struct np_owner owner = np_owner_at(sk);
	__u32 len;

	if (!owner.inside)
		return 0;
	if (owner.sandbox && np_sandbox_is(other, owner.id))
		return 0;
	addr = BPF_CORE_READ((struct unix_sock *)other, addr);
	len = addr ? (__u32)BPF_CORE_READ(addr, len) - NP_SUN_PATH : 0;
	np_report_unix(&owner, NP_R_FOREIGN_UNIX,
		       (__u64)addr + bpf_core_field_offset(struct unix_address, name) + NP_SUN_PATH, len, hook);
	return -ECONNREFUSED;
}

/* struct sock *sock, struct sock *other, struct sock *newsk */
SEC("lsm/unix_stream_connect")
int np_lsm_connect(unsigned long long *ctx)
{
	return np_judge_peer(np_sock_address((void *)ctx[0]), np_sock_address((void *)ctx[1]), NP_HOOK_UNIX_CONNECT);
}

/* struct socket *sock, struct socket *other */
SEC("lsm/unix_may_send")
int np_lsm_send(unsigned long long *ctx)
{
	struct socket *sock = (void *)np_sock_address((void *)ctx[0]), *other = (void *)np_sock_address((void *)ctx[1]);

	return np_judge_peer((__u64)BPF_CORE_READ(sock, sk), (__u64)BPF_CORE_READ(other, sk), NP_HOOK_UNIX_SEND);
}
