/* SPDX-License-Identifier: MIT */
/*
 * Carries out a plan: joins the cgroup, takes away what would lead out of it, waits. What happens in which order, and
 * why, is at the top of init/main.c.
 */
#pragma once

#include <signal.h>
#include <stdbool.h>

#include "base/buf.h"
#include "launch/cgroup_limits.h"
#include "launch/orders.h"
#include "launch/plan.h"

struct launch_order {
	const struct plan *plan;
	const char *cgroup;   /* absolute path of the sandbox's cgroup v2 directory */
	const char *netns;    /* a file that leads to its own network namespace; NULL: it shares the caller's */
	uint64_t netns_inode; /* that it must be */
	const sigset_t *mask; /* the command's signal mask: what launch_hold_signals() gave back */
	bool keep_output;     /* keep it in the result instead of passing it on */
	bool lasting;	      /* the sandbox outlives the command */
	const char *run;      /* then: the number of the run on record; empty: it is on none */
	bool apart;	      /* ... and its process 1 takes runs into cgroups of their own */
	bool outlive_reader; /* output that nobody reads any more is discarded; else the command gets an error (EPIPE) */
	/* The command has ended, its sandbox has not yet: the last moment to ask about it. May be NULL. */
	void (*on_ended)(void *data);
	/* It is over, and its reader is slow: the result is complete but for output that is kept, and the rest of the output goes on afterwards,
	 * however long that takes. Not called when there is nothing to wait for. May be NULL. */
	void (*on_slow_reader)(void *data);
	void *data;
};

struct launch_result {
	bool started;  /* the command's program was running */
	bool unmade;   /* the sandbox could not be made; standard input and output were not touched */
	bool lost;     /* the kept sandbox is dead, and was before the command started */
	bool silent;   /* lost, but for all we know it is busy, and others run in it */
	int exit_code; /* 0..255; 128+N when killed by signal N; LAUNCH_* when not started, or timed out */
	int signal;    /* that ended the command; 0: none */
	bool timed_out;
	struct usage usage;
	struct buf output[3]; /* of standard output (1) and error (2), with keep_output */
	bool truncated[3];
	char missing[128];  /* limits that could not be set, with best_effort; else empty */
	char problem[1024]; /* why it was not started, in words; else empty */
};

/* Blocks the signals that launch_run() passes on, so that none of them ends the caller before it has cleaned
 * up. They stay blocked; *ret_mask is the mask as it was. */
void launch_hold_signals(sigset_t *ret_mask);

/* Returns when the command and everything that it started are gone (ISOLATION_NONE: the command alone). Needs root, one
 * thread, and launch_hold_signals() before. launch_result_free() after it. */
void launch_run(const struct launch_order *order, struct launch_result *ret);
/* The same in two halves, for a sandbox that is kept. The first makes it: its process 1 listens at listener and outlives us.
 * False: it did not work, and the result says why. ret_groups is what later runs read how much was used from. */
bool launch_keep(const struct launch_order *order, int listener, struct groups *ret_groups, struct launch_result *ret);
/* The second runs a command in it, and returns when that has ended, or the sandbox is dead. The connection is taken over. */
void launch_within(const struct launch_order *order, const struct groups *groups, int connection,
		   struct launch_result *ret);
void launch_result_free(struct launch_result *result);
