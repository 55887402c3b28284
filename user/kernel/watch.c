/* SPDX-License-Identifier: MIT */
/* Tells when a sandbox's cgroup becomes populated or empty, or a container's is made in it: one inotify for all of them. */
#include <errno.h>
#include <string.h>
#include <sys/inotify.h>

#include "base/fs.h"
#include "base/hash.h"
#include "kernel/internal.h"

struct watch {
	struct table_node node;
	int wd;
	uint64_t cgroup_id;
};

static uint64_t watch_hash(int wd)
{
	return hash_mark(&wd, sizeof(wd));
}

static struct watch *watch_find(const struct kernel *kernel, int wd)
{
	return TABLE_FIND(&kernel->watches, watch_hash(wd), struct watch, node, it, it->wd == wd);
}

static void watch_drop(struct kernel *kernel, struct watch *w)
{
	table_remove(&kernel->watches, &w->node);
	free(w);
}

/* One look at what there is: an owner of a directory (a user's containers, containers in a container) can make
 * cgroups there faster than they are looked at, and other sandboxes would wait. Changes that came together are
 * reported once, as things are now. */
static void on_inotify(void *data, uint32_t events)
{
	_Alignas(struct inotify_event) char buffer[4096];
	struct kernel *kernel = data;
	ssize_t n = read(kernel->inotify_fd, buffer, sizeof(buffer));
	uint64_t last = 0;

	(void)events;
	for (char *p = buffer; n > 0 && p < buffer + n;) {
		const struct inotify_event *e = (const void *)p;
		struct watch *w = watch_find(kernel, e->wd);
		uint64_t id = w ? w->cgroup_id : 0;

		if (w && (e->mask & IN_IGNORED)) /* the directory is gone */
			watch_drop(kernel, w);
		if (id && id != last)
			kernel->config.on_cgroup(kernel->config.data, id);
		last = id ? id : last;
		p += sizeof(*e) + e->len;
	}
}

int watch_start(struct kernel *kernel)
{
	kernel->inotify_fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	if (kernel->inotify_fd < 0)
		return -errno;
	return loop_watch(kernel->config.loop, kernel->inotify_fd, EPOLLIN, on_inotify, kernel);
}

/* Best effort: without a watch the daemon's periodic sweep finds the same, later. */
static void watch_file(struct kernel *kernel, const struct gate_cgroup *cg, const char *path, uint32_t what)
{
	struct watch *w;
	int wd = inotify_add_watch(kernel->inotify_fd, path, what);

	if (wd < 0)
		return;
	w = watch_find(kernel, wd); /* inotify gives the same descriptor for the same file */
	if (!w) {
		w = table_reserve(&kernel->watches) == 0 ? calloc(1, sizeof(*w)) : NULL;
		if (!w)
			return;
		w->wd = wd;
		table_add(&kernel->watches, &w->node, watch_hash(wd));
	}
	w->cgroup_id = cg->id;
}

void watch_add(struct kernel *kernel, const struct gate_cgroup *cg)
{
	char path[FS_PATH_SIZE];

	if (fs_path(path, "%s/cgroup.events", cg->path) == 0)
		watch_file(kernel, cg, path, IN_MODIFY);
}

void watch_children(struct kernel *kernel, const struct gate_cgroup *cg)
{
	watch_file(kernel, cg, cg->path, IN_CREATE | IN_ONLYDIR);
}

bool watch_way(struct kernel *kernel, const char *path)
{
	struct gate_cgroup above = { 0 };
	bool far = false;
	char *name;

	if (fs_path(above.path, "%s", path) < 0)
		return false;
	while ((name = strrchr(above.path, '/')) && (size_t)(name - above.path) >= strlen(kernel->mount)) {
		*name = '\0';
		if (cgroup_id_of(above.path, &above.id) == 0) {
			watch_children(kernel, &above);
			return far;
		}
		far = true;
	}
	return far;
}

void watch_free(struct kernel *kernel)
{
	struct table_node *n;

	while ((n = table_walk(&kernel->watches, NULL)))
		watch_drop(kernel, container_of(n, struct watch, node));
	table_clear(&kernel->watches);
	cleanup_close(&kernel->inotify_fd);
}
