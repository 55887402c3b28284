/* SPDX-License-Identifier: MIT */
#include "supervisor/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clone.h"

int spawn_pair(int ret[2])
{
	const int room = 1 << 20; /* requests are told of in bursts */

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ret) < 0)
		return -errno;
	for (int i = 0; i < 2; i++)
		setsockopt(ret[i], SOL_SOCKET, SO_SNDBUFFORCE, &room, sizeof(room));
	return 0;
}

static void child_exec(const char *const *argv, const int *fds, size_t n)
{
	sigset_t none;
	int null = open("/dev/null", O_RDWR), above[8];

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	/* Out of the way first: the numbers that they get may be taken by others of them. */
	for (size_t i = 0; i < n; i++)
		above[i] = fcntl(fds[i], F_DUPFD_CLOEXEC, 64);
	dup2(null, 0);
	dup2(null, 1);
	for (size_t i = 0; i < n; i++)
		if (above[i] < 0 || dup2(above[i], 3 + (int)i) < 0)
			_exit(127);
	if (close_range(3 + (unsigned)n, ~0u, 0) < 0)
		_exit(127);
	execv(argv[0], (char *const *)argv);
	_exit(127);
}

int spawn_into(const char *cgroup, const char *const *argv, const int *fds, size_t n, pid_t *ret)
{
	int r;

	if (access(argv[0], X_OK) < 0)
		return -errno;
	r = clone_into(cgroup, 0, ret);
	if (r == 0 && *ret == 0)
		child_exec(argv, fds, n);
	return r;
}

/*
 * Commands of the operator's share a user. The process namespace keeps one from naming another in a call; by the host's /proc it would read
 * and write the other's memory and environment all the same, so each sees one of its own. Mounts of the host still arrive.
 */
static int proc_own(void)
{
	if (mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) < 0)
		return -errno;
	return mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) < 0 ? -errno : 0;
}

/* By system calls: the library's would look for our threads, which are not here. */
static void apart_exec(const struct spawn_user *user, const char *const *argv, int stream, int errors)
{
	static const char *const environment[] = { "PATH=/usr/local/bin:/usr/bin:/bin", "LANG=C.UTF-8", "HOME=/",
						   NULL };
	sigset_t none;
	int above = fcntl(stream, F_DUPFD_CLOEXEC, 64), above_errors = fcntl(errors, F_DUPFD_CLOEXEC, 64);

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	signal(SIGPIPE, SIG_DFL);
	if (dup2(above, 0) < 0 || dup2(above, 1) < 0 || dup2(above_errors, 2) < 0 || close_range(3, ~0u, 0) < 0 ||
	    chdir("/") < 0 || setsid() < 0 || proc_own() < 0)
		_exit(127);
	if (syscall(SYS_setgroups, 0, NULL) < 0 || syscall(SYS_setresgid, user->uid, user->uid, user->uid) < 0 ||
	    syscall(SYS_setresuid, user->uid, user->uid, user->uid) < 0)
		_exit(127);
	/* After the change of user, which clears it. */
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		_exit(127);
	execve(argv[0], (char *const *)argv, (char *const *)environment);
	_exit(127);
}

int spawn_apart(const struct spawn_user *user, const char *const *argv, int stream, int errors, pid_t *ret)
{
	int r;

	if (access(argv[0], X_OK) < 0)
		return -errno;
	r = clone_into(NULL, CLONE_NEWPID | CLONE_NEWNS | (user->network ? 0 : CLONE_NEWNET), ret);
	if (r == 0 && *ret == 0)
		apart_exec(user, argv, stream, errors);
	return r;
}

void spawn_end(pid_t pid)
{
	kill(pid, SIGKILL);
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
}
