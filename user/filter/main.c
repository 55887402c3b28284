/* SPDX-License-Identifier: MIT */
/*
 * The rules of the system call filter of sandboxes. This program runs when netpawl is built, and writes the filter that they
 * make as BPF for launch/seccomp.c: to have libseccomp make it at each run would cost more than to load it.
 */
#include <errno.h>
#include <linux/filter.h>
#include <linux/netlink.h>
#include <linux/sched.h>
#include <seccomp.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"

#define LOW32 UINT64_C(0xffffffff)

/* 6.15; libseccomp of Debian 12 has no name for it. Numbers from 424 on are the same everywhere. */
#define NR_OPEN_TREE_ATTR 467

struct filter_call {
	int nr;
	int error;
};

/* Refused whatever the arguments. ENOSYS where callers have an older way to fall back to. */
static const struct filter_call calls[] = {
	/* io_uring opens and connects sockets without ever passing a seccomp filter. */
	{ SCMP_SYS(io_uring_setup), ENOSYS },
	{ SCMP_SYS(io_uring_enter), ENOSYS },
	{ SCMP_SYS(io_uring_register), ENOSYS },
	/* Its flags are in memory, where seccomp cannot look: CLONE_INTO_CGROUP, CLONE_NEW*. */
	{ SCMP_SYS(clone3), ENOSYS },
	/* Other namespaces and mounts: what is hidden stays hidden. */
	{ SCMP_SYS(setns), EPERM },
	{ SCMP_SYS(mount), EPERM },
	{ SCMP_SYS(umount2), EPERM },
	{ SCMP_SYS(pivot_root), EPERM },
	{ SCMP_SYS(chroot), EPERM },
	{ SCMP_SYS(fsopen), EPERM },
	{ SCMP_SYS(fsconfig), EPERM },
	{ SCMP_SYS(fsmount), EPERM },
	{ SCMP_SYS(fspick), EPERM },
	{ SCMP_SYS(open_tree), EPERM },
	{ NR_OPEN_TREE_ATTR, EPERM },
	{ SCMP_SYS(move_mount), EPERM },
	{ SCMP_SYS(mount_setattr), EPERM },
	/* Opens a file of any mount by number, hidden ones included. */
	{ SCMP_SYS(open_by_handle_at), EPERM },
	/* The kernel itself. */
	{ SCMP_SYS(bpf), EPERM },
	{ SCMP_SYS(perf_event_open), EPERM },
	{ SCMP_SYS(userfaultfd), EPERM },
	{ SCMP_SYS(init_module), EPERM },
	{ SCMP_SYS(finit_module), EPERM },
	{ SCMP_SYS(delete_module), EPERM },
	{ SCMP_SYS(kexec_load), EPERM },
	{ SCMP_SYS(kexec_file_load), EPERM },
	/* Key rings are shared with every process of the same uid on the host. */
	{ SCMP_SYS(keyctl), EPERM },
	{ SCMP_SYS(add_key), EPERM },
	{ SCMP_SYS(request_key), EPERM },
	/* Takes a socket out of another process. ptrace and process_vm_* stay: debuggers need them, and
	 * the pid namespace has no outsider in it. */
	{ SCMP_SYS(pidfd_getfd), EPERM },
};

static int filter_add_calls(scmp_filter_ctx ctx)
{
	for (size_t i = 0; i < ARRAY_SIZE(calls); i++) {
		int err = seccomp_rule_add(ctx, SCMP_ACT_ERRNO((uint16_t)calls[i].error), calls[i].nr, 0);

		/* EDOM: the architecture has no such call, which is as good as refusing it. */
		if (err < 0 && err != -EDOM)
			return err;
	}
	return 0;
}

/*
 * Only AF_UNIX, AF_INET, AF_INET6, and AF_NETLINK for NETLINK_ROUTE (getifaddrs, ip address). With a default of "allow" one can
 * only name what is refused: each number in between, and all above. The kernel looks at the low 32 bits of the argument. EQ
 * masks the others out; GT and NE do not, and so refuse too much when they are not zero, never too little.
 */
static int filter_add_sockets(scmp_filter_ctx ctx)
{
	const uint32_t refuse = SCMP_ACT_ERRNO(EAFNOSUPPORT);
	int err;

	for (unsigned family = 0; family < AF_NETLINK; family++) {
		if (family == AF_UNIX || family == AF_INET || family == AF_INET6)
			continue;
		err = seccomp_rule_add(ctx, refuse, SCMP_SYS(socket), 1, SCMP_A0(SCMP_CMP_MASKED_EQ, LOW32, family));
		if (err < 0)
			return err;
	}
	err = seccomp_rule_add(ctx, refuse, SCMP_SYS(socket), 1, SCMP_A0(SCMP_CMP_GT, AF_NETLINK));
	if (err < 0)
		return err;
	err = seccomp_rule_add(ctx, refuse, SCMP_SYS(socket), 2, SCMP_A0(SCMP_CMP_MASKED_EQ, LOW32, AF_NETLINK),
			       SCMP_A2(SCMP_CMP_NE, NETLINK_ROUTE));
	if (err < 0)
		return err;
	return seccomp_rule_add(ctx, refuse, SCMP_SYS(socketpair), 1, SCMP_A0(SCMP_CMP_NE, AF_UNIX));
}

/* No new namespace of any kind: in a user namespace of its own the command would have every capability. */
static int filter_add_namespaces(scmp_filter_ctx ctx)
{
	static const uint64_t flags[] = { CLONE_NEWUSER, CLONE_NEWNET, CLONE_NEWNS, CLONE_NEWCGROUP,
					  CLONE_NEWPID,	 CLONE_NEWIPC, CLONE_NEWUTS };
	const uint32_t refuse = SCMP_ACT_ERRNO(EPERM);
	int err;

	for (size_t i = 0; i < ARRAY_SIZE(flags); i++) {
		err = seccomp_rule_add(ctx, refuse, SCMP_SYS(clone), 1,
				       SCMP_A0(SCMP_CMP_MASKED_EQ, flags[i], flags[i]));
		if (err < 0)
			return err;
		err = seccomp_rule_add(ctx, refuse, SCMP_SYS(unshare), 1,
				       SCMP_A0(SCMP_CMP_MASKED_EQ, flags[i], flags[i]));
		if (err < 0)
			return err;
	}
	/* In clone() this bit belongs to the exit signal. */
	return seccomp_rule_add(ctx, refuse, SCMP_SYS(unshare), 1,
				SCMP_A0(SCMP_CMP_MASKED_EQ, CLONE_NEWTIME, CLONE_NEWTIME));
}

/* Both type into the caller's terminal, which the command shares: what is typed runs outside. */
static int filter_add_ioctls(scmp_filter_ctx ctx)
{
	static const uint64_t requests[] = { TIOCSTI, TIOCLINUX };

	for (size_t i = 0; i < ARRAY_SIZE(requests); i++) {
		int err = seccomp_rule_add(ctx, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(ioctl), 1,
					   SCMP_A1(SCMP_CMP_MASKED_EQ, LOW32, requests[i]));
		if (err < 0)
			return err;
	}
	return 0;
}

/* Process 1 has the command's user: without files or processes of its own it would start no command any more, and what it
 * has is every later command's. What the limits are may be asked. */
static int filter_add_limits(scmp_filter_ctx ctx)
{
	return seccomp_rule_add(ctx, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(prlimit64), 2,
				SCMP_A0(SCMP_CMP_MASKED_EQ, LOW32, 1), SCMP_A2(SCMP_CMP_NE, 0));
}

static int filter_add_all(scmp_filter_ctx ctx)
{
	/* 32-bit and x32 system calls have other numbers: each of them would be a way around the rules. */
	int err = seccomp_attr_set(ctx, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_ERRNO(ENOSYS));

	if (!err)
		err = filter_add_calls(ctx);
	if (!err)
		err = filter_add_sockets(ctx);
	if (!err)
		err = filter_add_namespaces(ctx);
	if (!err)
		err = filter_add_ioctls(ctx);
	if (!err)
		err = filter_add_limits(ctx);
	return err;
}

static int filter_print(int fd)
{
	struct sock_filter i;
	ssize_t n;

	if (lseek(fd, 0, SEEK_SET) < 0)
		return -errno;
	puts("/* Written by user/filter/main.c. */\nstatic const struct sock_filter sandbox_filter[] = {");
	while ((n = read(fd, &i, sizeof(i))) == sizeof(i))
		printf("\t{ 0x%02x, %u, %u, 0x%x },\n", i.code, i.jt, i.jf, i.k);
	puts("};");
	return n == 0 && fflush(stdout) == 0 ? 0 : -EIO;
}

int main(void)
{
	scmp_filter_ctx ctx = seccomp_init(SCMP_ACT_ALLOW);
	_close_ int fd = memfd_create("filter", MFD_CLOEXEC);
	int err = ctx && fd >= 0 ? filter_add_all(ctx) : -ENOMEM;

	if (!err)
		err = seccomp_export_bpf(ctx, fd);
	if (!err)
		err = filter_print(fd);
	seccomp_release(ctx);
	return err ? 1 : 0;
}
