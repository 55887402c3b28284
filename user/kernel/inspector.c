/* SPDX-License-Identifier: MIT */
/* The inspector as the gate knows it: a cgroup of its own, two listening sockets, and two for DNS queries. */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "base/cgroup_kill.h"
#include "base/fs.h"
#include "base/sockaddr.h"
#include "flow.h"
#include "kernel/internal.h"

#define CLEAR_ROUNDS 10 /* five seconds: whoever is killed has gone by then, unless it hangs in the kernel */

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
	return r < 0 ? r : kernel_inspector_set(kernel, NULL, NULL);
}

/* Who lived there for a predecessor ends with it, unless it took care not to, or is slow: it has connections of sandboxes, and nobody would
 * tell it of a raise. When none is left, neither is a socket of theirs. */
int inspector_clear(struct kernel *kernel)
{
	int r = -EBUSY;

	/* Also where it looks empty: a daemon that died at this has left it frozen. */
	for (unsigned i = 0; r == -EBUSY && i < CLEAR_ROUNDS; i++)
		r = cgroup_empty(kernel->inspector.path);
	return r == 0 && cgroup_populated(&kernel->inspector) ? -EBUSY : r;
}

/* Sockets that were made in one that is gone are none of this one's: whoever has them asks for its number. */
int inspector_check(struct kernel *kernel)
{
	struct gate_cgroup now;
	int r = cgroup_look(kernel->mount, kernel->inspector.path, &now);

	if (r == -ENOENT) {
		char path[FS_PATH_SIZE];

		memcpy(path, kernel->inspector.path, sizeof(path));
		r = cgroup_make(kernel->mount, path, &now);
		if (r == 0)
			mended(kernel, path);
	}
	if (r < 0)
		return r;
	kernel->inspector = now;
	return links_attach(kernel, &kernel->inspector, "inspector", true);
}

uint64_t kernel_inspector_cgroup_id(const struct kernel *kernel)
{
	return kernel->inspector.id;
}

const char *kernel_inspector_cgroup(const struct kernel *kernel)
{
	return kernel->inspector.path;
}

static int listener_describe(int fd, struct np_listener *ret)
{
	union sockaddr_inet name = { 0 };
	struct np_addr addr;
	uint16_t port = 0;
	uint64_t cookie;
	socklen_t len = sizeof(name), cookie_len = sizeof(cookie);

	if (fd < 0)
		return 0;
	if (getsockname(fd, &name.sa, &len) < 0 || getsockopt(fd, SOL_SOCKET, SO_COOKIE, &cookie, &cookie_len) < 0)
		return -errno;
	if (!sockaddr_parts(&name, &addr, &port))
		return -EAFNOSUPPORT;
	ret->port = port;
	ret->cookie = cookie;
	return 0;
}

int kernel_inspector_set(struct kernel *kernel, const struct kernel_netns *netns,
			 const struct inspector_sockets *sockets)
{
	struct np_inspector inspector = { 0 };
	const __u32 zero = 0;
	int r = 0;

	for (int i = 0; sockets && r == 0 && i < 2; i++) {
		r = listener_describe(sockets->tcp[i], &inspector.tcp[i]);
		if (r == 0)
			r = listener_describe(sockets->dns[i], &inspector.dns[i]);
	}
	if (r < 0)
		return r;
	r = netns ? bpf_map_update_elem(bpf_map__fd(kernel->skel->maps.np_namespaces), &netns->cookie, &inspector,
					BPF_EXIST)
		  : bpf_map_update_elem(bpf_map__fd(kernel->skel->maps.np_inspector), &zero, &inspector, BPF_ANY);
	return r < 0 ? -errno : 0;
}

int kernel_dns_origins_fd(const struct kernel *kernel)
{
	return bpf_map__fd(kernel->skel->maps.np_dns_origins);
}
