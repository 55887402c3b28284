/* SPDX-License-Identifier: MIT */
/* Kills all that lives in a cgroup v2 and below it. */
#pragma once

/* Who forks meanwhile dies with the rest. 0, or -errno; -ENOENT, -ENODEV: there is no such cgroup. They are on their way out
 * when this returns. */
int cgroup_kill(const char *path);
