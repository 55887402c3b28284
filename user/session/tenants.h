/* SPDX-License-Identifier: MIT */
/*
 * Where sandboxes live on disk, and as whom. A session's workspace is {data_dir}/{user}/{session}; it is made at first
 * use and stays. All sandboxes of the session run as its owner: the owner is the record of that, so it needs no other.
 * A sandbox without a workspace gets a user for itself, noted at its cgroup, which lives as long.
 *
 * The directories above a workspace are root's alone, so nobody in a sandbox can put anything in their place.
 */
#ifndef NP_SESSION_TENANTS_H
#define NP_SESSION_TENANTS_H

#include <stdint.h>

#include "base/fs.h"
#include "session/name.h"

struct tenants;

struct tenant {
	unsigned uid;		      /* gid likewise */
	char workspace[FS_PATH_SIZE]; /* empty: none */
};

int tenants_open(const char *data_dir, struct tenants **ret); /* makes the directory; 0 or -errno */
void tenants_free(struct tenants *tenants);

/* The session's workspace. -EEXIST: something else is in its place; -ENOSPC: there is no user left. */
int tenants_enter(struct tenants *tenants, const struct session_name *session, struct tenant *ret);
/* A user for one sandbox, until tenants_leave(). */
int tenants_enter_alone(struct tenants *tenants, uint64_t cgroup_id, const char *cgroup, struct tenant *ret);
void tenants_leave(struct tenants *tenants, uint64_t cgroup_id); /* an unknown one is fine */
/* After a restart: a sandbox that lives on. */
int tenants_recover(struct tenants *tenants, uint64_t cgroup_id, const char *cgroup);
/* The path of a workspace that exists; -ENOENT. */
int tenants_find(struct tenants *tenants, const struct session_name *session, char path[static FS_PATH_SIZE]);

#endif
