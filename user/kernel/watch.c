/* SPDX-License-Identifier: MIT */
/* Tells when a sandbox's cgroup becomes populated or empty: one inotify for all of them. */
#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/inotify.h>

#include "base/fs.h"
#include "kernel/internal.h"

struct watch {
	struct watch *next;
	int wd;
	uint64_t cgroup_id;
};

/* inotify gives the same descriptor for the same file, so adding twice is finding once. */
static struct watch **watch_find(struct kernel *kernel, int wd)
{
	struct watch **p = &kernel->watches[(unsigned)wd % WATCH_BUCKETS];

	while (*p && (*p)->wd != wd)
		p = &(*p)->next;
	return p;
}

static void on_inotify(void *data, uint32_t events)
{
	_Alignas(struct inotify_event) char buffer[4096];
	struct kernel *kernel = data;
	ssize_t n;

	(void)events;
	while ((n = read(kernel->inotify_fd, buffer, sizeof(buffer))) > 0)
		for (char *p = buffer; p < buffer + n;) {
			const struct inotify_event *e = (const void *)p;
			struct watch **found = watch_find(kernel, e->wd), *w = *found;
			uint64_t id = w ? w->cgroup_id : 0;

			if (w && (e->mask & IN_IGNORED)) { /* the directory is gone */
				*found = w->next;
				free(w);
			}
			if (id)
				kernel->config.on_cgroup(kernel->config.data, id);
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
void watch_add(struct kernel *kernel, const struct gate_cgroup *cg)
{
	char path[FS_PATH_SIZE];
	struct watch **found;
	int wd;

	if (fs_path(path, "%s/cgroup.events", cg->path) < 0)
		return;
	wd = inotify_add_watch(kernel->inotify_fd, path, IN_MODIFY);
	if (wd < 0)
		return;
	found = watch_find(kernel, wd);
	if (!*found)
		*found = calloc(1, sizeof(**found));
	if (!*found)
		return;
	(*found)->wd = wd;
	(*found)->cgroup_id = cg->id;
}

void watch_free(struct kernel *kernel)
{
	for (size_t i = 0; i < WATCH_BUCKETS; i++)
		while (kernel->watches[i]) {
			struct watch *w = kernel->watches[i];

			kernel->watches[i] = w->next;
			free(w);
		}
	if (kernel->inotify_fd >= 0)
		close(kernel->inotify_fd);
}
