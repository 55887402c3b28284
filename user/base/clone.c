/* SPDX-License-Identifier: MIT */
#include "base/clone.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"

int clone_into(const char *cgroup, uint64_t flags, pid_t *ret)
{
	_close_ int dir = open(cgroup, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct clone_args args = { .flags = CLONE_INTO_CGROUP | flags,
				   .exit_signal = SIGCHLD,
				   .cgroup = (uint64_t)dir };
	long pid;

	if (dir < 0)
		return -errno;
	pid = syscall(SYS_clone3, &args, sizeof(args));
	if (pid < 0)
		return -errno;
	*ret = (pid_t)pid;
	return 0;
}
