/* SPDX-License-Identifier: MIT */
/* A launch in progress. launch_start.c brings it up, launch.c sees it through. */
#ifndef NP_SANDBOX_LAUNCH_INTERNAL_H
#define NP_SANDBOX_LAUNCH_INTERNAL_H

#include "sandbox/bwrap.h"
#include "sandbox/launch.h"
#include "sandbox/stdio.h"

struct launch {
	const struct launch_order *order;
	struct launch_result *result;
	struct bwrap bwrap;
	struct groups groups;
	struct stdio stdio;
	int child;	  /* pidfd of the first process in the sandbox's cgroup */
	int signals;	  /* signalfd */
	int report;	  /* read end */
	int control;	  /* write end; -1 once netpawl-init was told to go */
	int said;	  /* a file in memory: what bubblewrap had to say */
	bool ready;	  /* confined, and about to start the command */
	bool ended;	  /* the command; its exit code is known */
	bool failed;	  /* it was not started, and why is known */
	uint64_t ends_ms; /* when its time is over; 0: never */
	pid_t foreground; /* process group that had the terminal at the start; 0 without one */
};

uint64_t now_ms(void); /* CLOCK_MONOTONIC */
/* Returns false, to be the last word of a step that failed. */
bool launch_problem(struct launch_result *result, int error, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* False when it did not start, and why is in the result. */
bool launch_start(struct launch *l);

#endif
