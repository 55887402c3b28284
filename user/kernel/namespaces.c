/* SPDX-License-Identifier: MIT */
/*
 * Sandboxes with a network namespace of their own: how the kernel's sockets are looked at there. Diagnostics and iterators see
 * the namespace that they are opened in, so each has a descriptor for the one, and the daemon goes there for a moment to open
 * the other. Such a namespace has loopback and no other device: nothing of it leaves this host, nobody beyond the host calls
 * there, and what is sent past the IP stack reaches nobody but the sandbox and the inspector, which knows it by its flow. So
 * neither np_device nor np_inbound has anything to do there, and of "this host" it has no address but loopback's.
 *
 * np_namespaces says which namespaces there are, and outlives the daemon. The namespace itself lives by its processes, and by our
 * descriptor: the next daemon finds it again by a process of the sandbox. One that nobody is in is gone by then.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/fs.h"
#include "base/hash.h"
#include "flow.h"
#include "kernel/internal.h"
#include "kernel/sock_diag.h"

struct namespace
{
	struct table_node node;
	struct kernel_netns pub;
	int diag_fd;
};

static uint64_t hash_of(uint64_t cgroup_id)
{
	return hash_mark(&cgroup_id, sizeof(cgroup_id));
}

static struct namespace *namespace_find(const struct kernel *kernel, uint64_t cgroup_id)
{
	for (struct table_node *n = table_first(&kernel->namespaces, hash_of(cgroup_id)); n; n = table_next(n)) {
		struct namespace *ns = container_of(n, struct namespace, node);

		if (ns->pub.cgroup_id == cgroup_id)
			return ns;
	}
	return NULL;
}

const struct kernel_netns *kernel_netns_find(const struct kernel *kernel, uint64_t cgroup_id)
{
	const struct namespace *ns = namespace_find(kernel, cgroup_id);

	return ns ? &ns->pub : NULL;
}

const struct kernel_netns *kernel_netns_next(const struct kernel *kernel, const struct kernel_netns *after)
{
	struct table_node *n =
		table_walk(&kernel->namespaces, after ? &container_of(after, struct namespace, pub)->node : NULL);

	return n ? &container_of(n, struct namespace, node)->pub : NULL;
}

int namespace_diag(const struct kernel *kernel, uint64_t cgroup_id)
{
	const struct namespace *ns = namespace_find(kernel, cgroup_id);

	return ns ? ns->diag_fd : kernel->lists.diag_fd;
}

/* -- what there is -------------------------------------------------------------------------- */

static int namespace_look(void *data)
{
	struct namespace *ns = data;
	int r = netns_cookie(&ns->pub.cookie);

	if (r < 0)
		return r;
	ns->diag_fd = diag_open();
	return ns->diag_fd < 0 ? ns->diag_fd : 0;
}

static void namespace_free(struct namespace *ns)
{
	cleanup_close(&ns->pub.fd);
	cleanup_close(&ns->diag_fd);
	free(ns);
}

int kernel_netns_add(struct kernel *kernel, uint64_t cgroup_id, int fd, const struct kernel_netns **ret)
{
	const struct np_namespace empty = { .cgroup_id = cgroup_id };
	struct namespace *ns = calloc(1, sizeof(*ns));
	struct stat st;
	int r;

	if (!ns) {
		close(fd);
		return -ENOMEM;
	}
	*ns = (struct namespace){ .pub = { .cgroup_id = cgroup_id, .fd = fd }, .diag_fd = -1 };
	r = fstat(fd, &st) < 0 ? -errno : 0;
	ns->pub.inode = st.st_ino;
	if (r == 0)
		r = table_reserve(&kernel->namespaces);
	if (r == 0 && namespace_find(kernel, cgroup_id))
		r = -EEXIST;
	if (r == 0)
		r = netns_call(fd, namespace_look, ns);
	/* Whoever listened there for a predecessor is gone. */
	if (r == 0 &&
	    bpf_map_update_elem(bpf_map__fd(kernel->skel->maps.np_namespaces), &ns->pub.cookie, &empty, BPF_ANY) < 0)
		r = errno == E2BIG ? -ENOSPC : -errno;
	if (r < 0) {
		namespace_free(ns);
		return r;
	}
	table_add(&kernel->namespaces, &ns->node, hash_of(cgroup_id));
	*ret = &ns->pub;
	return 0;
}

void kernel_netns_remove(struct kernel *kernel, uint64_t cgroup_id)
{
	struct namespace *ns = namespace_find(kernel, cgroup_id);

	if (!ns)
		return;
	bpf_map_delete_elem(bpf_map__fd(kernel->skel->maps.np_namespaces), &ns->pub.cookie);
	table_remove(&kernel->namespaces, &ns->node);
	namespace_free(ns);
}

/* -- after a start --------------------------------------------------------------------------- */

struct search {
	uint64_t wanted;
	int fd; /* of the namespace */
};

static int is_wanted(void *data)
{
	const struct search *search = data;
	uint64_t cookie;
	int r = netns_cookie(&cookie);

	return r < 0 ? r : cookie == search->wanted;
}

static int process_look(void *data, pid_t pid)
{
	struct search *search = data;
	char path[FS_PATH_SIZE];
	_close_ int fd = -1;

	if (fs_path(path, "/proc/%d/ns/net", (int)pid) < 0)
		return 0;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || netns_call(fd, is_wanted, search) != 1)
		return 0; /* gone, or somewhere else */
	search->fd = take_fd(fd);
	return 1;
}

/* -ENOENT: nobody is in it any more. */
static int namespace_recover(struct kernel *kernel, uint64_t cookie, uint64_t cgroup_id)
{
	struct search search = { .wanted = cookie, .fd = -1 };
	const struct kernel_netns *ignored;
	struct gate_cgroup cg;
	int r = cgroup_by_id(kernel->mount, cgroup_id, &cg);

	if (r < 0)
		return r;
	r = cgroup_each_process(&cg, process_look, &search);
	return r == 1 ? kernel_netns_add(kernel, cgroup_id, search.fd, &ignored) : -ENOENT;
}

int namespaces_open(struct kernel *kernel)
{
	int map = bpf_map__fd(kernel->skel->maps.np_namespaces);
	_free_ __u64 *cookies = calloc(NP_NAMESPACES_MAX, sizeof(*cookies));
	struct np_namespace value;
	__u64 *last = NULL;
	size_t n = 0;

	if (!cookies)
		return -ENOMEM;
	while (n < NP_NAMESPACES_MAX && bpf_map_get_next_key(map, last, &cookies[n]) == 0)
		last = &cookies[n++];
	for (size_t i = 0; i < n; i++)
		if (bpf_map_lookup_elem(map, &cookies[i], &value) == 0 &&
		    namespace_recover(kernel, cookies[i], value.cgroup_id) < 0)
			bpf_map_delete_elem(map, &cookies[i]);
	return 0;
}

void namespaces_close(struct kernel *kernel)
{
	struct table_node *n;

	while ((n = table_walk(&kernel->namespaces, NULL))) {
		table_remove(&kernel->namespaces, n);
		namespace_free(container_of(n, struct namespace, node));
	}
	table_clear(&kernel->namespaces);
}

/* -- iterators ---------------------------------------------------------------------------------- */

static int iterator_open(void *data)
{
	const int *link = data;
	int fd = bpf_iter_create(*link);

	return fd < 0 ? -errno : fd;
}

int namespace_iterate(const struct kernel_netns *netns, int link)
{
	return netns ? netns_call(netns->fd, iterator_open, &link) : iterator_open(&link);
}
