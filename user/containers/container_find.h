/* SPDX-License-Identifier: MIT */
/* The cgroup v2 of a container, or of a process. */
#pragma once

#include <sys/types.h>

#include "base/fs.h"
#include "containers/container_path.h"

/* The container that a process is in; else its own cgroup. 0 or -errno. */
int container_of_process(pid_t pid, char path[static FS_PATH_SIZE]);
/* By its id, or the beginning of it. -ENOENT; -ENOTUNIQ: there are several. */
int container_find(const char *id, char path[static FS_PATH_SIZE]);
/* Calls fn for each; stops at an answer that is not 0, and returns it. */
int containers_each(int (*fn)(void *data, const char *path, const struct container *container), void *data);
