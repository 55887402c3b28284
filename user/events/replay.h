/* SPDX-License-Identifier: MIT */
/*
 * The journal has an event when event_log_put() returns, the history up to a second later. What a daemon that was killed
 * had not stored yet is put into the history when the log is opened again.
 */
#pragma once

#include "events/history.h"

/* Puts the newest lines of the journal `name` that the history does not have into it. */
void replay_journal(int dirfd, const char *name, struct history *history);
