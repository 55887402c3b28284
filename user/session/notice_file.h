/* SPDX-License-Identifier: MIT */
/*
 * Notices on their way to whoever reads them: as JSON, and as a file for each session, DIR/USER/SESSION/notices.ndjson,
 * that sandboxes see through a read-only mount of its directory.
 */
#pragma once

#include "base/buf.h"
#include "base/fs.h"
#include "session/store.h"

#define NOTICE_FILE "notices.ndjson"
#define WHY_FILE    "why.txt"

/* Appends {"notice":1,"time":...,"session":...,"level":...,"mode":...,"dataset":...,"reason":...,"text":...} and a
 * newline: one line of at most NP_NOTICE_LINE bytes. */
void notice_to_json(const char *session, const struct notice_row *row, struct buf *out);
/* All of them after a number. */
int notices_to_json(struct store *store, const char *session, uint32_t after, struct buf *out);

int notice_file_path(const char *dir, const char *session, char path[static FS_PATH_SIZE]);
/* Makes the file say text. Bytes that are there already stay where they are, so that whoever reads along goes on; a
 * file that says something else is replaced. Without make a file whose directory is not there stays away: -ENOENT. Nothing on the way may be a symbolic
 * link. */
int notice_file_put(const char *dir, const struct session_name *name, bool make, const struct buf *text);
/* Adds a line to a file of so many bytes; -ESTALE: it is not there, or not of so many. */
int notice_file_append(const char *dir, const struct session_name *name, size_t have, const struct buf *line);
/* Another file beside it, which is replaced whole; -ENOENT where there is no directory. */
int why_file_put(const char *dir, const struct session_name *name, const struct buf *text);
int notice_file_remove(const char *dir, const struct session_name *name); /* a missing one is fine */
/* Sessions that have one, or had and the rest of it is there. */
void notice_files_each(const char *dir, void (*fn)(void *data, const struct session_name *name), void *data);
