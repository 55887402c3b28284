/* SPDX-License-Identifier: MIT */
/*
 * Where events go: the journal (NDJSON files with rotation), the history (SQLite, for queries) and the feeds (followers of the
 * API). Observes, never decides: a failing disk here loosens and stops nothing; it is counted and reported once.
 *
 * The record is the history. events.ndjson is the log in front of it, which has an event at once and is replayed after a kill;
 * docs/architecture.md says why neither is enough alone.
 *
 * Files in the directory: events.ndjson, events.1.ndjson ... (older), changes.ndjson ..., events.db. What is kept, and what
 * goes first, is in events/retention.h.
 */
#pragma once

#include <stddef.h>

#include "events/event.h"
#include "events/retention.h"

struct event_log;
struct event_feed;

/* Makes the directory. Fails only when that fails or memory is short: files that cannot be opened now are
 * tried again with later events. */
int event_log_open(const char *dir, const struct keep_limits *limits, struct event_log **ret);
void event_log_close(struct event_log *log); /* flushes; NULL is fine */

/* Sets event->seq, hands the event to all three. */
void event_log_put(struct event_log *log, struct event *event);
/* Writes what is batched for SQLite, and removes what is over a bound; over one of age when the wall's clock has gone on with the other, which
 * nobody sets, for NP_CLOCK_STEADY_S. Call about every second. */
void event_log_flush(struct event_log *log, uint64_t wall_us, uint64_t boot_us);

uint64_t event_log_last_seq(const struct event_log *log);

struct event_log_stats {
	uint64_t written;	 /* events put */
	uint64_t journal_errors; /* events that the journal could not take */
	uint64_t history_errors; /* events that SQLite could not take */
	int journal_error;	 /* -errno of the last attempt; 0 when it went well */
	int history_error;	 /* the same of SQLite */
};
void event_log_stats(const struct event_log *log, struct event_log_stats *ret);

/* The newest `limit` events in order of seq, as NDJSON; session, reason (a token) may be NULL for all;
 * after_seq 0 for all. limit is at most NP_EVENTS_PAGE. Sees what was put, flushed or not. Where the answer reaches back to
 * events that were not kept, it begins with a line that says so: reason "not_kept", without a seq, with `dropped` (how many),
 * `since` (the time of the oldest of them) and `until_seq` (the newest one's seq).
 * -EINVAL when there is no such reason; -errno when the history cannot be read. */
int event_log_query(struct event_log *log, const char *session, const char *reason, uint64_t after_seq, unsigned limit,
		    struct buf *out);
/* The same, but the oldest `limit` events behind after_seq: whoever asks again behind the last one that he got, until there is
 * none, has all of them. */
int event_log_page(struct event_log *log, const char *session, const char *reason, uint64_t after_seq, unsigned limit,
		   struct buf *out);

/* The seq of the last event before a time; 0: there is none. A page behind it begins there. */
int event_log_before(struct event_log *log, uint64_t wall_us, uint64_t *ret_seq);

/* The newest of what was refused of a session, and of its refusals that were only counted (suppressed); likewise. */
int event_log_refused(struct event_log *log, const char *session, uint64_t after_seq, unsigned limit, struct buf *out);

/* What was not kept of a session. */
int event_log_dropped(struct event_log *log, const char *session, struct keep_dropped *ret);

/* A follower. -EMFILE when there are NP_FOLLOWERS_MAX. session NULL for all. wake(data) is called when
 * an empty feed gets bytes; it may free its own feed but no other. A feed may outlive its log; it gets nothing then. */
int event_feed_new(struct event_log *log, const char *session, void (*wake)(void *data), void *data,
		   struct event_feed **ret);
/* Moves up to max bytes out of the feed. 0 when there is nothing now. A feed that was not read fast enough
 * skips whole events, and then has one line {"kind":"change","reason":"lost","suppressed":N,...}. */
size_t event_feed_read(struct event_feed *feed, char *data, size_t max);
void event_feed_free(struct event_feed *feed); /* NULL is fine */
