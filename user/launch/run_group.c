/* SPDX-License-Identifier: MIT */
#include "launch/run_group.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cgroup_kill.h"
#include "base/cleanup.h"
#include "vocab/kept_files.h"

#define NAME_TRIES 64
#define GONE_TRIES 2000 /* of a millisecond */

/*
 * A threaded cgroup, where it can be one. A process that has one thread enters such a one at once, and cannot enter another
 * without a wait of the kernel for all its readers (RCU), some milliseconds: clone3() straight into it is not for process 1,
 * which may neither write there nor call it. Not where a run of an older build has left something in a group of the other kind.
 */
static int entry_open(const char *path)
{
	char file[FS_PATH_SIZE];
	bool threaded;
	int fd;

	if (fs_path(file, "%s/cgroup.type", path) < 0)
		return -ENAMETOOLONG;
	threaded = fs_write_at(AT_FDCWD, file, "threaded") == 0;
	if (fs_path(file, "%s/%s", path, threaded ? "cgroup.threads" : "cgroup.procs") < 0)
		return -ENAMETOOLONG;
	fd = open(file, O_WRONLY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

int run_group_make(const char *sandbox, const char *id, struct run_group *ret)
{
	int r = -EEXIST;

	*ret = (struct run_group){ .entry = -1 };
	/* Whose it is stands in the name: see run_groups_sweep(), and the daemon finds that of a run by its number. There may be
	 * one of somebody before us who had our pid, with what he left behind. */
	for (unsigned i = 0; r == -EEXIST && i < NAME_TRIES; i++) {
		r = fs_path(ret->path, "%s/" NP_RUN_GROUP "%s-%u-%d", sandbox, id[0] ? id : "0", i, (int)getpid());
		if (r == 0 && mkdir(ret->path, 0755) < 0)
			r = -errno;
	}
	if (r < 0) {
		ret->path[0] = '\0';
		return r;
	}
	ret->entry = entry_open(ret->path);
	return ret->entry < 0 ? ret->entry : 0;
}

static bool is_populated(const char *group)
{
	char path[FS_PATH_SIZE];
	_free_ char *text = NULL;

	return fs_path(path, "%s/cgroup.events", group) == 0 && fs_read_at(AT_FDCWD, path, 4096, &text) >= 0 &&
	       !strstr(text, "populated 0");
}

int run_group_kill(const struct run_group *group)
{
	int r = cgroup_kill(group->path);

	for (unsigned i = 0; r == 0 && i < GONE_TRIES && is_populated(group->path); i++)
		usleep(1000);
	return r;
}

void run_group_end(struct run_group *group)
{
	cleanup_close(&group->entry);
	group->entry = -1;
	if (group->path[0])
		rmdir(group->path); /* EBUSY: what it left behind is the sandbox's now */
	group->path[0] = '\0';
}

/* An empty one may be somebody's who is about to start. */
static bool is_abandoned(const char *name)
{
	const char *pid = strrchr(name, '-');

	return pid && kill((pid_t)strtol(pid + 1, NULL, 10), 0) < 0 && errno == ESRCH;
}

unsigned run_groups_sweep(const char *sandbox)
{
	_closedir_ DIR *dir = opendir(sandbox);
	unsigned left = 0;

	for (struct dirent *e; dir && (e = readdir(dir));) {
		char path[FS_PATH_SIZE];

		if (strncmp(e->d_name, NP_RUN_GROUP, strlen(NP_RUN_GROUP)) != 0 ||
		    fs_path(path, "%s/%s", sandbox, e->d_name) < 0)
			continue;
		if (!is_abandoned(e->d_name) || rmdir(path) < 0)
			left++;
	}
	return left;
}
