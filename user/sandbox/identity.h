/* SPDX-License-Identifier: MIT */
/* Who the command runs as: looked up outside, put on inside. */
#ifndef NP_SANDBOX_IDENTITY_H
#define NP_SANDBOX_IDENTITY_H

#include <sys/types.h>

#define IDENTITY_GROUPS_MAX 256 /* groups of one user; initgroups() of a larger user is refused, not cut */

struct identity {
	uid_t uid;
	gid_t gid;
	int ngroups;
	gid_t groups[IDENTITY_GROUPS_MAX];
	char name[64];	/* empty when the uid has no name */
	char home[512]; /* empty likewise */
};

/* text is a user's name, UID or UID:GID. A bare UID must be known to the system, for its groups.
 * -ENOENT no such user, -EINVAL not a uid or gid, -E2BIG too many groups. */
int identity_find(const char *text, struct identity *ret);
/* Groups, gid, uid, in that order; after it the caller cannot go back. 0 or -errno. */
int identity_assume(const struct identity *identity);

#endif
