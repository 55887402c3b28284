/* SPDX-License-Identifier: MIT */
#include "netns/netns.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/nsfs.h>
#include <net/if.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clone.h"
#include "base/log.h"
#include "base/sockaddr.h"
#include "vocab/limits.h"

#ifndef SO_NETNS_COOKIE
#define SO_NETNS_COOKIE 71 /* Linux 5.14 */
#endif
#ifndef SO_RCVMARK
#define SO_RCVMARK 75 /* Linux 5.19 */
#endif

#define SELF "/proc/self/ns/net"

/* -- what the process that makes them does --------------------------------------------- */

enum {
	FD_TCP4,
	FD_DNS4,
	FD_NETNS,
	FD_TCP6,
	FD_DNS6,
	FDS,
};

union fds_control {
	struct cmsghdr header;
	char room[CMSG_SPACE(FDS * sizeof(int))];
};

struct making {
	const char *cgroup;
	int netns;   /* to enter; -1: none */
	bool fresh;  /* it has a new one */
	bool listen; /* sockets are wanted */
};

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
	/* A runtime brings the loopback of a container up when it likes. 127.0.0.1 can be bound before that, and ::1 only so. */
	setsockopt(fd, IPPROTO_IP, IP_FREEBIND, &yes, sizeof(yes));
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

/* Loopback has its addresses when it is up. A second one, 127.0.0.2, is for the resolver of glibc: where 127.0.0.1
 * is the only address it takes the host for one without a network, and does not resolve for callers that ask for
 * IPv4 (AI_ADDRCONFIG). */
static int loopback_up(void)
{
	_close_ int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct ifreq up = { .ifr_name = "lo", .ifr_flags = IFF_UP }, second = { .ifr_name = "lo:2" };
	struct np_addr addr = np_addr_v4(htonl(INADDR_LOOPBACK + 1));
	union sockaddr_inet name = sockaddr_of(&addr, 0);

	memcpy(&second.ifr_addr, &name.sa, sizeof(second.ifr_addr));
	return fd < 0 || ioctl(fd, SIOCSIFFLAGS, &up) < 0 || ioctl(fd, SIOCSIFADDR, &second) < 0 ? -errno : 0;
}

static int fds_send(int to, const int fds[FDS], size_t n)
{
	size_t bytes = n * sizeof(int);
	union fds_control control = { 0 };
	struct iovec byte = { "", 1 };
	struct msghdr msg = {
		.msg_iov = &byte, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = CMSG_SPACE(bytes)
	};

	control.header =
		(struct cmsghdr){ .cmsg_len = CMSG_LEN(bytes), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS };
	memcpy(CMSG_DATA(&control.header), fds, bytes);
	return sendmsg(to, &msg, MSG_NOSIGNAL) < 0 ? -errno : 0;
}

/* Where a socket is not wanted, or a host has no IPv6 at all, its place is that of the namespace once more. */
static _Noreturn void child_make(const struct making *m, int to)
{
	int fds[FDS];

	if ((m->netns >= 0 && setns(m->netns, CLONE_NEWNET) < 0) || (m->fresh && loopback_up() < 0))
		_exit(errno);
	fds[FD_NETNS] = open(SELF, O_RDONLY | O_CLOEXEC);
	fds[FD_TCP4] = m->listen ? socket_make(AF_INET, SOCK_STREAM) : fds[FD_NETNS];
	fds[FD_DNS4] = m->listen ? socket_make(AF_INET, SOCK_DGRAM) : fds[FD_NETNS];
	if (fds[FD_NETNS] < 0 || fds[FD_TCP4] < 0 || fds[FD_DNS4] < 0)
		_exit(errno);
	fds[FD_TCP6] = m->listen ? socket_make(AF_INET6, SOCK_STREAM) : -1;
	fds[FD_DNS6] = m->listen ? socket_make(AF_INET6, SOCK_DGRAM) : -1;
	_exit(-fds_send(to, fds, fds[FD_TCP6] < 0 || fds[FD_DNS6] < 0 ? FD_TCP6 : FDS));
}

/* -- who asks it ---------------------------------------------------------------------------- */

static int fds_receive(int from, int fds[FDS])
{
	union fds_control control;
	char byte;
	struct iovec part = { &byte, 1 };
	struct msghdr msg = {
		.msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control)
	};

	if (recvmsg(from, &msg, MSG_CMSG_CLOEXEC | MSG_DONTWAIT) < 0)
		return -errno;
	if (msg.msg_flags & MSG_CTRUNC || control.header.cmsg_len < CMSG_LEN(FD_TCP6 * sizeof(int)))
		return -EPROTO;
	memcpy(fds, CMSG_DATA(&control.header), control.header.cmsg_len - CMSG_LEN(0));
	return 0;
}

static int sockets_make(const struct making *m, int *ret_netns, struct inspector_sockets *ret)
{
	_close_ int near = -1, far = -1;
	int pair[2], status, fds[FDS] = { -1, -1, -1, -1, -1 }, r;
	pid_t pid = -1;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	near = pair[0];
	far = pair[1];
	r = clone_into(m->cgroup, m->fresh ? CLONE_NEWNET : 0, &pid);
	if (r < 0)
		return r;
	if (pid == 0)
		child_make(m, far);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (!WIFEXITED(status) || WEXITSTATUS(status))
		return WIFEXITED(status) ? -WEXITSTATUS(status) : -EADDRNOTAVAIL;
	r = fds_receive(near, fds);
	if (r < 0)
		return r;
	*ret = (struct inspector_sockets){ .tcp = { fds[FD_TCP4], fds[FD_TCP6] },
					   .dns = { fds[FD_DNS4], fds[FD_DNS6] } };
	if (!m->listen)
		inspector_sockets_close(ret);
	if (ret_netns)
		*ret_netns = fds[FD_NETNS];
	else
		close(fds[FD_NETNS]);
	return 0;
}

int netns_listen_here(const char *cgroup, struct inspector_sockets *ret)
{
	return sockets_make(&(struct making){ .cgroup = cgroup, .netns = -1, .listen = true }, NULL, ret);
}

int netns_listen_in(const char *cgroup, int netns, struct inspector_sockets *ret)
{
	return sockets_make(&(struct making){ .cgroup = cgroup, .netns = netns, .listen = true }, NULL, ret);
}

int netns_new(const char *cgroup, bool listen, int *ret_netns, struct inspector_sockets *ret)
{
	return sockets_make(&(struct making){ .cgroup = cgroup, .netns = -1, .fresh = true, .listen = listen },
			    ret_netns, ret);
}

void inspector_sockets_close(struct inspector_sockets *sockets)
{
	for (size_t i = 0; i < 2; i++) {
		cleanup_close(&sockets->tcp[i]);
		cleanup_close(&sockets->dns[i]);
	}
	*sockets = NO_INSPECTOR_SOCKETS;
}

/* -- looking into one ------------------------------------------------------------------------ */

int netns_inode(int netns, uint64_t *ret)
{
	struct stat st;

	if (fstat(netns, &st) < 0)
		return -errno;
	*ret = st.st_ino;
	return 0;
}

/* O_PATH first: to open what a stranger named, a device or a queue, may do something or wait. */
int netns_open(const char *path, int *ret_fd, uint64_t *ret_inode)
{
	_close_ int named = open(path, O_PATH | O_CLOEXEC), fd = -1;
	char again[64];
	struct statfs fs;
	struct stat own;
	uint64_t inode = 0;
	int r;

	if (named < 0)
		return errno == ENOENT || errno == ENOTDIR || errno == EACCES ? -EINVAL : -errno;
	if (fstatfs(named, &fs) < 0 || stat(SELF, &own) < 0)
		return -errno;
	snprintf(again, sizeof(again), "/proc/self/fd/%d", named);
	if (fs.f_type == NSFS_MAGIC)
		fd = open(again, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || ioctl(fd, NS_GET_NSTYPE) != CLONE_NEWNET)
		return -EINVAL;
	r = netns_inode(fd, &inode);
	if (r < 0)
		return r;
	if (inode == own.st_ino)
		return -EINVAL;
	*ret_fd = take_fd(fd);
	*ret_inode = inode;
	return 0;
}

int netns_cookie(uint64_t *ret)
{
	_close_ int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	socklen_t len = sizeof(*ret);

	return fd < 0 || getsockopt(fd, SOL_SOCKET, SO_NETNS_COOKIE, ret, &len) < 0 ? -errno : 0;
}

int netns_call(int netns, int (*fn)(void *data), void *data)
{
	_close_ int home = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
	int r;

	if (home < 0 || setns(netns, CLONE_NEWNET) < 0)
		return -errno;
	r = fn(data);
	if (setns(home, CLONE_NEWNET) < 0) {
		log_error("there is no way back from a sandbox's network namespace: %s", strerror(errno));
		abort();
	}
	return r;
}
