/* SPDX-License-Identifier: MIT */
#pragma once

/* Where cgroup v2 is mounted, by the mount table: hybrid hosts have it in a subfolder. 0, or -errno; -ENOENT: nowhere. */
int cgroup_mount_find(char path[static 4096]);
