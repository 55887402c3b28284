/* SPDX-License-Identifier: MIT */
/* A launch in progress. launch_start.c brings it up, launch.c sees it through, launch_kept.c does both for a sandbox that
 * stays. */
#pragma once

#include "launch/handover.h"
#include "launch/launch.h"
#include "launch/run_group.h"
#include "launch/stdio.h"

struct launch {
	const struct launch_order *order;
	struct launch_result *result;
	struct handover handover;
	struct groups groups;
	struct stdio stdio;
	int child;		/* pidfd of the first process in the sandbox's cgroup */
	int signals;		/* signalfd */
	int report;		/* read end */
	int control;		/* write end; -1 once netpawl-init was told to go */
	int listener;		/* of a kept sandbox that is made; else -1 */
	struct run_group group; /* of the run in a kept sandbox */
	bool within; /* a kept sandbox: there is no child, and report and control are the connection to process 1 */
	bool gone;   /* process 1 closed the connection */
	bool ready;  /* confined, and about to start the command */
	bool ended;  /* the command; its exit code is known */
	bool failed; /* it was not started, and why is known */
	bool over;   /* the result says what came of it */
	struct usage before; /* in a kept sandbox: what it had used when the command started */
	uint64_t slow_ms;    /* from when on whoever reads the rest is slow; 0: it runs, or that was told */
	uint64_t ends_ms;    /* when its time is over; 0: never */
	uint64_t ready_ms;   /* when it should be ready at the latest; 0: whenever */
	pid_t foreground;    /* process group that had the terminal at the start; 0 without one */
};

uint64_t now_ms(void); /* CLOCK_MONOTONIC */
/* Returns false, to be the last word of a step that failed. */
bool launch_problem(struct launch_result *result, int error, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* False when it did not start, and why is in the result. */
bool launch_start(struct launch *l);
/* Signals and streams. False likewise. */
bool launch_prepare(struct launch *l, const struct launch_order *order, struct launch_result *ret);
/* Until netpawl-init has taken over or the first process is gone. Nothing of ours is read or written before: what could not
 * be made can be tried again. False: it is gone, or about to. */
bool launch_settle(struct launch *l);
/* Until the first process is gone, and with it every process of the sandbox; in a kept one, until the command is. Then
 * until their last output is delivered, or a signal says that nobody waits for it. The result says what came of it. */
void launch_serve(struct launch *l);
void launch_leave(struct launch *l); /* what launch_reap() is, for a kept sandbox */
/* What process 1 said by now. */
void reports_read(struct launch *l);
void launch_reap(struct launch *l);
void launch_finish(struct launch *l);
