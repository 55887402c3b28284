/* SPDX-License-Identifier: MIT */
/* Process 1 of a sandbox: builds the confinement around itself, then starts the command and waits for it. */
#ifndef NP_SANDBOX_INIT_H
#define NP_SANDBOX_INIT_H

#include <linux/limits.h>
#include <sys/stat.h>

#include "sandbox/filter.h"
#include "sandbox/launch.h"
#include "sandbox/stdio.h"

/* What is looked up outside, before the sandbox exists. */
struct init_setup {
	const struct launch_plan *plan;
	const struct stdio *stdio;
	const struct filter *filter;
	int report; /* write end of a pipe: an init_report when the command could not be started */
	int parent; /* pidfd of the launching process */
	char cwd[PATH_MAX];
	struct stat cwd_stat;
};

/* Written whole, or not at all: it is below PIPE_BUF. */
struct init_report {
	int exit_code; /* LAUNCH_* */
	int error;     /* errno, or 0 */
	char text[400];
};

/* Signals that reach the command through the launching process and process 1. */
extern const int init_forwarded[];
extern const unsigned init_forwarded_count;

_Noreturn void init_main(const struct init_setup *setup);

#endif
