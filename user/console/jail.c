/* SPDX-License-Identifier: MIT */
#include "console/jail.h"

#include <errno.h>
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/call_filter.h"
#include "base/cleanup.h"

static int filter_load(void)
{
	/* clang-format off */
	static const int calls[] = {
		SCMP_SYS(readv), SCMP_SYS(writev), SCMP_SYS(unlink), SCMP_SYS(lstat), SCMP_SYS(newfstatat),
		SCMP_SYS(fstat), SCMP_SYS(accept4), SCMP_SYS(connect), SCMP_SYS(shutdown), SCMP_SYS(setsockopt),
		SCMP_SYS(getsockopt), SCMP_SYS(getsockname), SCMP_SYS(getpeername), SCMP_SYS(fcntl),
		SCMP_SYS(gettimeofday), SCMP_SYS(getrandom), SCMP_SYS(clock_nanosleep), SCMP_SYS(eventfd2),
		SCMP_SYS(pipe2), SCMP_SYS(clone), SCMP_SYS(clone3), SCMP_SYS(set_robust_list), SCMP_SYS(rseq),
		SCMP_SYS(rt_sigtimedwait), SCMP_SYS(prctl), SCMP_SYS(sched_getaffinity),
	};
	/* clang-format on */
	scmp_filter_ctx ctx;
	int r = call_filter_make(calls, ARRAY_SIZE(calls), &ctx);

	/* The daemon's socket, and no other kind. */
	if (r == 0)
		r = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, SCMP_SYS(socket), 1, SCMP_A0(SCMP_CMP_EQ, AF_UNIX));
	return call_filter_load(ctx, r);
}

int jail_enter(void)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = { 0 };
	const struct rlimit no_core = { 0, 0 };

	setrlimit(RLIMIT_CORE, &no_core);
	if (syscall(SYS_capset, &header, none) < 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
	    prctl(PR_SET_DUMPABLE, 0) < 0)
		return -errno;
	return filter_load();
}
