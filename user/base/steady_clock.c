/* SPDX-License-Identifier: MIT */
#include "base/steady_clock.h"

#define SLACK_US (60 * 1000000ll) /* what a clock is set right by without having jumped */

bool steady_clock_look(struct steady_clock *clock, uint64_t wall_us, uint64_t now_us, uint64_t for_us)
{
	const int64_t offset = (int64_t)(wall_us - now_us), moved = offset - clock->offset;

	if (!clock->since_us || moved > SLACK_US || moved < -SLACK_US) {
		clock->offset = offset;
		clock->since_us = now_us ? now_us : 1;
	}
	return now_us - clock->since_us >= for_us;
}
