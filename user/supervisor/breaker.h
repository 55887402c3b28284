/* SPDX-License-Identifier: MIT */
/* A circuit breaker: after NP_DECIDER_FAILURES failures in a row nothing is tried for NP_DECIDER_PAUSE_MS; the first failure
 * after that is enough for the next pause. Pure: time is passed in. Zeroed: whole. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "vocab/limits.h"

struct breaker {
	unsigned failures; /* in a row */
	unsigned trips;	   /* pauses, in all */
	uint64_t until_ns;
};

static inline bool breaker_is_open(const struct breaker *breaker, uint64_t now_ns)
{
	return now_ns < breaker->until_ns;
}

static inline void breaker_succeed(struct breaker *breaker)
{
	breaker->failures = 0;
	breaker->until_ns = 0;
}

static inline void breaker_fail(struct breaker *breaker, uint64_t now_ns)
{
	if (breaker_is_open(breaker, now_ns) || ++breaker->failures < NP_DECIDER_FAILURES)
		return;
	breaker->failures = NP_DECIDER_FAILURES - 1;
	breaker->trips++;
	breaker->until_ns = now_ns + NP_DECIDER_PAUSE_MS * 1000000ull;
}
