/* SPDX-License-Identifier: MIT */
/*
 * The history: the newest events in SQLite, for queries. A file of its own, events.db, so that its syncs never wait in front of
 * the session store's.
 *
 * It may not stop the daemon. A database that is corrupt or of another version is moved aside to events.db.bad and a new one is
 * made; one that an older version made is brought up to date; one that cannot be opened now is tried again at the next flush.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "events/retention.h"

struct history;

struct history_row {
	uint64_t seq;
	uint64_t wall_us;
	const char *session; /* NULL for none */
	unsigned reason;     /* enum np_reason */
	uint64_t weight;     /* events that it stands for: itself, and those that it only counts */
};

/* Of an event with that reason, which says that others were suppressed. */
uint64_t history_weight(unsigned reason, uint64_t suppressed);

struct history_filter {
	const char *session; /* NULL for all */
	int reason;	     /* enum np_reason; negative for all */
	uint64_t after_seq;
	unsigned limit;
	bool refused; /* only what the gate or the inspector refused, and how much of it was only counted */
	bool forward; /* the oldest rows that fit, a page behind after_seq, and not the newest */
};

struct history_stats {
	uint64_t dropped; /* rows that could not be stored */
	int error;	  /* -errno of the last flush; 0 when it went well */
};

/* Fails for want of memory only. */
int history_new(const char *dir, const struct keep_limits *limits, struct history **ret);
void history_free(struct history *history); /* flushes; NULL is fine */

uint64_t history_last_seq(const struct history *history); /* when it was opened; 0 when empty */

/* Copies. Stored with the next flush, or now when NP_HISTORY_BATCH rows wait. */
void history_put(struct history *history, const struct history_row *row, const char *json, size_t len);

/* Stores what waits in one transaction and removes what is over a bound (events/retention.h), in steps if that is much. now_us
 * is the wall clock, for what is too old; 0 when only the rest is wanted. After -errno the rows still wait; they are
 * dropped, and counted, when the batch is full and it fails again. */
int history_flush(struct history *history, uint64_t now_us);

/* Appends the newest rows that fit the filter (forward: the oldest), in order of seq. Flushes first. */
int history_query(struct history *history, const struct history_filter *filter, struct buf *out);

/* The seq of the last event before that time, by the order in which they came; 0: there is none. */
int history_before(struct history *history, uint64_t wall_us, uint64_t *ret_seq);

/* What was removed of a session, or of all (NULL), in the life of the database. */
int history_dropped(struct history *history, const char *session, struct keep_dropped *ret);

void history_stats(const struct history *history, struct history_stats *ret);
