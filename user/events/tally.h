/* SPDX-License-Identifier: MIT */
/*
 * What events add up to, for monitoring: counters since the daemon's start, which go up only. No word that a sandbox can choose is
 * among the labels, so there are no more series than reasons, levels and states.
 */
#pragma once

#include "base/exposition.h"
#include "events/event.h"
#include "reason.h"

enum tally_question { TALLY_ALLOWED, TALLY_DENIED, TALLY_UNANSWERED, TALLY_QUESTIONS };

struct tally {
	uint64_t requests[NP_REASON_COUNT]; /* requests, tunnels and connections that an inspector reported */
	uint64_t queries[NP_REASON_COUNT];  /* the same of the DNS gate's */
	uint64_t changes[NP_REASON_COUNT];  /* changes and errors */
	uint64_t raised[NP_LEVELS];
	uint64_t cut;
	uint64_t suppressed, lost;
	uint64_t asked, questions[TALLY_QUESTIONS];
	struct histogram apply, wait;
	struct histogram duration; /* of requests that an origin answered */
};

/* An event that was written. */
void tally_note(struct tally *tally, const struct event *event);
void tally_describe(const struct tally *tally, struct buf *out);
