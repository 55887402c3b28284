/* SPDX-License-Identifier: MIT */
#include "launch/seccomp.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "sandbox_filter.h"

int filter_load(void)
{
	const struct sock_fprog program = {
		.len = ARRAY_SIZE(sandbox_filter),
		.filter = (struct sock_filter *)sandbox_filter, /* the kernel only reads it */
	};

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
	    syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) < 0)
		return -errno;
	return 0;
}
