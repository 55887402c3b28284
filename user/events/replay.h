/* SPDX-License-Identifier: MIT */
/*
 * The journal has an event when event_log_put() returns, the history up to a second later. What a daemon that was killed
 * had not stored yet is put into the history when the log is opened again.
 */
#ifndef NP_EVENTS_REPLAY_H
#define NP_EVENTS_REPLAY_H

#include "events/history.h"

#define REPLAY_SESSION_SIZE 256

/* The row of a line that event_to_json() made; row->session points to `session`. False for any other line. */
bool replay_row(const char *line, struct history_row *row, char session[static REPLAY_SESSION_SIZE]);

/* Puts the newest lines of the journal `name` that the history does not have into it. */
void replay_journal(int dirfd, const char *name, struct history *history);

#endif
