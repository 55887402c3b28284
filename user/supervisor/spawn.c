/* SPDX-License-Identifier: MIT */
#include "supervisor/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/sockaddr.h"
#include "vocab/limits.h"

#ifndef SO_RCVMARK
#define SO_RCVMARK 75 /* Linux 5.19 */
#endif

int spawn_pair(int ret[2])
{
	const int room = 1 << 20; /* requests are told of in bursts */

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ret) < 0)
		return -errno;
	for (int i = 0; i < 2; i++)
		setsockopt(ret[i], SOL_SOCKET, SO_SNDBUFFORCE, &room, sizeof(room));
	return 0;
}

/* Like fork(), but the child is born in the cgroup: so are the sockets that it makes. */
static int clone_into(const char *cgroup, pid_t *ret)
{
	_close_ int dir = open(cgroup, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct clone_args args = { .flags = CLONE_INTO_CGROUP, .exit_signal = SIGCHLD, .cgroup = (uint64_t)dir };
	long pid;

	if (dir < 0)
		return -errno;
	pid = syscall(SYS_clone3, &args, sizeof(args));
	if (pid < 0)
		return -errno;
	*ret = (pid_t)pid;
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
	r = clone_into(cgroup, ret);
	if (r == 0 && *ret == 0)
		child_exec(argv, fds, n);
	return r;
}

void spawn_end(pid_t pid)
{
	kill(pid, SIGKILL);
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
}

static int socket_make(int family, int type)
{
	struct np_addr loopback = np_addr_v4(htonl(INADDR_LOOPBACK));
	union sockaddr_inet name;
	const int yes = 1, room = NP_DNS_ROOM / 2; /* the kernel doubles it */
	int fd = socket(family, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	if (family == AF_INET6)
		memcpy(&loopback, &in6addr_loopback, sizeof(loopback));
	name = sockaddr_of(&loopback, 0);
	if (family == AF_INET6)
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &yes, sizeof(yes));
	if (fd < 0 || bind(fd, &name.sa, sockaddr_len(&name)) < 0)
		return -1;
	if (type == SOCK_STREAM)
		return listen(fd, 4096) < 0 ? -1 : fd;
	/* The mark tells whose datagram it is: see dns_origin.h. */
	if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof(room)) < 0 ||
	    setsockopt(fd, SOL_SOCKET, SO_RCVMARK, &yes, sizeof(yes)) < 0)
		return -1;
	return fd;
}

#define SOCKETS 4 /* TCP and UDP, of each family */
union fds_control {
	struct cmsghdr header;
	char room[CMSG_SPACE(SOCKETS * sizeof(int))];
};

static void child_make_sockets(int to)
{
	const int fds[SOCKETS] = { socket_make(AF_INET, SOCK_STREAM), socket_make(AF_INET, SOCK_DGRAM),
				   socket_make(AF_INET6, SOCK_STREAM), socket_make(AF_INET6, SOCK_DGRAM) };
	/* a host may have no IPv6 at all */
	size_t bytes = (fds[2] < 0 || fds[3] < 0 ? SOCKETS / 2 : SOCKETS) * sizeof(int);
	union fds_control control = { 0 };
	struct iovec byte = { "", 1 };
	struct msghdr msg = {
		.msg_iov = &byte, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = CMSG_SPACE(bytes)
	};

	control.header =
		(struct cmsghdr){ .cmsg_len = CMSG_LEN(bytes), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS };
	memcpy(CMSG_DATA(&control.header), fds, bytes);
	_exit(fds[0] < 0 || fds[1] < 0 || sendmsg(to, &msg, MSG_NOSIGNAL) < 0);
}

int spawn_sockets(const char *cgroup, struct inspector_sockets *ret)
{
	union fds_control control;
	char byte;
	struct iovec part = { &byte, 1 };
	struct msghdr msg = {
		.msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control)
	};
	_close_ int near = -1, far = -1;
	int pair[2], status, fds[SOCKETS] = { -1, -1, -1, -1 }, r = spawn_pair(pair);
	pid_t pid = -1;

	if (r < 0)
		return r;
	near = pair[0];
	far = pair[1];
	r = clone_into(cgroup, &pid);
	if (r < 0)
		return r;
	if (pid == 0)
		child_make_sockets(far);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (!WIFEXITED(status) || WEXITSTATUS(status))
		return -EADDRNOTAVAIL;
	if (recvmsg(near, &msg, MSG_CMSG_CLOEXEC | MSG_DONTWAIT) < 0)
		return -errno;
	if (msg.msg_flags & MSG_CTRUNC || control.header.cmsg_len < CMSG_LEN(SOCKETS / 2 * sizeof(int)))
		return -EPROTO;
	memcpy(fds, CMSG_DATA(&control.header), control.header.cmsg_len - CMSG_LEN(0));
	*ret = (struct inspector_sockets){ .tcp = { fds[0], fds[2] }, .dns = { fds[1], fds[3] } };
	return 0;
}
