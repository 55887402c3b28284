/* SPDX-License-Identifier: MIT */
/*
 * The processes of one run in a kept sandbox: a cgroup below the sandbox's own, which the gate takes for the sandbox. What the
 * command starts is born there, wherever it goes by setsid() and double forks, and is killed as a whole; who forks
 * meanwhile dies with the rest. What a run leaves behind lives on in its group, and so the directory does.
 */
#pragma once

#include "base/fs.h"

struct run_group {
	char path[FS_PATH_SIZE]; /* empty: there is none */
	int entry;		 /* a file of it, opened by us: the child that writes "0" there enters, as we could */
};

/* id: of the run on record, or empty. 0 or -errno; run_group_end() in any case. */
int run_group_make(const char *sandbox, const char *id, struct run_group *ret);
/* Kills all of it, and waits until it is gone, but not for ever. 0 or -errno. */
int run_group_kill(const struct run_group *group);
/* Removes it, unless the run has left something there. */
void run_group_end(struct run_group *group);
/* Removes those in which nothing lives any more; how many are left. */
unsigned run_groups_sweep(const char *sandbox);
