/* SPDX-License-Identifier: MIT */
#include "daemon/orphans.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/fs.h"
#include "kernel/cgroup.h"
#include "vocab/kept_files.h"

#define MOUNTS_MAX (32u << 20) /* a mount table */
#define GROUPS_MAX 200000      /* groups of a hierarchy that are looked at */

struct sweep {
	const char *slice;
	char prefix[FS_PATH_SIZE];
	unsigned looked, removed;
};

static int group_look(void *data, const char *path, uint64_t id)
{
	const char *name = strrchr(path, '/') + 1;
	struct sweep *sweep = data;
	char sandbox[FS_PATH_SIZE];

	(void)id;
	if (++sweep->looked > GROUPS_MAX)
		return 1;
	if (strncmp(name, sweep->prefix, strlen(sweep->prefix)) != 0 ||
	    fs_path(sandbox, "%s/%s", sweep->slice, name + strlen(sweep->prefix)) < 0)
		return 0;
	if (access(sandbox, F_OK) < 0 && errno == ENOENT && rmdir(path) == 0)
		sweep->removed++;
	return 0;
}

/* The hierarchies that `netpawl run` makes groups in: those of its limits. */
static bool has_limits(const char *options)
{
	static const char *const controllers[] = { "memory", "pids", "cpu" };

	for (const char *word = options; *word; word += strcspn(word, ","), word += *word == ',')
		for (size_t i = 0; i < ARRAY_SIZE(controllers); i++)
			if (strcspn(word, ",\n") == strlen(controllers[i]) &&
			    !strncmp(word, controllers[i], strlen(controllers[i])))
				return true;
	return false;
}

unsigned orphans_groups(const char *slice)
{
	const char *name = strrchr(slice, '/');
	struct sweep sweep = { .slice = slice };
	_free_ char *table = NULL;

	if (!name || fs_path(sweep.prefix, "netpawl.%s.", name + 1) < 0 ||
	    fs_read_at(AT_FDCWD, "/proc/self/mountinfo", MOUNTS_MAX, &table) < 0)
		return 0;
	for (char *save = NULL, *line = strtok_r(table, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		const char *rest = strstr(line, " - cgroup ");
		struct gate_cgroup top = { 0 };
		char options[4096];

		if (rest && sscanf(rest, " - cgroup %*s %4095s", options) == 1 && has_limits(options) &&
		    sscanf(line, "%*u %*u %*s %*s %4095s", top.path) == 1)
			cgroup_each_below(&top, group_look, &sweep);
	}
	return sweep.removed;
}

void orphans_kept(const char *path)
{
	_closedir_ DIR *dir = opendir(path);
	const struct dirent *entry;

	while (dir && (entry = readdir(dir))) {
		_close_ int sandbox = -1;

		if (entry->d_name[0] == '.')
			continue;
		sandbox = openat(dirfd(dir), entry->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (sandbox < 0)
			continue;
		unlinkat(sandbox, NP_KEPT_SOCKET, 0);
		unlinkat(sandbox, NP_KEPT_MADE, 0);
		unlinkat(dirfd(dir), entry->d_name, AT_REMOVEDIR);
	}
}
