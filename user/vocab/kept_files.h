/* SPDX-License-Identifier: MIT */
/* The directory of a kept sandbox, in the daemon's run directory: what the daemon and the launcher both know of it. */
#pragma once

#define NP_KEPT_SOCKET "socket" /* that its process 1 listens on */
/* What it was made with, as lines of NAME=VALUE. Locked (flock): shared by each run in the sandbox, exclusively by whoever
 * makes or removes it. */
#define NP_KEPT_MADE "made"
#define NP_KEPT_GROUP \
	"group=" /* begins a line with a cgroup v1 group of its limits, which goes when the sandbox does */

/* Cgroups below a kept sandbox's own, one for each run: this, the number of the run (0: it is not on record), a dash,
 * any number, a dash, and the pid of who runs it. */
#define NP_RUN_GROUP "run-"
