/* SPDX-License-Identifier: MIT */
/*
 * Keeps account of events that the gate counted but did not send, so that each is reported exactly once: with the next event of
 * the same sandbox, or, when none comes, by a sweep about a second later.
 */
#pragma once

#include <stdint.h>

struct flood;

int flood_new(struct flood **ret);
void flood_free(struct flood *flood);

/* The gate's running total for a sandbox; returns how many of these were not reported before. */
uint32_t flood_note(struct flood *flood, uint64_t cgroup_id, uint64_t total);

/* Asks current() for the total of every sandbox that was noted lately (-errno: it is gone) and calls report()
 * where it grew. Sandboxes that have been quiet for some sweeps are forgotten, with their last total reported. */
void flood_sweep(struct flood *flood, int (*current)(void *data, uint64_t cgroup_id, uint64_t *ret_total),
		 void (*report)(void *data, uint64_t cgroup_id, uint32_t suppressed), void *data);
