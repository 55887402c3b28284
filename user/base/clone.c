/* SPDX-License-Identifier: MIT */
#include "base/clone.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"

int clone_into_fd(int cgroup, uint64_t flags, int *ret_pidfd, pid_t *ret)
{
	struct clone_args args = {
		.flags = flags | (cgroup >= 0 ? CLONE_INTO_CGROUP : 0) | (ret_pidfd ? CLONE_PIDFD : 0),
		.pidfd = (uint64_t)(uintptr_t)ret_pidfd,
		.exit_signal = SIGCHLD,
		.cgroup = cgroup >= 0 ? (uint64_t)cgroup : 0,
	};
	long pid = syscall(SYS_clone3, &args, sizeof(args));

	if (pid < 0)
		return -errno;
	*ret = (pid_t)pid;
	return 0;
}

int clone_into(const char *cgroup, uint64_t flags, pid_t *ret)
{
	_close_ int dir = cgroup ? open(cgroup, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;

	return cgroup && dir < 0 ? -errno : clone_into_fd(dir, flags, NULL, ret);
}
