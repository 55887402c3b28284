/* SPDX-License-Identifier: MIT */
/*
 * What is kept of the events, and for how long.
 *
 * Events are of three classes. Refusals and requests are caused by a sandbox, which can make as many as it likes: they are
 * bounded for each session, so that a flood pushes out nothing but older events of its own session and class. Changes
 * (rises, runs, sandboxes made and removed, policies) are caused by operators, and have a reserve of their own that no
 * number of refusals or requests takes from. Where a bound over all sessions is reached, the session that holds the most
 * loses its oldest event first.
 *
 * What goes is counted, by session and class: a gap in the history is never silent.
 */
#pragma once

#include <stdint.h>

#include "vocab/limits.h"

enum keep_class { /* stored in the database: never renumber */
		  KEEP_CHANGE = 0,
		  KEEP_REFUSED = 1, /* and events that were only counted (suppressed, lost): a flood makes them */
		  KEEP_ALLOWED = 2,
		  KEEP_CLASSES,
};

enum keep_class keep_class(unsigned reason);

struct keep_limits {
	uint64_t session_bytes; /* of one session's refusals, and of its requests: each */
	uint64_t total_bytes;	/* of the refusals and requests of all sessions */
	uint64_t total_age_us;	/* 0: no bound */
	uint64_t change_bytes;	/* of the changes of all sessions; in the history, and in the journal */
	uint64_t change_age_us; /* 0: no bound */
	uint64_t journal_bytes; /* of events.ndjson with its older files */
};
#define KEEP_DEFAULTS                                              \
	((struct keep_limits){ .session_bytes = NP_EVENTS_SESSION, \
			       .total_bytes = NP_EVENTS_TOTAL,     \
			       .change_bytes = NP_EVENTS_CHANGES,  \
			       .journal_bytes = NP_EVENTS_JOURNAL })

/* What was not kept of one session, or of all. */
struct keep_dropped {
	uint64_t count[KEEP_CLASSES]; /* events, with those that they only counted */
	/* Of each class: when the oldest and the newest of them happened, and the newest one's seq. */
	uint64_t since_us[KEEP_CLASSES], until_us[KEEP_CLASSES], until_seq[KEEP_CLASSES];
};
