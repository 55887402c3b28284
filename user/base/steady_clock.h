/* SPDX-License-Identifier: MIT */
/*
 * Has the wall's clock been let alone? What goes by its age by that clock waits until it has, for a while: else what was made a moment ago would
 * be old when the clock is set. Times are passed in.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct steady_clock {
	int64_t offset;	   /* of the wall's clock to one that nobody sets, in us, ... */
	uint64_t since_us; /* ... and since when, by the latter; 0: nobody has looked yet */
};

/* Call it often, about every second: a clock that was set and set right again between two looks was never wrong. True when nobody has set it
 * for for_us. now_us: of a clock that nobody sets. */
bool steady_clock_look(struct steady_clock *clock, uint64_t wall_us, uint64_t now_us, uint64_t for_us);
