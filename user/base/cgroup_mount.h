/* SPDX-License-Identifier: MIT */
#ifndef NP_BASE_CGROUP_MOUNT_H
#define NP_BASE_CGROUP_MOUNT_H

/* Where cgroup v2 is mounted, by the mount table: hybrid hosts have it in a subfolder. 0, or -errno; -ENOENT: nowhere. */
int cgroup_mount_find(char path[static 4096]);

#endif
