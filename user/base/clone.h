/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdint.h>
#include <sys/types.h>

/* Like fork(), but the child is born in the cgroup (NULL: in ours): so are the sockets that it makes. flags: CLONE_NEW*, for namespaces that it
 * has from the start. 0, and in the child *ret is 0; or -errno. */
int clone_into(const char *cgroup, uint64_t flags, pid_t *ret);
/* The same with an open cgroup (-1: in ours), and a descriptor of the child where ret_pidfd is not NULL. */
int clone_into_fd(int cgroup, uint64_t flags, int *ret_pidfd, pid_t *ret);
