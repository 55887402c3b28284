/* SPDX-License-Identifier: MIT */
#include "launch/seccomp.c"

#define main filter_main
#include "filter/main.c"
#undef main

#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <cmocka.h>

#include "../child.h"

/* -- the filter as bytes: what it answers for any architecture, whether or not this kernel has it ----------- */

static void is_what_the_rules_make(void **state)
{
	static char made[sizeof(sandbox_filter) + 1];
	scmp_filter_ctx ctx = seccomp_init(SCMP_ACT_ALLOW);
	_close_ int fd = memfd_create("filter", MFD_CLOEXEC);

	(void)state;
	assert_int_equal(filter_add_all(ctx), 0);
	assert_int_equal(seccomp_export_bpf(ctx, fd), 0);
	seccomp_release(ctx);
	assert_int_equal(pread(fd, made, sizeof(made), 0), sizeof(sandbox_filter));
	assert_memory_equal(made, sandbox_filter, sizeof(sandbox_filter));
}

/* The part of classic BPF that libseccomp writes. */
static uint32_t program_run(const struct seccomp_data *data)
{
	uint32_t a = 0;

	for (size_t pc = 0; pc < ARRAY_SIZE(sandbox_filter); pc++) {
		const struct sock_filter *i = &sandbox_filter[pc];
		bool hit = false;

		switch (i->code) {
		case BPF_LD | BPF_W | BPF_ABS:
			memcpy(&a, (const char *)data + i->k, sizeof(a));
			continue;
		case BPF_ALU | BPF_AND | BPF_K:
			a &= i->k;
			continue;
		case BPF_RET | BPF_K:
			return i->k;
		case BPF_JMP | BPF_JA:
			pc += i->k;
			continue;
		case BPF_JMP | BPF_JEQ | BPF_K:
			hit = a == i->k;
			break;
		case BPF_JMP | BPF_JGT | BPF_K:
			hit = a > i->k;
			break;
		case BPF_JMP | BPF_JGE | BPF_K:
			hit = a >= i->k;
			break;
		case BPF_JMP | BPF_JSET | BPF_K:
			hit = a & i->k;
			break;
		default:
			fail_msg("unknown instruction %x", i->code);
		}
		pc += hit ? i->jt : i->jf;
	}
	fail_msg("the program has no end");
	return 0;
}

#ifdef __x86_64__
#define NATIVE AUDIT_ARCH_X86_64
#else
#define NATIVE AUDIT_ARCH_AARCH64
#endif

/* The errno that a call gets, 0 when it is allowed. */
static int verdict(uint32_t arch, int nr, uint64_t a0, uint64_t a1, uint64_t a2)
{
	const struct seccomp_data data = { .nr = nr, .arch = arch, .args = { a0, a1, a2 } };
	uint32_t action = program_run(&data);

	if (action == SECCOMP_RET_ALLOW)
		return 0;
	assert_int_equal(action & SECCOMP_RET_ACTION_FULL, SECCOMP_RET_ERRNO);
	return (int)(action & SECCOMP_RET_DATA);
}
#define NATIVE_VERDICT(nr, a0, a1, a2) verdict(NATIVE, (nr), (a0), (a1), (a2))

static void families(void **state)
{
	(void)state;
	for (uint64_t family = 0; family < 256; family++) {
		bool allowed = family == AF_UNIX || family == AF_INET || family == AF_INET6 || family == AF_NETLINK;

		assert_int_equal(NATIVE_VERDICT(SYS_socket, family, SOCK_STREAM, 0), allowed ? 0 : EAFNOSUPPORT);
		/* The kernel looks at 32 bits: others must not help a family through. */
		if (!allowed)
			assert_int_equal(NATIVE_VERDICT(SYS_socket, family | 1ull << 32, 1, 0), EAFNOSUPPORT);
		assert_int_equal(NATIVE_VERDICT(SYS_socketpair, family, SOCK_STREAM, 0),
				 family == AF_UNIX ? 0 : EAFNOSUPPORT);
	}
	for (uint64_t protocol = 1; protocol < 32; protocol++) {
		assert_int_equal(NATIVE_VERDICT(SYS_socket, AF_NETLINK, SOCK_RAW, protocol), EAFNOSUPPORT);
		assert_int_equal(NATIVE_VERDICT(SYS_socket, AF_NETLINK | 1ull << 40, SOCK_RAW, protocol), EAFNOSUPPORT);
	}
	assert_int_equal(NATIVE_VERDICT(SYS_socket, (uint64_t)-1, 1, 0), EAFNOSUPPORT);
	assert_int_equal(NATIVE_VERDICT(SYS_socket, AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 17), 0);
}

static void other_architectures(void **state)
{
	static const uint32_t archs[] = { AUDIT_ARCH_I386, AUDIT_ARCH_ARM, AUDIT_ARCH_X86_64, AUDIT_ARCH_AARCH64, 0 };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(archs); i++)
		for (int nr = 0; archs[i] != NATIVE && nr < 500; nr++)
			assert_int_equal(verdict(archs[i], nr, AF_INET, 0, 0), ENOSYS);
#ifdef __x86_64__
	for (int nr = 0; nr < 600; nr++) /* x32: the native architecture with a bit in the number */
		assert_int_equal(verdict(NATIVE, 0x40000000 | nr, AF_INET, 0, 0), ENOSYS);
#endif
}

static void namespaces_and_calls(void **state)
{
	static const uint64_t flags[] = { CLONE_NEWUSER, CLONE_NEWNET, CLONE_NEWNS, CLONE_NEWCGROUP,
					  CLONE_NEWPID,	 CLONE_NEWIPC, CLONE_NEWUTS };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(flags); i++) {
		assert_int_equal(NATIVE_VERDICT(SYS_unshare, flags[i], 0, 0), EPERM);
		assert_int_equal(NATIVE_VERDICT(SYS_unshare, flags[i] | CLONE_FILES, 0, 0), EPERM);
		assert_int_equal(NATIVE_VERDICT(SYS_clone, flags[i] | SIGCHLD, 0, 0), EPERM);
		assert_int_equal(NATIVE_VERDICT(SYS_clone, flags[i] | 0xffull << 32, 0, 0), EPERM);
	}
	assert_int_equal(NATIVE_VERDICT(SYS_unshare, CLONE_NEWTIME, 0, 0), EPERM);
	assert_int_equal(NATIVE_VERDICT(SYS_unshare, CLONE_FILES | CLONE_FS, 0, 0), 0);
	assert_int_equal(NATIVE_VERDICT(SYS_clone, SIGCHLD, 0, 0), 0);
	assert_int_equal(
		NATIVE_VERDICT(SYS_clone, CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD, 0, 0), 0);
	for (size_t i = 0; i < ARRAY_SIZE(calls); i++)
		if (calls[i].nr >= 0)
			assert_int_equal(NATIVE_VERDICT(calls[i].nr, 0, 0, 0), calls[i].error);
	assert_int_equal(NATIVE_VERDICT(SYS_ioctl, 0, TIOCSTI, 0), EPERM);
	assert_int_equal(NATIVE_VERDICT(SYS_ioctl, 0, TIOCSTI | 1ull << 32, 0), EPERM);
	assert_int_equal(NATIVE_VERDICT(SYS_ioctl, 0, TIOCLINUX, 0), EPERM);
	assert_int_equal(NATIVE_VERDICT(SYS_ioctl, 0, TIOCGWINSZ, 0), 0);
	assert_int_equal(NATIVE_VERDICT(SYS_prlimit64, 1, 7, 4096), EPERM);
	assert_int_equal(NATIVE_VERDICT(SYS_prlimit64, 1 | 1ull << 32, 7, 1ull << 32), EPERM);
	assert_int_equal(NATIVE_VERDICT(SYS_prlimit64, 1, 7, 0), 0);
	assert_int_equal(NATIVE_VERDICT(SYS_prlimit64, 0, 7, 4096), 0);
	assert_int_equal(NATIVE_VERDICT(SYS_read, 0, 0, 0), 0);
	assert_int_equal(NATIVE_VERDICT(SYS_ptrace, 0, 0, 0), 0);
}

/* -- the filter in the kernel -------------------------------------------------------------------------------- */

static int nothing(void)
{
	return 0;
}

static void *thread_main(void *data)
{
	return data;
}

static int loaded(void)
{
	pthread_t thread;
	int pair[2];

	CHECK(filter_load() == 0);
	CHECK(socket(AF_VSOCK, SOCK_STREAM, 0) < 0 && errno == EAFNOSUPPORT);
	CHECK(socket(AF_PACKET, SOCK_RAW, 0) < 0 && errno == EAFNOSUPPORT);
	CHECK(socket(AF_ALG, SOCK_SEQPACKET, 0) < 0 && errno == EAFNOSUPPORT);
	CHECK(socket(AF_NETLINK, SOCK_RAW, NETLINK_SOCK_DIAG) < 0 && errno == EAFNOSUPPORT);
	CHECK(socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE) >= 0);
	CHECK(socket(AF_INET, SOCK_STREAM, 0) >= 0);
	CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
	CHECK(syscall(SYS_clone3, NULL, 0) < 0 && errno == ENOSYS);
	CHECK(syscall(SYS_io_uring_setup, 1, NULL) < 0 && errno == ENOSYS);
	CHECK(unshare(CLONE_NEWUSER) < 0 && errno == EPERM);
	CHECK(unshare(CLONE_NEWCGROUP) < 0 && errno == EPERM);
	CHECK(syscall(NR_OPEN_TREE_ATTR, -1, "", 0, NULL, 0) < 0 && errno == EPERM);
	CHECK(child_run(nothing) == 0); /* processes and threads still start */
	CHECK(pthread_create(&thread, NULL, thread_main, NULL) == 0 && pthread_join(thread, NULL) == 0);
	return 0;
}

static void in_the_kernel(void **state)
{
	(void)state;
	assert_int_equal(child_run(loaded), 0);
}

#ifdef __x86_64__
static long int80(long nr, long a, long b, long c)
{
	long ret;

	__asm__ volatile("int $0x80"
			 : "=a"(ret)
			 : "a"(nr), "b"(a), "c"(b), "d"(c)
			 : "memory", "r8", "r9", "r10", "r11");
	return ret;
}

#define I386_GETPID	20
#define I386_SOCKETCALL 102
#define I386_SOCKET	359

static int int80_works(void)
{
	return int80(I386_GETPID, 0, 0, 0) == getpid() ? 0 : 1;
}

static int old_doors(void)
{
	uint32_t *args = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);

	CHECK(args != MAP_FAILED);
	args[0] = AF_INET;
	args[1] = SOCK_DGRAM;
	args[2] = 0;
	/* The control: without the filter both open a socket. */
	CHECK(int80(I386_SOCKETCALL, 1, (long)args, 0) >= 0);
	CHECK(int80(I386_SOCKET, AF_INET, SOCK_DGRAM, 0) >= 0);
	CHECK(filter_load() == 0);
	CHECK(int80(I386_SOCKETCALL, 1, (long)args, 0) == -ENOSYS);
	CHECK(int80(I386_SOCKET, AF_INET, SOCK_DGRAM, 0) == -ENOSYS);
	CHECK(syscall(0x40000000 | SYS_socket, AF_VSOCK, SOCK_STREAM, 0) < 0 && errno == ENOSYS);
	CHECK(syscall(0x40000000 | SYS_getpid) < 0 && errno == ENOSYS);
	return 0;
}
#endif

static void through_old_doors(void **state)
{
	(void)state;
#ifdef __x86_64__
	if (child_run(int80_works) == 0) {
		assert_int_equal(child_run(old_doors), 0);
		return;
	}
#endif
	skip(); /* this kernel runs no 32-bit system calls */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(is_what_the_rules_make), cmocka_unit_test(families),
		cmocka_unit_test(other_architectures),	  cmocka_unit_test(namespaces_and_calls),
		cmocka_unit_test(in_the_kernel),	  cmocka_unit_test(through_old_doors),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
