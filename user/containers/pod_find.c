/* SPDX-License-Identifier: MIT */
#include "containers/pod_find.h"

#include <dirent.h>
#include <errno.h>
#include <string.h>

#include "base/cgroup_mount.h"
#include "base/cleanup.h"
#include "containers/container_path.h"
#include "vocab/limits.h"

#define SUFFIX ".slice"

/* Like uid, where a dash of uid may be an underscore. */
static bool uid_is(const char *text, const char *uid, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (text[i] != uid[i] && (text[i] != '_' || uid[i] != '-'))
			return false;
	return true;
}

bool pod_name_is(const char *name, const char *uid)
{
	static const char mark[] = "-pod";
	size_t len = strlen(name), uid_len = strlen(uid), rest = strlen(SUFFIX);

	if (!uid_len)
		return false;
	if (!strncmp(name, "pod", 3) && !strcmp(name + 3, uid))
		return true;
	if (len < strlen(mark) + uid_len + rest || strcmp(name + len - rest, SUFFIX) != 0)
		return false;
	name += len - rest - uid_len;
	return uid_is(name, uid, uid_len) && !memcmp(name - strlen(mark), mark, strlen(mark));
}

struct search {
	const char *uid;
	char path[FS_PATH_SIZE]; /* empty: nothing yet */
};

/* Cgroups below a container's were made by processes inside of it: they are not looked at. */
static int search_below(struct search *search, const char *path, unsigned depth)
{
	_closedir_ DIR *dir = opendir(path);
	struct container ignored;
	int r = 0;

	for (struct dirent *e; dir && r == 0 && (e = readdir(dir));) {
		char child[FS_PATH_SIZE];

		if (e->d_type != DT_DIR || e->d_name[0] == '.' || fs_path(child, "%s/%s", path, e->d_name) < 0)
			continue;
		if (pod_name_is(e->d_name, search->uid)) {
			if (search->path[0])
				return -ENOTUNIQ;
			strcpy(search->path, child);
		} else if (depth && !container_of_path(child, &ignored)) {
			r = search_below(search, child, depth - 1);
		}
	}
	return r;
}

int pod_find(const char *uid, char path[static FS_PATH_SIZE])
{
	struct search search = { .uid = uid };
	char mount[FS_PATH_SIZE];
	int r = cgroup_mount_find(mount);

	if (r == 0)
		r = search_below(&search, mount, NP_DEPTH_MAX);
	if (r == 0 && !search.path[0])
		r = -ENOENT;
	if (r == 0)
		strcpy(path, search.path);
	return r;
}
