/* SPDX-License-Identifier: MIT */
/* Starting a process in a cgroup, with just the descriptors that it is given. */
#ifndef NP_SUPERVISOR_SPAWN_H
#define NP_SUPERVISOR_SPAWN_H

#include <stddef.h>
#include <sys/types.h>

int spawn_pair(int ret[2]); /* of SOCK_SEQPACKET sockets, close-on-exec */

/* Runs argv in the cgroup; fds become its descriptors from 3 on, and it has no others but stderr (stdin and stdout are
 * /dev/null). It dies with us. */
int spawn_into(const char *cgroup, const char *const *argv, const int *fds, size_t n, pid_t *ret);
void spawn_end(pid_t pid); /* kills and reaps */

#endif
