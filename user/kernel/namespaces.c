/* SPDX-License-Identifier: MIT */
/*
 * Network namespaces other than the host's that sandboxes live in, and which of them lives where: its home. Diagnostics and
 * iterators see the namespace that they are opened in, so each has a descriptor for the one, and the daemon goes there for a
 * moment to open the other. There are two kinds:
 *
 *   - what `netpawl run` has made without a way out: loopback and no other device. Nothing of it leaves this host, nobody beyond the host calls there,
 *     and what is sent past the IP stack reaches nobody but the sandbox and the inspector, which knows it by its flow. So np_device
 *     has nothing to do there, and of "this host" it has no address but loopback's;
 *   - a container's, or one that was made with a way out (netns/way_out.h): np_device is on its devices, np_host_addrs has its addresses (devices.c), and
 *     its sandboxes are bound to it, so that nobody leaves it for one where nothing of that is. Containers of one pod share it.
 *
 * np_inbound is on the host's namespace alone, since the kernel does not tell it where it is asked: a caller at a container's
 * listener is dropped by np_ingress, and meets silence where the host would say that nobody is there.
 *
 * np_homes and np_namespaces outlive the daemon. The namespace itself lives by its processes, and by our descriptor: the next daemon
 * finds it again by a process of the sandbox. One that nobody is in is gone by then, or of no use to the sandbox.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/fs.h"
#include "base/hash.h"
#include "base/log.h"
#include "flow.h"
#include "kernel/internal.h"
#include "kernel/sock_diag.h"

struct home {
	struct table_node node; /* by the sandbox's cgroup */
	uint64_t cgroup_id;
	struct namespace *ns;
};

static uint64_t hash_of(uint64_t number)
{
	return hash_mark(&number, sizeof(number));
}

static struct home *home_find(const struct kernel *kernel, uint64_t cgroup_id)
{
	for (struct table_node *n = table_first(&kernel->homes, hash_of(cgroup_id)); n; n = table_next(n))
		if (container_of(n, struct home, node)->cgroup_id == cgroup_id)
			return container_of(n, struct home, node);
	return NULL;
}

static struct namespace *namespace_at(const struct kernel *kernel, uint64_t cookie)
{
	for (struct table_node *n = table_first(&kernel->namespaces, hash_of(cookie)); n; n = table_next(n))
		if (container_of(n, struct namespace, node)->pub.cookie == cookie)
			return container_of(n, struct namespace, node);
	return NULL;
}

bool namespace_is_gone(const struct kernel *kernel, uint64_t cookie, const __u64 *but, size_t n_but)
{
	for (size_t i = 0; i < n_but; i++)
		if (but[i] == cookie)
			return false;
	return cookie && cookie != kernel->netns && !namespace_at(kernel, cookie);
}

struct namespace *namespace_next(const struct kernel *kernel, const struct namespace *after)
{
	struct table_node *n = table_walk(&kernel->namespaces, after ? (struct table_node *)&after->node : NULL);

	return n ? container_of(n, struct namespace, node) : NULL;
}

const struct kernel_netns *kernel_netns_find(const struct kernel *kernel, uint64_t cgroup_id)
{
	const struct home *home = home_find(kernel, cgroup_id);

	return home ? &home->ns->pub : NULL;
}

const struct kernel_netns *kernel_netns_next(const struct kernel *kernel, const struct kernel_netns *after)
{
	const struct namespace *ns =
		namespace_next(kernel, after ? container_of(after, const struct namespace, pub) : NULL);

	return ns ? &ns->pub : NULL;
}

int namespace_diag(const struct kernel *kernel, const struct kernel_netns *netns)
{
	return netns ? container_of(netns, const struct namespace, pub)->diag_fd : kernel->lists.diag_fd;
}

uint64_t namespace_cookie(const struct kernel *kernel, uint64_t cgroup_id)
{
	const struct home *home = home_find(kernel, cgroup_id);

	return home ? home->ns->pub.cookie : kernel->netns;
}

/* -- where processes are -------------------------------------------------------------------- */

bool kernel_cgroup_is_there(const struct kernel *kernel, uint64_t cgroup_id)
{
	struct gate_cgroup ignored;

	return cgroup_by_id(kernel->mount, cgroup_id, &ignored) != -ENOENT;
}

static int cookie_read(void *data)
{
	return netns_cookie(data);
}

struct search {
	uint64_t wanted; /* cookie; 0: whatever the first thread has */
	uint64_t cookie;
	ino_t other; /* one that is not wanted: most threads are where the one before is */
	int fd;	     /* of the namespace */
};

static int thread_look(void *data, pid_t thread)
{
	struct search *search = data;
	char path[FS_PATH_SIZE];
	_close_ int fd = -1;
	struct stat st;

	if (fs_path(path, "/proc/%d/ns/net", (int)thread) < 0)
		return 0;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 && (errno == EMFILE || errno == ENFILE || errno == ENOMEM))
		return -errno;
	if (fd < 0 || fstat(fd, &st) < 0 || st.st_ino == search->other ||
	    netns_call(fd, cookie_read, &search->cookie) < 0)
		return 0; /* gone, or somewhere else */
	if (search->wanted && search->cookie != search->wanted) {
		search->other = st.st_ino;
		return 0;
	}
	search->fd = take_fd(fd);
	return 1;
}

static int process_look(void *data, pid_t pid)
{
	return process_each_thread(pid, thread_look, data);
}

int kernel_netns_look(struct kernel *kernel, const struct gate_cgroup *cg, uint64_t *ret_cookie, int *ret_fd)
{
	struct search search = { .fd = -1 };
	struct np_home home;
	_close_ int fd = -1;
	int r;

	/* One that a predecessor knew, and this daemon has not found yet, is nowhere else. */
	if (bpf_map_lookup_elem(bpf_map__fd(kernel->skel->maps.np_homes), &cg->id, &home) == 0)
		search.wanted = home.netns;
	r = cgroup_each_process(cg, process_look, &search);
	fd = search.fd;
	if (r < 0)
		return r;
	*ret_cookie = r == 0 ? 0 : search.cookie;
	*ret_fd = r == 0 || *ret_cookie == kernel->netns ? -1 : take_fd(fd);
	return 0;
}

bool kernel_netns_lost(const struct kernel *kernel, uint64_t cgroup_id)
{
	struct np_home home;

	return !home_find(kernel, cgroup_id) &&
	       bpf_map_lookup_elem(bpf_map__fd(kernel->skel->maps.np_homes), &cgroup_id, &home) == 0;
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
	if (ns->netlink_fd >= 0)
		loop_unwatch(ns->kernel->config.loop, ns->netlink_fd);
	cleanup_close(&ns->netlink_fd);
	cleanup_close(&ns->pub.fd);
	cleanup_close(&ns->diag_fd);
	free(ns);
}

static void namespace_leave(struct namespace *ns)
{
	bpf_map_delete_elem(bpf_map__fd(ns->kernel->skel->maps.np_namespaces), &ns->pub.cookie);
	if (ns->pub.wired)
		devices_leave(ns);
	namespace_free(ns);
}

/* Its maps' entries are there, and (wired) its devices have np_device; or nothing is. Takes fd, also when it fails. */
static int namespace_new(struct kernel *kernel, int fd, bool wired, struct namespace **ret)
{
	const struct np_inspector nobody = { 0 };
	struct namespace *ns = calloc(1, sizeof(*ns)), *known;
	struct stat st;
	int r;

	if (!ns) {
		close(fd);
		return -ENOMEM;
	}
	*ns = (struct namespace){
		.pub.fd = fd, .kernel = kernel, .diag_fd = -1, .netlink_fd = -1, .number = -1, .pub.wired = wired
	};
	r = fstat(fd, &st) < 0 ? -errno : 0;
	ns->pub.inode = st.st_ino;
	if (r == 0)
		r = table_reserve(&kernel->namespaces);
	if (r == 0)
		r = netns_call(fd, namespace_look, ns);
	known = r == 0 ? namespace_at(kernel, ns->pub.cookie) : NULL;
	if (known) {
		namespace_free(ns);
		*ret = known;
		return 0;
	}
	/* Whoever listened there for a predecessor is gone. */
	if (r == 0 &&
	    bpf_map_update_elem(bpf_map__fd(kernel->skel->maps.np_namespaces), &ns->pub.cookie, &nobody, BPF_ANY) < 0)
		r = errno == E2BIG ? -ENOSPC : -errno;
	if (r == 0 && wired)
		r = devices_watch(ns);
	if (r < 0) {
		namespace_leave(ns);
		return r;
	}
	table_add(&kernel->namespaces, &ns->node, hash_of(ns->pub.cookie));
	*ret = ns;
	return 0;
}

static void namespace_drop(struct kernel *kernel, struct namespace *ns)
{
	table_remove(&kernel->namespaces, &ns->node);
	namespace_leave(ns);
}

int kernel_netns_add(struct kernel *kernel, uint64_t cgroup_id, int fd, bool wired, const struct kernel_netns **ret)
{
	struct home *home = NULL;
	struct namespace *ns = NULL;
	struct np_home value = { .bound = wired };
	int r = namespace_new(kernel, fd, wired, &ns);

	if (r < 0)
		return r;
	home = table_reserve(&kernel->homes) == 0 ? calloc(1, sizeof(*home)) : NULL;
	value.netns = ns->pub.cookie;
	if (!home)
		r = -ENOMEM;
	else if (home_find(kernel, cgroup_id))
		r = -EEXIST;
	else if (bpf_map_update_elem(bpf_map__fd(kernel->skel->maps.np_homes), &cgroup_id, &value, BPF_ANY) < 0)
		r = errno == E2BIG ? -ENOSPC : -errno;
	if (r < 0) {
		free(home);
		if (!ns->pub.sandboxes)
			namespace_drop(kernel, ns);
		return r;
	}
	*home = (struct home){ .cgroup_id = cgroup_id, .ns = ns };
	table_add(&kernel->homes, &home->node, hash_of(cgroup_id));
	ns->pub.sandboxes++;
	*ret = &ns->pub;
	return 0;
}

void kernel_netns_remove(struct kernel *kernel, uint64_t cgroup_id)
{
	struct home *home = home_find(kernel, cgroup_id);

	bpf_map_delete_elem(bpf_map__fd(kernel->skel->maps.np_homes), &cgroup_id);
	if (!home)
		return;
	if (--home->ns->pub.sandboxes == 0)
		namespace_drop(kernel, home->ns);
	table_remove(&kernel->homes, &home->node);
	free(home);
}

/* -- after a start --------------------------------------------------------------------------- */

/* Of a sandbox that a predecessor knew. Where nobody is in its namespace any more, its home stays what it was, in the kernel alone:
 * nothing is steered there, and a bound one gets no sockets anywhere else. */
static void home_recover(struct kernel *kernel, uint64_t cgroup_id, const struct np_home *value)
{
	struct search search = { .wanted = value->netns, .fd = -1 };
	struct namespace *ns = namespace_at(kernel, value->netns);
	const struct kernel_netns *ignored;
	struct gate_cgroup cg;
	int r = cgroup_by_id(kernel->mount, cgroup_id, &cg);

	if (home_find(kernel, cgroup_id))
		return;
	if (r == -ENOENT)
		bpf_map_delete_elem(bpf_map__fd(kernel->skel->maps.np_homes), &cgroup_id);
	if (r < 0 && r != -ENOENT)
		log_error("the cgroup %llu of a sandbox with a network of its own: %s", (unsigned long long)cgroup_id,
			  strerror(-r));
	if (r < 0)
		return;
	if (ns)
		search.fd = fcntl(ns->pub.fd, F_DUPFD_CLOEXEC, 0);
	r = ns && search.fd < 0 ? -errno : ns ? 0 : cgroup_each_process(&cg, process_look, &search);
	if (r >= 0 && search.fd >= 0)
		r = kernel_netns_add(kernel, cgroup_id, search.fd, value->bound, &ignored);
	if (r >= 0)
		return;
	kernel->homes_failed++;
	if (!kernel->started)
		log_error("%s: nobody listens in its network namespace or sees its devices, what the inspector must "
			  "see is refused: %s",
			  cg.path, strerror(-r));
}

/* All keys of a map first: entries go on the way. NULL with *ret_n 0: there is none, or no memory. */
static void *map_keys(int map, size_t size, size_t most, size_t *ret_n)
{
	char *keys = calloc(most, size);
	size_t n = 0;

	while (keys && n < most && bpf_map_get_next_key(map, n ? keys + (n - 1) * size : NULL, keys + n * size) == 0)
		n++;
	*ret_n = n;
	return keys;
}

static void namespaces_forget(struct kernel *kernel)
{
	int map = bpf_map__fd(kernel->skel->maps.np_namespaces);
	size_t n;
	_free_ __u64 *cookies = map_keys(map, sizeof(*cookies), NP_NAMESPACES_MAX, &n);

	for (size_t i = 0; i < n; i++)
		if (!namespace_at(kernel, cookies[i]))
			bpf_map_delete_elem(map, &cookies[i]);
}

/* Twice: nobody may be left in one container of a pod, but in another. */
static void homes_recover(struct kernel *kernel, const __u64 *ids, size_t n)
{
	int map = bpf_map__fd(kernel->skel->maps.np_homes);
	struct np_home value;

	for (int look = 0; look < 2; look++) {
		kernel->homes_failed = 0; /* where nobody has one any more, none fails */
		for (size_t i = 0; i < n; i++)
			if (bpf_map_lookup_elem(map, &ids[i], &value) == 0)
				home_recover(kernel, ids[i], &value);
	}
}

unsigned kernel_netns_mend(struct kernel *kernel, bool *ret_tried)
{
	size_t n = 0;
	_free_ __u64 *ids = NULL;

	*ret_tried = kernel->homes_failed;
	if (*ret_tried)
		ids = map_keys(bpf_map__fd(kernel->skel->maps.np_homes), sizeof(*ids), NP_HOMES_MAX, &n);
	if (ids)
		homes_recover(kernel, ids, n);
	return kernel->homes_failed;
}

int namespaces_open(struct kernel *kernel)
{
	int map = bpf_map__fd(kernel->skel->maps.np_homes);
	size_t n, n_lost = 0;
	_free_ __u64 *ids = map_keys(map, sizeof(*ids), NP_HOMES_MAX, &n);
	struct np_home value;

	if (!ids)
		return -ENOMEM;
	homes_recover(kernel, ids, n);
	/* Where nobody was found, a socket may be all the same, and its owner comes back: the devices stay guarded. */
	for (size_t i = 0; i < n; i++)
		if (bpf_map_lookup_elem(map, &ids[i], &value) == 0 && value.bound && !namespace_at(kernel, value.netns))
			ids[n_lost++] = value.netns;
	namespaces_forget(kernel);
	devices_forget_gone(kernel, ids, n_lost);
	addresses_forget_gone(kernel, ids, n_lost);
	return 0;
}

void namespaces_close(struct kernel *kernel)
{
	struct table_node *n;

	while ((n = table_walk(&kernel->homes, NULL))) {
		table_remove(&kernel->homes, n);
		free(container_of(n, struct home, node));
	}
	table_clear(&kernel->homes);
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
