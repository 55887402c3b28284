/* SPDX-License-Identifier: MIT */
/* The inspector as the gate knows it: a cgroup of its own, and two listening sockets. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "base/fs.h"
#include "flow.h"
#include "kernel/internal.h"

int inspector_open(struct kernel *kernel)
{
	char path[FS_PATH_SIZE];
	int r = fs_path(path, "%s" INSPECTOR_SUFFIX, kernel->slice.path);

	if (r == 0)
		r = cgroup_make(kernel->mount, path, &kernel->inspector);
	if (r < 0)
		return r;
	r = links_attach(kernel, &kernel->inspector, "inspector", true);
	/* Whoever listened there for a predecessor is gone. */
	return r < 0 ? r : kernel_inspector_set(kernel, -1, -1);
}

const char *kernel_inspector_cgroup(const struct kernel *kernel)
{
	return kernel->inspector.path;
}

static int listener_describe(int fd, uint16_t *ret_port, uint64_t *ret_cookie)
{
	union {
		struct sockaddr sa;
		struct sockaddr_in v4;
		struct sockaddr_in6 v6;
	} name = { 0 };
	socklen_t len = sizeof(name), cookie_len = sizeof(*ret_cookie);

	if (fd < 0)
		return 0;
	if (getsockname(fd, &name.sa, &len) < 0 || getsockopt(fd, SOL_SOCKET, SO_COOKIE, ret_cookie, &cookie_len) < 0)
		return -errno;
	*ret_port = ntohs(name.sa.sa_family == AF_INET ? name.v4.sin_port : name.v6.sin6_port);
	return 0;
}

int kernel_inspector_set(struct kernel *kernel, int listen4, int listen6)
{
	int fd = bpf_map__fd(kernel->skel->maps.np_inspector);
	struct np_inspector inspector = { 0 };
	uint64_t cookie4 = 0, cookie6 = 0;
	const __u32 zero = 0;
	int r = listener_describe(listen4, &inspector.port4, &cookie4);

	if (r == 0)
		r = listener_describe(listen6, &inspector.port6, &cookie6);
	if (r < 0)
		return r;
	inspector.cookie4 = cookie4;
	inspector.cookie6 = cookie6;
	return bpf_map_update_elem(fd, &zero, &inspector, BPF_ANY) < 0 ? -errno : 0;
}
