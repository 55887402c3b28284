/* SPDX-License-Identifier: MIT */
#include "base/cgroup_mount.h"

#include <errno.h>
#include <mntent.h>
#include <stdio.h>
#include <string.h>

int cgroup_mount_find(char path[static 4096])
{
	FILE *mounts = setmntent("/proc/self/mounts", "re");
	struct mntent entry;
	char text[8192];
	int r = -ENOENT;

	if (!mounts)
		return -errno;
	while (r == -ENOENT && getmntent_r(mounts, &entry, text, sizeof(text)))
		if (!strcmp(entry.mnt_type, "cgroup2") && strlen(entry.mnt_dir) < 4096) {
			strcpy(path, entry.mnt_dir);
			r = 0;
		}
	endmntent(mounts);
	return r;
}
