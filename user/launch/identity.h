/* SPDX-License-Identifier: MIT */
/* Who the command runs as: looked up outside; netpawl-init puts it on. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "launch/orders.h"

struct identity {
	uid_t uid;
	gid_t gid;
	int ngroups;
	gid_t groups[IDENTITY_GROUPS_MAX];
	char name[64];	/* empty when the uid has no name */
	char home[512]; /* empty likewise */
	/* The user and group, of the session's own, that root's numbers inside stand for outside. */
	uid_t root;
};

/* True when it has a number of root's, as a user or as a group. On the host such a process would own files that only
 * root reads. */
bool identity_has_root(const struct identity *identity);
/* Who it is on the host. */
uid_t identity_outside(const struct identity *identity);

/* text is a user's name, UID or UID:GID. A bare UID must be known to the system, for its groups.
 * -ENOENT no such user, -EINVAL not a uid or gid, -E2BIG too many groups. */
int identity_find(const char *text, struct identity *ret);
