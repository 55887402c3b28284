/* SPDX-License-Identifier: MIT */
/* Deficit round robin, with a list for those that were idle: what DRR++ does for packets. */
#include "loop/lanes.h"

#include <stddef.h>

#include "loop/loop.h"

#define CHARGE_MAX_NS (100 * LANE_TURN_NS) /* more is not its doing: the whole process has waited */

void lanes_init(struct lanes *lanes)
{
	*lanes = (struct lanes){ .running = NULL };
	TAILQ_INIT(&lanes->fresh);
	TAILQ_INIT(&lanes->busy);
}

static struct lane_queue *queue_of(struct lanes *lanes, const struct lane *lane)
{
	return lane->place == LANE_FRESH ? &lanes->fresh : &lanes->busy;
}

static void lane_rest(struct lanes *lanes, struct lane *lane)
{
	TAILQ_REMOVE(queue_of(lanes, lane), lane, of_lanes);
	lane->place = LANE_IDLE;
}

static void lane_to_back(struct lanes *lanes, struct lane *lane)
{
	lane_rest(lanes, lane);
	lane->place = LANE_BUSY;
	TAILQ_INSERT_TAIL(&lanes->busy, lane, of_lanes);
}

void lanes_add(struct lanes *lanes, struct lane *lane, struct loop_task *task)
{
	if (lane->place == LANE_IDLE) {
		lane->place = LANE_FRESH;
		lane->credit_ns = LANE_TURN_NS;
		TAILQ_INIT(&lane->tasks);
		TAILQ_INSERT_TAIL(&lanes->fresh, lane, of_lanes);
	}
	task->waits_in = lane;
	task->lap = lanes->lap + 1;
	TAILQ_INSERT_TAIL(&lane->tasks, task, of_lane);
	lanes->waiting++;
}

void lanes_remove(struct lanes *lanes, struct loop_task *task)
{
	TAILQ_REMOVE(&task->waits_in->tasks, task, of_lane);
	task->waits_in = NULL;
	lanes->waiting--;
	lanes->left -= task->lap == lanes->lap;
}

struct loop_task *lanes_next(struct lanes *lanes)
{
	while (lanes->waiting) {
		struct lane *lane = TAILQ_FIRST(TAILQ_EMPTY(&lanes->fresh) ? &lanes->busy : &lanes->fresh);
		struct loop_task *task = TAILQ_FIRST(&lane->tasks);

		if (lane->credit_ns <= 0) {
			lane->credit_ns += LANE_TURN_NS;
			lane_to_back(lanes, lane);
		} else if (task) {
			lanes_remove(lanes, task);
			lanes->running = lane;
			return task;
		} else if (lane->place == LANE_FRESH) {
			lane_to_back(lanes, lane); /* once around, before it is fresh again */
		} else {
			lane_rest(lanes, lane);
		}
	}
	return NULL;
}

void lanes_charge(struct lanes *lanes, uint64_t ns)
{
	if (lanes->running)
		lanes->running->credit_ns -= ns < CHARGE_MAX_NS ? (int64_t)ns : CHARGE_MAX_NS;
	lanes->running = NULL;
}

bool lanes_lap(struct lanes *lanes)
{
	if (lanes->left)
		return false;
	lanes->lap++;
	lanes->left = lanes->waiting;
	return true;
}

void lanes_leave(struct lanes *lanes, struct lane *lane)
{
	if (lane->place != LANE_IDLE)
		lane_rest(lanes, lane);
	if (lanes->running == lane)
		lanes->running = NULL;
}
