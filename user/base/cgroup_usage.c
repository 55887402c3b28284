/* SPDX-License-Identifier: MIT */
#include "base/cgroup_usage.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fs.h"

#define USAGE_PROCESSES 512   /* that are looked at one by one */
#define USAGE_TEXT	65536 /* of a file of the kernel's */

static char *text_read(const char *dir, const char *file)
{
	char path[FS_PATH_SIZE], *text = NULL;

	if (fs_path(path, "%s/%s", dir, file) < 0 || fs_read_at(AT_FDCWD, path, USAGE_TEXT, &text) < 0)
		return NULL;
	return text;
}

unsigned cgroup_pids(const char *path, int *pids, unsigned max)
{
	_free_ char *text = text_read(path, "cgroup.procs");
	unsigned n = 0;
	char *end;

	for (char *at = text; at && *at && n < max; at = end + (*end == '\n')) {
		long pid = strtol(at, &end, 10);

		if (end == at)
			break;
		if (pid > 0)
			pids[n++] = (int)pid;
	}
	return n;
}

void process_usage_read(int pid, uint64_t *ret_memory, uint64_t *ret_cpu_us)
{
	char dir[64], state;
	_free_ char *stat = NULL;
	unsigned long long user = 0, system = 0;
	long long resident = 0;
	const char *end;

	*ret_memory = *ret_cpu_us = 0;
	snprintf(dir, sizeof(dir), "/proc/%d", pid);
	stat = text_read(dir, "stat");
	end = stat ? strrchr(stat, ')') : NULL; /* the name in front of it may be anything */
	if (!end || sscanf(end + 1,
			   " %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu %*d %*d %*d %*d %*d %*d %*u %*u %lld",
			   &state, &user, &system, &resident) != 4)
		return;
	*ret_cpu_us = (user + system) * UINT64_C(1000000) / (uint64_t)sysconf(_SC_CLK_TCK);
	*ret_memory = resident > 0 ? (uint64_t)resident * (uint64_t)sysconf(_SC_PAGESIZE) : 0;
}

static void processes_add(const char *path, bool resident, struct cgroup_usage *usage)
{
	int pids[USAGE_PROCESSES];
	unsigned room = usage->processes < USAGE_PROCESSES ? USAGE_PROCESSES - usage->processes : 0;
	unsigned n = cgroup_pids(path, pids, room);
	uint64_t memory, cpu_us;

	usage->processes += n;
	for (unsigned i = 0; i < n && resident; i++) {
		process_usage_read(pids[i], &memory, &cpu_us);
		usage->memory += memory;
	}
}

void cgroup_usage_read(const char *path, struct cgroup_usage *ret)
{
	_free_ char *cpu = text_read(path, "cpu.stat"), *memory = text_read(path, "memory.current");
	const char *used = cpu ? strstr(cpu, "usage_usec ") : NULL;
	DIR *dir = opendir(path);
	char below[FS_PATH_SIZE];
	struct dirent *entry;

	*ret = (struct cgroup_usage){ .cpu_us = used ? strtoull(used + strlen("usage_usec "), NULL, 10) : 0,
				      .memory = memory ? strtoull(memory, NULL, 10) : 0 };
	processes_add(path, !memory, ret);
	while (dir && ret->processes < USAGE_PROCESSES && (entry = readdir(dir)))
		if (entry->d_type == DT_DIR && entry->d_name[0] != '.' &&
		    fs_path(below, "%s/%s", path, entry->d_name) == 0)
			processes_add(below, !memory, ret);
	if (dir)
		closedir(dir);
}
