/* SPDX-License-Identifier: MIT */
/* The end of a worker, and counts that somebody waits for. */
#pragma once

#include "loop/loop.h"

struct worker;

/* Of a worker. Only stop.c writes it. */
struct stopping {
	struct loop_task settling; /* another look at what sandboxes have sent ... */
	unsigned settle_rounds;	   /* ... so many times, then ... */
	uint32_t settle;	   /* ... this is answered */
	uint64_t stop_ns;	   /* it stops, then at the latest; 0: it does not */
};

void worker_settle(struct worker *worker, uint32_t number);
void worker_stop(struct worker *worker);
void worker_stop_tick(struct worker *worker); /* ends the loop when nothing is open any more, or it is time */
