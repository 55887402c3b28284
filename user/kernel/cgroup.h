/* SPDX-License-Identifier: MIT */
/* The cgroup v2 file system: where it is, and the verbs that sandboxes need. No BPF here. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/cgroup_mount.h"
#include "session/gate.h"

/* Of a directory of the hierarchy, its root included. */
int cgroup_id_of(const char *path, uint64_t *ret);
/* Fills in id and depth of an existing directory below mount. -EXDEV when it is elsewhere. */
int cgroup_look(const char *mount, const char *path, struct gate_cgroup *ret);
int cgroup_make(const char *mount, const char *path,
		struct gate_cgroup *ret);				   /* with missing parents; existing is fine */
int cgroup_by_id(const char *mount, uint64_t id, struct gate_cgroup *ret); /* -ENOENT when there is none */
bool cgroup_populated(const struct gate_cgroup *cg);

/* Kills everything in it and below and removes the directories. Waits a bounded time; -EBUSY after that. */
int cgroup_remove(const struct gate_cgroup *cg);

/* Calls fn for every process in it and below, until one answer is not 0, which is returned. */
int cgroup_each_process(const struct gate_cgroup *cg, int (*fn)(void *data, pid_t pid), void *data);

/* The same for the threads of one. Each may be in a network namespace of its own, and what /proc shows for the process is its first
 * thread's, which may have ended before the others. */
int process_each_thread(pid_t pid, int (*fn)(void *data, pid_t thread), void *data);
/* Likewise for it and every cgroup below it. */
int cgroup_each_below(const struct gate_cgroup *cg, int (*fn)(void *data, const char *path, uint64_t id), void *data);

/* Likewise for the cgroups directly below it. */
int cgroup_each_child(const char *mount, const struct gate_cgroup *cg,
		      int (*fn)(void *data, const struct gate_cgroup *child), void *data);

/* Calls fn with the id of every cgroup that pid is in, from its own up to the root's child.
 * An error when that cannot be told, as for a process that is gone. */
int cgroup_each_above(const char *mount, pid_t pid, int (*fn)(void *data, uint64_t id), void *data);

/* What runs as the process, if it is in the cgroup or below it. -ESRCH: it is not, or gone. */
int cgroup_process(const char *mount, uint64_t id, pid_t pid, struct gate_process *ret);
