/* SPDX-License-Identifier: MIT */
#include "containers/container_find.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "base/cgroup_mount.h"
#include "base/cleanup.h"
#include "vocab/limits.h"

int container_of_process(pid_t pid, char path[static FS_PATH_SIZE])
{
	char proc[64], mount[FS_PATH_SIZE];
	_free_ char *text = NULL;
	struct container container;
	char *line;
	int r = cgroup_mount_find(mount);

	if (r < 0)
		return r;
	snprintf(proc, sizeof(proc), "/proc/%d/cgroup", (int)pid);
	r = fs_read_at(AT_FDCWD, proc, 65536, &text);
	if (r < 0 || !text)
		return r == -ENOENT ? -ESRCH : r;
	line = !strncmp(text, "0::", 3) ? text : strstr(text, "\n0::");
	if (!line)
		return -ENOENT;
	line = strstr(line, "0::") + 3;
	line[strcspn(line, "\n")] = '\0';
	if (strstr(line, "/..")) /* outside of what we see of the hierarchy */
		return -EXDEV;
	if (container_of_path(line, &container))
		line[container.len] = '\0';
	return fs_path(path, "%s%s", mount, line);
}

/* -- all of them ----------------------------------------------------------------------------------- */

struct walk {
	int (*fn)(void *data, const char *path, const struct container *container);
	void *data;
};

/* Below a container there may be others, which have ids of their own. */
static int walk_below(const struct walk *walk, const char *path, unsigned depth)
{
	_closedir_ DIR *dir = opendir(path);
	int r = 0;

	for (struct dirent *e; dir && r == 0 && (e = readdir(dir));) {
		char child[FS_PATH_SIZE];
		struct container container;

		if (e->d_type != DT_DIR || e->d_name[0] == '.' || fs_path(child, "%s/%s", path, e->d_name) < 0)
			continue;
		if (container_of_path(child, &container) && !child[container.len])
			r = walk->fn(walk->data, child, &container);
		if (r == 0 && depth)
			r = walk_below(walk, child, depth - 1);
	}
	return r;
}

int containers_each(int (*fn)(void *data, const char *path, const struct container *container), void *data)
{
	const struct walk walk = { fn, data };
	char mount[FS_PATH_SIZE];
	int r = cgroup_mount_find(mount);

	return r < 0 ? r : walk_below(&walk, mount, NP_DEPTH_MAX);
}

struct search {
	const char *id;
	char path[FS_PATH_SIZE]; /* of what was found; empty: nothing yet */
	char found[CONTAINER_ID_SIZE];
};

static int is_it(void *data, const char *path, const struct container *container)
{
	struct search *search = data;

	if (strncmp(container->id, search->id, strlen(search->id)) != 0)
		return 0;
	if (search->path[0])
		return strcmp(search->found, container->id) ? -ENOTUNIQ : 0;
	strcpy(search->path, path);
	strcpy(search->found, container->id);
	return 0;
}

int container_find(const char *id, char path[static FS_PATH_SIZE])
{
	struct search search = { .id = id };
	int r = *id && strspn(id, "0123456789abcdef") == strlen(id) ? containers_each(is_it, &search) : -ENOENT;

	if (r == 0 && !search.path[0])
		r = -ENOENT;
	if (r == 0)
		strcpy(path, search.path);
	return r;
}
