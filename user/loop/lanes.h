/* SPDX-License-Identifier: MIT */
/*
 * Work that waits, in lanes that take turns: a lane with much to do delays itself and not the others. A lane that had
 * nothing to do and gets something goes before those that have been busy for a while; after that, each lane gets the
 * same time. No clock is read here: the caller that does the work says how long it took.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#define LANE_TURN_NS 20000 /* about a small request's */

struct loop_task;
TAILQ_HEAD(lane_tasks, loop_task);
TAILQ_HEAD(lane_queue, lane);

/* The owner keeps it, zeroed at first. */
struct lane {
	struct lane_tasks tasks;
	TAILQ_ENTRY(lane) of_lanes;
	int64_t credit_ns; /* of its turn; what it took too much comes off its next ones */
	enum { LANE_IDLE, LANE_FRESH, LANE_BUSY } place;
};

struct lanes {
	struct lane_queue fresh, busy;
	struct lane *running; /* of the task that lanes_next() gave; NULL: it is gone */
	unsigned waiting;     /* tasks of all */
	unsigned lap, left;   /* it is over when these are done, which waited when it began */
};

void lanes_init(struct lanes *lanes);
void lanes_add(struct lanes *lanes, struct lane *lane, struct loop_task *task);
void lanes_remove(struct lanes *lanes, struct loop_task *task);
/* Whose turn it is; NULL: nobody waits. The task does not wait any more. */
struct loop_task *lanes_next(struct lanes *lanes);
void lanes_charge(struct lanes *lanes, uint64_t ns); /* what the last one took */
/* All that waited when this was true for the last time is done. */
bool lanes_lap(struct lanes *lanes);
/* The owner frees the lane. Nothing of it waits. */
void lanes_leave(struct lanes *lanes, struct lane *lane);
