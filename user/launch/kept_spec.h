/* SPDX-License-Identifier: MIT */
/* What a kept sandbox was made with, written down beside its socket: see user/vocab/kept_files.h. */
#pragma once

#include "launch/run.h"
#include "vocab/limits.h"

struct kept_spec {
	char *text; /* all other texts are in it */
	struct limits limits;
	const char *user;    /* of --user; NULL: none */
	uint64_t uid;	     /* of process 1 */
	const char *missing; /* limits that could not be set */
	const char *trust;   /* mark of the session's CA; NULL: there was none */
	bool notices;
	bool apart; /* its process 1 takes runs into cgroups of their own; those of older builds do not */
	bool whole; /* else its maker died before it was written, and it says nothing */
	const char *binds[NP_BINDS_MAX];
	size_t n_binds;
	struct host_path seen[64]; /* directories of the system, for who starts in one of them */
	size_t n_seen;
	struct groups groups;
};

/* Of a sandbox that is made now. groups, missing: NULL until it is made; then it is not whole. 0 or -errno. */
int kept_spec_write(int file, const struct run *run, const struct groups *groups, const char *missing);
/* 0, or -errno; -EINVAL for what was not written by us. kept_spec_free() in any case. */
int kept_spec_read(int file, const char *cgroup, struct kept_spec *ret);
void kept_spec_free(struct kept_spec *spec);
/* Whether a run fits into the sandbox; when not, why. */
bool kept_spec_fits(const struct kept_spec *spec, const struct run *run, struct buf *why);
