/* SPDX-License-Identifier: MIT */
/* The system calls of a process that reads what strangers send. Inline, so that only programs that have such a filter need libseccomp. */
#pragma once

#include <errno.h>
#include <seccomp.h>
#include <stddef.h>

#include "base/cleanup.h"

#ifdef __SANITIZE_ADDRESS__
/* The search for leaks at the end needs ptrace(), which no filter gives. */
int __lsan_is_turned_off(void);
__attribute__((weak)) int __lsan_is_turned_off(void)
{
	return 1;
}
#endif

/* These, what everybody needs who waits for bytes on descriptors that are open, and memory that is not executable. All others fail
 * with EPERM rather than death: libraries look for files that are not there in any case. 0, or an error; *ret is for
 * call_filter_load() in either case. */
static inline int call_filter_make(const int *calls, size_t n, scmp_filter_ctx *ret)
{
	/* clang-format off */
	static const int everybodys[] = {
		SCMP_SYS(read), SCMP_SYS(write), SCMP_SYS(recvfrom), SCMP_SYS(sendto), SCMP_SYS(recvmsg), SCMP_SYS(sendmsg),
		SCMP_SYS(close), SCMP_SYS(poll), SCMP_SYS(ppoll), SCMP_SYS(clock_gettime), SCMP_SYS(futex),
		SCMP_SYS(brk), SCMP_SYS(munmap), SCMP_SYS(mremap), SCMP_SYS(madvise),
		SCMP_SYS(exit), SCMP_SYS(exit_group), SCMP_SYS(rt_sigreturn), SCMP_SYS(rt_sigprocmask), SCMP_SYS(rt_sigaction),
		SCMP_SYS(sigaltstack), SCMP_SYS(getpid), SCMP_SYS(gettid), SCMP_SYS(tgkill), SCMP_SYS(restart_syscall),
		SCMP_SYS(sched_yield),
	};
	/* clang-format on */
	int r = (*ret = seccomp_init(SCMP_ACT_ERRNO(EPERM))) ? 0 : -ENOMEM;

	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(everybodys); i++)
		r = seccomp_rule_add(*ret, SCMP_ACT_ALLOW, everybodys[i], 0);
	for (size_t i = 0; r == 0 && i < n; i++)
		r = seccomp_rule_add(*ret, SCMP_ACT_ALLOW, calls[i], 0);
	if (r == 0)
		r = seccomp_rule_add(*ret, SCMP_ACT_ALLOW, SCMP_SYS(mmap), 1, SCMP_A2(SCMP_CMP_MASKED_EQ, 4, 0));
	if (r == 0)
		r = seccomp_rule_add(*ret, SCMP_ACT_ALLOW, SCMP_SYS(mprotect), 1, SCMP_A2(SCMP_CMP_MASKED_EQ, 4, 0));
	return r;
}

/* r: what became of making it; it is loaded when that is 0, and freed. */
static inline int call_filter_load(scmp_filter_ctx filter, int r)
{
	if (r == 0)
		r = seccomp_load(filter);
	if (filter)
		seccomp_release(filter);
	return r;
}
