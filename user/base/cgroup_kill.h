/* SPDX-License-Identifier: MIT */
/* Kills all that lives in a cgroup v2 and below it. */
#pragma once

/* Processes that are forked meanwhile die with the rest. 0, or -errno; -ENOENT, -ENODEV: there is no such cgroup.
 * The processes are on their way out when this returns. */
int cgroup_kill(const char *path);
