/* SPDX-License-Identifier: MIT */
/* Kills all that lives in a cgroup v2 and below it. */
#pragma once

/* Processes that are forked meanwhile die with the rest. 0, or -errno; -ENOENT, -ENODEV: there is no such cgroup.
 * The processes are on their way out when this returns. */
int cgroup_kill(const char *path);
/* One that is to be used again, and only what lives in itself: Linux 6.18 kills whoever is cloned into a cgroup whose cgroup.kill was
 * ever written. 0: nobody is left in it; -EBUSY: somebody was, for half a second. */
int cgroup_empty(const char *path);
