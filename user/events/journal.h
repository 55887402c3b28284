/* SPDX-License-Identifier: MIT */
/*
 * A journal: one JSON line per event in NAME.ndjson, rotated by size to NAME.1.ndjson and on. One writer.
 *
 * There are two. events.ndjson has every event, in order of seq and without gaps, for whoever ships it elsewhere: it is a
 * window on the newest, and a flood moves the window on. changes.ndjson has the changes among them once more: they are few,
 * and no flood of refusals or requests pushes them out. Fairness between sessions is the history's, which can remove a row
 * in the middle; a file can only be cut off at its old end, and a file for each session would be 100,000 files.
 *
 * Every line is whole, with one exception: a line that a crash tore keeps what was written of it, and the next
 * event starts on a line of its own. Readers skip a line that does not parse.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct journal;

/* dirfd and name are borrowed for the journal's life. bytes is the size of all its files together. Fails for want of memory only; files are opened by the first put. */
int journal_new(int dirfd, const char *name, uint64_t bytes, struct journal **ret);
void journal_free(struct journal *journal); /* NULL is fine */

/* Writes one line with its newline, or nothing of it. After -errno the next put tries everything again. */
int journal_put(struct journal *journal, const char *line, size_t len);

/* Removes the files whose newest line is older than that (CLOCK_REALTIME). */
void journal_expire(struct journal *journal, uint64_t before_us);

/* The highest seq near the end of the newest file that has one; 0 when none has. */
uint64_t journal_last_seq(int dirfd, const char *name);

/* The last bytes of one of its files, at most max: a new string, whose first line may be the end of one; NULL: there are
 * none. index 0 is the newest file. */
char *journal_tail(int dirfd, const char *name, unsigned index, size_t max);
