/* SPDX-License-Identifier: MIT */
/* What a kept sandbox was made with, written down beside its socket: see user/vocab/kept_files.h. */
#ifndef NP_CLI_RUN_NOTE_H
#define NP_CLI_RUN_NOTE_H

#include "cli/run.h"
#include "vocab/limits.h"

struct note {
	char *text; /* all other texts are in it */
	struct limits limits;
	const char *user;    /* of --user; NULL: none */
	uint64_t uid;	     /* of process 1 */
	const char *missing; /* limits that could not be set */
	const char *trust;   /* mark of the authority; NULL: there was none */
	bool notices;
	bool whole; /* else its maker died before it was written, and it says nothing */
	const char *binds[NP_BINDS_MAX];
	size_t n_binds;
	struct host_path seen[64]; /* directories of the system, for who starts in one of them */
	size_t n_seen;
	struct groups groups;
};

/* The note of a sandbox that is made now. groups, missing: NULL until it is made; then it is not whole. 0 or -errno. */
int note_write(int file, const struct run *run, const struct groups *groups, const char *missing);
/* 0, or -errno; -EINVAL for what was not written by us. note_free() in any case. */
int note_read(int file, const char *cgroup, struct note *ret);
void note_free(struct note *note);
/* Whether a run fits into the sandbox; when not, why. */
bool note_fits(const struct note *note, const struct run *run, struct buf *why);

#endif
