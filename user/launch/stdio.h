/* SPDX-License-Identifier: MIT */
/*
 * Standard input, output and error of a sandboxed command.
 *
 * A descriptor that was opened outside belongs to the outside: a socket keeps the cgroup of its maker, so the gate would not
 * see it, and a file of cgroupfs would move the writer out. So only these are handed over as they are: regular files of real
 * file systems that are only read, pipes that are read or that the command's user could open by their name, terminals, and
 * /dev/null, zero, full, random, urandom. For anything else the command gets a pipe, and bytes are carried between the two: for
 * output that goes to a file, too, which the command could truncate otherwise. So it is when output is limited, or kept for the
 * caller. Of a file that is only read, but that its user could write, the command gets a descriptor of its own, which cannot be
 * opened for more. In a sandbox that is kept, others than the command may hold what it got, and long after it: there only those
 * devices are handed over, pipes that its user can only read, and such descriptors.
 */
#pragma once

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"
#include "launch/terminal.h"

#define STDIO_BUFFER 16384 /* bytes in flight per direction: a slow reader slows its writer */

/* Carries bytes from one descriptor to another. Either is -1 when that side has ended. */
struct relay {
	int from, to;
	bool from_outer; /* from is ours to read but the caller's to keep: never made non-blocking */
	bool eof;	 /* nothing more will be read; what is in data still goes out */
	bool by_page;	 /* `to` is the caller's pipe, which may block: PIPE_BUF bytes at most, when poll() said so */
	bool keep;	 /* there is no `to`: what is read is kept */
	bool truncated;	 /* not all that was read went on */
	bool bounded;	 /* `last` bytes, and what comes after them is not read any more */
	size_t last;
	size_t start, len;
	char data[STDIO_BUFFER];
};

struct stdio {
	int inside[3];	  /* what the command gets as 0, 1, 2; -1: our own 0, 1, 2 */
	bool keep_stdout; /* do not close our 1 when the command has closed its own */
	bool keep;	  /* output goes to kept, not to our 1 and 2 */
	bool lasting;	  /* the sandbox outlives the command */
	bool confined;	  /* what the command may write is for us to say */
	uid_t user;	  /* whom it runs as, then */
	int input;	  /* then, of some files: the command's, which tells how far it has read; else -1 */
	bool terminal;	  /* 0 and 1 are a terminal: the command gets one of its own */
	bool outlive;	  /* output that nobody reads any more is thrown away */
	struct terminal own;
	uint64_t left; /* bytes of output that still go on; the rest is read and thrown away */
	struct buf kept[3];
	struct relay relays[3];
};
#define STDIO_POLLFDS 6

/* True when the descriptor may be handed over as it is. */
bool stdio_passes(int fd);

#define STDIO_UNLIMITED UINT64_MAX

/* Looks at 0, 1, 2 and makes the pipes. All three must be open; keep, left, lasting, confined, user and the bounds of kept are set.
 * 0 or -errno; -EACCES when 1 or 2 is a file of
 * cgroupfs, procfs and the like, which is not to be written by a sandbox. stdio_free() in any case. */
int stdio_prepare(struct stdio *stdio);
/* In the sandbox's first process: puts the inside ends on 0, 1, 2. The rest is for close_range(). */
int stdio_enter(const struct stdio *stdio);
/* Outside, once the sandbox runs: lets go of the inside ends, so that an end is seen as an end. */
void stdio_leave(struct stdio *stdio);
/* Always STDIO_POLLFDS entries; those with nothing to wait for have fd -1. */
void stdio_watch(const struct stdio *stdio, struct pollfd fds[static STDIO_POLLFDS]);
/* After poll(): moves what can be moved. */
void stdio_move(struct stdio *stdio, const struct pollfd fds[static STDIO_POLLFDS]);
/* The command is gone: no more input. */
void stdio_end_input(struct stdio *stdio);
/* The command is gone, but others may hold its output: what was written up to now is all that is carried on. */
void stdio_end_output(struct stdio *stdio);
/* Nobody writes any more: of what is left of a limit each stream gets what it will, so that what is cut is known before it was read. */
void stdio_settle(struct stdio *stdio);
/* Our terminal has another size. */
void stdio_resize(const struct stdio *stdio);
/* True while output is still on its way. */
bool stdio_busy(const struct stdio *stdio);
void stdio_free(struct stdio *stdio);
