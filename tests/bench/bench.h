/* SPDX-License-Identifier: MIT */
/*
 * What the timed programs share. Each reads one command a line on stdin and answers one line on stdout, so that
 * bench.py can let several of them take turns; they end at the end of stdin.
 */
#pragma once

#include <err.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static inline uint64_t clock_ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

struct span {
	uint64_t wall, cpu; /* ns */
};

/* CPU of this process, all its threads, and what the kernel does on their behalf in softirqs. */
static inline void span_open(struct span *s)
{
	s->cpu -= clock_ns(CLOCK_PROCESS_CPUTIME_ID);
	s->wall -= clock_ns(CLOCK_MONOTONIC);
}

static inline void span_close(struct span *s)
{
	s->wall += clock_ns(CLOCK_MONOTONIC);
	s->cpu += clock_ns(CLOCK_PROCESS_CPUTIME_ID);
}

/* 4 KiB more at the end of a file, on the disk. */
static inline void append_durably(int fd)
{
	static char block[4096];

	memset(block, 'x', sizeof(block));
	if (write(fd, block, sizeof(block)) != (ssize_t)sizeof(block) || fdatasync(fd) < 0)
		err(1, "fdatasync");
}

static inline int append_open(const char *path)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);

	if (fd < 0)
		err(1, "%s", path);
	return fd;
}

/* CPU of children that were waited for, in ns; the kernel counts it in microseconds. */
static inline uint64_t children_cpu_ns(void)
{
	struct rusage u;

	getrusage(RUSAGE_CHILDREN, &u);
	return (uint64_t)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1000000000u +
	       (uint64_t)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) * 1000u;
}

static inline void cgroup_join(const char *path)
{
	char file[4200], pid[16];
	int fd, len;

	snprintf(file, sizeof(file), "%s/cgroup.procs", path);
	len = snprintf(pid, sizeof(pid), "%d", (int)getpid());
	fd = open(file, O_WRONLY | O_CLOEXEC);
	if (fd < 0 || write(fd, pid, (size_t)len) != len)
		err(1, "%s", file);
	close(fd);
}
