/* SPDX-License-Identifier: MIT */
/* One file of a copy: written under another name first, so that nobody sees half a file under its own. */
#pragma once

#include "cli/copy.h"

/* A side of the copy. Every access to files is between copy_side_enter() and the next one. */
enum copy_side { HOST, INSIDE };

void copy_side_enter(const struct copy *copy, enum copy_side side);
mode_t copy_mode(const struct copy *copy, enum copy_side to, mode_t mode);

/* max: of the whole copy; 0 for no bound. A file may grow while it is read. */
int copy_bytes(struct copy *copy, int from, int to, uint64_t max);

/* From now on SIGINT, SIGTERM and SIGHUP leave no half file behind. */
void copy_signals_catch(void);

/* Into the workspace: whatever is at the name, a link perhaps, is replaced. */
int copy_file_in(struct copy *copy, int from, mode_t mode, int dir, const char *name);
/* Onto the host. Links are followed where the caller named the target, and not where names come from the workspace (a tree's).
 * A file that is there stays its owner's and as closed as it was; what reads or discards bytes (a character device, a FIFO), and
 * was named, gets them. -EOPNOTSUPP: what is there is neither a file nor a directory. */
int copy_file_out(struct copy *copy, int from, mode_t mode, int dir, const char *name, bool named);
