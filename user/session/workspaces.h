/* SPDX-License-Identifier: MIT */
/*
 * Where sandboxes live on disk, and as whom. A session's workspace is {data_dir}/{user}/{session}; it is made at first
 * use, and stays, is archived or is removed when the session has ended (workspaces_end.c). All sandboxes of the session run as its owner: the owner is the record of that, so it needs no other.
 * A sandbox without a workspace gets a user for itself, noted at its cgroup, which lives as long.
 *
 * The directories above a workspace are root's alone, so nobody in a sandbox can put anything in their place.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/fs.h"
#include "policy/lifetime.h"
#include "vocab/session_name.h"

struct workspaces;

struct workspace {
	unsigned uid;		 /* gid likewise */
	char path[FS_PATH_SIZE]; /* empty: none */
};

struct workspaces_config {
	const char *data_dir;
	uint64_t (*wall_us)(void), (*now_ns)(void); /* CLOCK_REALTIME, CLOCK_MONOTONIC */
	/* What became of an ended one, in words. May be NULL. */
	void (*report)(void *data, const char *session, bool failed, const char *text);
	void *data;
};

int workspaces_open(const struct workspaces_config *config, struct workspaces **ret); /* makes the directory */
void workspaces_free(struct workspaces *workspaces);

/* The session's workspace. -EEXIST: something else is in its place; -ENOSPC: there is no user left. */
int workspaces_enter(struct workspaces *workspaces, const struct session_name *session, struct workspace *ret);
/* A user for one sandbox, until workspaces_leave(). */
int workspaces_enter_alone(struct workspaces *workspaces, uint64_t cgroup_id, const char *cgroup,
			   struct workspace *ret);
void workspaces_leave(struct workspaces *workspaces, uint64_t cgroup_id); /* an unknown one is fine */
/* After a restart: a sandbox that lives on. */
int workspaces_recover(struct workspaces *workspaces, uint64_t cgroup_id, const char *cgroup);
/* Nobody lives there any more. 0: done, or a child will: see workspaces_sweep(); -ENOENT: there is none. */
int workspaces_end(struct workspaces *workspaces, const struct session_name *session, enum workspace_fate fate);
/* Call about every second: goes on with the ended ones. archive_max: bytes of one archive. */
void workspaces_sweep(struct workspaces *workspaces, uint64_t archive_max);
/* The path of a workspace that exists; -ENOENT. */
int workspaces_find(struct workspaces *workspaces, const struct session_name *session, char path[static FS_PATH_SIZE]);
