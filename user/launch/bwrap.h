/* SPDX-License-Identifier: MIT */
/* How a plan becomes a process: bubblewrap with netpawl-init in it, or netpawl-init alone. */
#ifndef NP_LAUNCH_BWRAP_H
#define NP_LAUNCH_BWRAP_H

#include "base/buf.h"
#include "base/fs.h"
#include "launch/orders.h"
#include "launch/plan.h"

/* Descriptors from 3 on: those of orders.h, then bubblewrap's words, filter and user namespace, then files. */
#define BWRAP_FDS (ORDERS_FREE - 3 + 3 + PLAN_FILES_MAX)

struct bwrap {
	char program[FS_PATH_SIZE]; /* bwrap; empty: not needed */
	char init[FS_PATH_SIZE];
	int fds[BWRAP_FDS]; /* what is to be at 3, 4, ...; -1 for what bwrap_execute() is given */
	size_t n_fds;
	bool as_root;	/* the command's user namespace is another one than bubblewrap's */
	char **argv;	/* ends with NULL; the command's own words are borrowed */
	char **environ; /* of the program that is started first */
};

#define BWRAP_PROBLEM_SIZE 512
/* Everything that can fail outside. 0, or -errno with the reason in words. bwrap_free() in any case. */
int bwrap_prepare(const struct plan *plan, const sigset_t *mask, struct bwrap *ret,
		  char problem[static BWRAP_PROBLEM_SIZE]);
void bwrap_free(struct bwrap *bwrap);

/* In the process that is to become the sandbox: puts report, control and the rest at their numbers, closes all others,
 * and executes. said: where bubblewrap's own complaints go. userns: what the command lives in, if as_root. Returns
 * -errno. */
int bwrap_execute(const struct bwrap *bwrap, int report, int control, int written, int userns);

#endif
