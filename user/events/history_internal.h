/* SPDX-License-Identifier: MIT */
/* Between the history's files: history.c (rows that wait, queries), history_open.c (the file, its schema, older versions)
 * and history_retention.c (bounds). */
#pragma once

#include <errno.h>

#include "base/sql.h"
#include "events/history.h"
#include "vocab/limits.h"

#define HISTORY_APPLICATION 0x6e706576 /* "npev" */
#define HISTORY_VERSION	    2

enum keep_statement { KEEP_ENTER, KEEP_OLDEST, KEEP_LARGEST, KEEP_AGED, KEEP_REMOVE, KEEP_COUNT, KEEP_STATEMENTS };

struct pending {
	uint64_t seq, wall_us, weight;
	unsigned reason;
	size_t session; /* where in `text` the session begins, with its NUL; "" for none. The JSON follows */
	size_t json, json_len;
};

struct history {
	char *path;
	struct keep_limits limits;
	sqlite3 *db; /* NULL while it cannot be opened */
	sqlite3_stmt *insert;
	sqlite3_stmt *keep[KEEP_STATEMENTS]; /* history_retention.c's */
	uint64_t bytes[KEEP_CLASSES];	     /* in the table */
	bool over;			     /* more is stored than may be: the next flush goes on removing */
	bool emptied;			     /* accounts may have become empty since they were counted */
	uint64_t now_us;		     /* wall clock, of the last flush that knew it; 0: none did */
	uint64_t last_seq;		     /* when opened */
	unsigned count;			     /* of waiting */
	struct pending waiting[NP_HISTORY_BATCH];
	struct buf text;
	struct history_stats stats;
};

/* -- history_open.c --------------------------------------------------------- */
/* Does an error mean that the file is of no use any more: corrupt, or no database at all? */
static inline bool history_is_damaged(int error)
{
	return error == -EUCLEAN || error == -EPROTO;
}

int history_open(struct history *history);
void history_close(struct history *history);
/* events.db -> events.db.bad, with its log, which may hold rows that a person still wants. */
int history_move_aside(struct history *history);
/* Opens it; one that is damaged or of an unknown version is moved aside first. */
int history_reopen(struct history *history);

/* -- history_retention.c ---------------------------------------------------- */
/* Prepares the statements, and reads how much is stored. */
int keep_open(struct history *history);
void keep_close(struct history *history);
/* Enters the first of these rows, which were just inserted, into its session's account, with those behind it that go there,
 * too: *ret_entered. In a flood these are all: one update instead of one for each. */
int keep_enter(struct history *history, const struct pending *rows, unsigned n, unsigned *ret_entered);
/* Removes what is over a bound, and counts it; over says whether it is done. To be called inside of the transaction, after
 * the rows were entered. A transaction that fails leaves bytes wrong: call keep_totals() then. */
int keep_bounds(struct history *history);
int keep_totals(struct history *history);
