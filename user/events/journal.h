/* SPDX-License-Identifier: MIT */
/*
 * The journal: one JSON line per event in events.ndjson, rotated by size to events.1.ndjson and on. One writer.
 *
 * Every line is whole, with one exception: a line that a crash tore keeps what was written of it, and the next
 * event starts on a line of its own. Readers skip a line that does not parse.
 */
#ifndef NP_EVENTS_JOURNAL_H
#define NP_EVENTS_JOURNAL_H

#include <stddef.h>
#include <stdint.h>

struct journal;

/* dirfd is borrowed for the journal's life. Fails for want of memory only; files are opened by the first put. */
int journal_new(int dirfd, struct journal **ret);
void journal_free(struct journal *journal); /* NULL is fine */

/* Writes one line with its newline, or nothing of it. After -errno the next put tries everything again. */
int journal_put(struct journal *journal, const char *line, size_t len);

/* The highest seq near the end of the newest file that has one; 0 when none has. */
uint64_t journal_last_seq(int dirfd);

#endif
