/* SPDX-License-Identifier: MIT */
/* Starting a process in a cgroup, with just the descriptors that it is given. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

int spawn_pair(int ret[2]); /* of SOCK_SEQPACKET sockets, close-on-exec */

/* Runs argv in the cgroup; fds become its descriptors from 3 on, and it has no others but stderr (stdin and stdout are
 * /dev/null). It dies with us. */
int spawn_into(const char *cgroup, const char *const *argv, const int *fds, size_t n, pid_t *ret);

/*
 * For a program of the operator's: as a user of its own without groups and privileges to gain, in the root directory, with next to
 * no environment, first of a process namespace, so that what it started ends with it, with a /proc of that, so that it sees no other
 * command of the same user, and of a network namespace without a network unless it is to have the host's. stream is its stdin and
 * stdout. It dies with us.
 */
struct spawn_user {
	unsigned uid;
	bool network;
};
int spawn_apart(const struct spawn_user *user, const char *const *argv, int stream, int errors, pid_t *ret);
void spawn_end(pid_t pid); /* kills and reaps */
