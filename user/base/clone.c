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
	_close_ int dir = cgroup ? open(cgroup, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
	struct clone_args args = { .flags = flags, .exit_signal = SIGCHLD };
	long pid;

	if (cgroup && dir < 0)
		return -errno;
	if (cgroup) {
		args.flags |= CLONE_INTO_CGROUP;
		args.cgroup = (uint64_t)dir;
	}
	pid = syscall(SYS_clone3, &args, sizeof(args));
	if (pid < 0)
		return -errno;
	*ret = (pid_t)pid;
	return 0;
}
