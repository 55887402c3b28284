/* SPDX-License-Identifier: MIT */
/*
 * Limits by cgroups: in the sandbox's own cgroup where cgroup v2 has the controller, in groups of our own where it
 * lives in v1, below the group that netpawl itself is in. And what was used in the end.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/fs.h"
#include "vocab/run_options.h"

#define GROUPS_V1_MAX 3 /* memory, pids, cpu */

struct groups {
	char unified[FS_PATH_SIZE]; /* the sandbox's cgroup */
	struct {
		char path[FS_PATH_SIZE];
		/* Of its tasks, for the first process to enter by. It has one thread: by cgroup.procs the kernel would keep
		 * every process of the host from being made or ending meanwhile, and wait until that is so (10 ms). */
		int tasks;
	} v1[GROUPS_V1_MAX];
	size_t n_v1;
	char memory[FS_PATH_SIZE]; /* the group that knows of memory; empty: there is none */
	char missing[128];	   /* limits that could not be set, with best_effort */
};

struct usage {
	uint64_t cpu_us;
	uint64_t memory_peak;  /* bytes; 0: not known */
	uint64_t memory_kills; /* processes that were killed because memory ran out */
};

#define GROUPS_PROBLEM_SIZE 256
/* 0, or -errno with the reason in words. groups_remove() in any case, and once the sandbox is empty. */
int groups_make(const char *cgroup, const struct limits *limits, struct groups *ret,
		char problem[static GROUPS_PROBLEM_SIZE]);
/* In the process that is to be limited. 0 or -errno. */
int groups_enter(const struct groups *groups);
/* As long as the sandbox has a process: what is not known stays 0. */
void groups_usage(const struct groups *groups, struct usage *ret);
/* Kills everything in the sandbox. 0 or -errno. */
int groups_kill(const struct groups *groups);
void groups_remove(struct groups *groups);
