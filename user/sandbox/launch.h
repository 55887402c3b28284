/* SPDX-License-Identifier: MIT */
/*
 * Runs one command inside a sandbox: joins the cgroup, takes away what would lead
 * out of it, waits. What happens in which order, and why, is at the top of init.c.
 */
#ifndef NP_SANDBOX_LAUNCH_H
#define NP_SANDBOX_LAUNCH_H

#include <signal.h>
#include <stdbool.h>

#include "sandbox/identity.h"

/* Exit codes of our own, as env(1), nohup(1) and timeout(1) have them. */
#define LAUNCH_FAILED	      125
#define LAUNCH_NOT_EXECUTABLE 126
#define LAUNCH_NOT_FOUND      127

struct launch_plan {
	const char *cgroup;		 /* absolute path of the sandbox's cgroup v2 directory */
	char *const *argv;		 /* ends with NULL; argv[0] is searched for in PATH of envp */
	char **envp;			 /* ends with NULL */
	const struct identity *identity; /* NULL: stay who we are */
	const char *const *hidden;	 /* paths that the command must not see, ends with NULL; may be NULL */
	const char *notices;		 /* a directory that the command sees at MOUNTS_NOTICES; may be NULL */
	const sigset_t *mask;		 /* the command's signal mask: what launch_hold_signals() gave back */
	bool keep_stdout;		 /* the caller still writes to standard output when the command has ended */
};

struct launch_result {
	bool started;	   /* the command's program was running */
	int exit_code;	   /* 0..255; 128+N when killed by signal N; LAUNCH_* when not started */
	char problem[512]; /* why it was not started, in words; else empty */
};

/* Blocks the signals that launch_run() passes on, so that none of them ends the caller before it has cleaned
 * up. They stay blocked; *ret_mask is the mask as it was. */
void launch_hold_signals(sigset_t *ret_mask);

/* Returns when the command and everything that it started are gone. Needs root, one thread, and
 * launch_hold_signals() before. */
void launch_run(const struct launch_plan *plan, struct launch_result *ret);

#endif
