/* SPDX-License-Identifier: MIT */
/* Shared by workspaces.c (those that are used) and workspaces_end.c (those whose session has ended). */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "session/workspaces.h"
#include "vocab/limits.h"

struct alone {
	uint64_t cgroup_id;
	unsigned uid;
};

/* Long enough for the time, both halves of a name and what is to be done. */
#define ENDED_NAME_SIZE (NP_SESSION_MAX + 48)

/* One ended workspace that a child works on: there is one at a time. */
struct ended_job {
	pid_t pid; /* 0: none */
	bool archives;
	char name[ENDED_NAME_SIZE]; /* in the directory of ended ones */
	unsigned uid;		    /* whose it was */
	uint64_t deadline_ns;
};

struct workspaces {
	char *path;
	int dir;
	unsigned next; /* where the search for a free user goes on */
	struct alone *alone;
	size_t n_alone, size;
	uint8_t taken[NP_UIDS / 8]; /* by a workspace, ended or not, or by a sandbox that has none */
	struct workspaces_config config;
	uint64_t archive_max;
	int ended, archives; /* directories */
	bool pending;	     /* something may be in ended */
	struct ended_job job;
};

void uid_mark(struct workspaces *workspaces, unsigned uid, bool taken);
/* No link, however it came there, leads out of dir. A descriptor or -errno. */
int directory_open(int dir, const char *name);
int directory_make(int dir, const char *name);
const char *session_of(const struct session_name *name);
void user_of(const struct session_name *name, char user[static NP_NAME_MAX + 1]);

/* workspaces_end.c */
int ended_open(struct workspaces *workspaces);
void ended_close(struct workspaces *workspaces);
