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

static void watch_drop(struct kernel *kernel, int wd)
{
	for (struct watch **p = &kernel->watches; *p; p = &(*p)->next)
		if ((*p)->wd == wd) {
			struct watch *w = *p;

			*p = w->next;
			free(w);
			return;
		}
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
			uint64_t id = 0;

			for (struct watch *w = kernel->watches; w && !id; w = w->next)
				if (w->wd == e->wd)
					id = w->cgroup_id;
			if (e->mask & IN_IGNORED) /* the directory is gone */
				watch_drop(kernel, e->wd);
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
	struct watch *w = calloc(1, sizeof(*w));
	char path[FS_PATH_SIZE];

	if (!w)
		return;
	fs_path(path, "%s/cgroup.events", cg->path);
	w->wd = inotify_add_watch(kernel->inotify_fd, path, IN_MODIFY);
	if (w->wd < 0) {
		free(w);
		return;
	}
	w->cgroup_id = cg->id;
	w->next = kernel->watches;
	kernel->watches = w;
}

void watch_free(struct kernel *kernel)
{
	while (kernel->watches)
		watch_drop(kernel, kernel->watches->wd);
	if (kernel->inotify_fd >= 0)
		close(kernel->inotify_fd);
}
