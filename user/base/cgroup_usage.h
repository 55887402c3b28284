/* SPDX-License-Identifier: MIT */
/* What the processes of a cgroup use now. */
#pragma once

#include <stdint.h>

struct cgroup_usage {
	uint64_t cpu_us; /* of all that ever ran there */
	uint64_t
		memory; /* bytes: of the cgroup, or, where the host counts that elsewhere (cgroup v1), of its processes that are resident */
	unsigned processes;
};

/* Looks at no more than 512 processes, and at those of runs in cgroups below. What cannot be read is 0. */
void cgroup_usage_read(const char *path, struct cgroup_usage *ret);

/* The pids of a cgroup; returns how many there are, at most max. */
unsigned cgroup_pids(const char *path, int *pids, unsigned max);
/* Bytes of a process that are in memory, and the time that it had; 0 where it is gone. */
void process_usage_read(int pid, uint64_t *ret_memory, uint64_t *ret_cpu_us);
