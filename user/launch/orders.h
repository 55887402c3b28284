/* SPDX-License-Identifier: MIT */
/*
 * What the launching process and netpawl-init tell each other. Both are of one build: the size of the struct is its version.
 */
#pragma once

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "vocab/exit_codes.h"
#include "vocab/limits.h"

/* Descriptors that netpawl-init finds. */
enum {
	ORDERS_REPORT = 3, /* write end of a pipe: struct init_report */
	ORDERS_CONTROL,	   /* read end of a pipe: one byte for each signal to pass on; its end is the end. Of a kept
			    * sandbox: the socket that it listens on */
	ORDERS_FILE,	   /* struct orders */
	ORDERS_INIT,	   /* the program itself */
	ORDERS_FREE,	   /* the first that is nobody's */
};

#define IDENTITY_GROUPS_MAX 256 /* groups of one user; initgroups() of a larger user is refused, not cut */

struct orders {
	uint32_t size;
	bool confined;	   /* in namespaces of our own, as process 1: give up the rest, too */
	bool has_identity; /* false: stay who we are */
	bool kept;	   /* serve runs until somebody ends the sandbox, see struct kept_order */
	uid_t uid;
	gid_t gid;
	uint32_t n_groups;
	gid_t groups[IDENTITY_GROUPS_MAX];
	sigset_t mask; /* the command's */
};

enum report_kind {
	REPORT_READY = 1, /* confined, about to start the command */
	REPORT_FAILED,	  /* it could not be started */
	REPORT_ENDED,	  /* it has ended; netpawl-init lives until the control pipe is closed */
};

/* Written whole, or not at all: it is below PIPE_BUF. */
struct init_report {
	uint32_t kind;
	int32_t exit_code; /* LAUNCH_* when it failed; else the command's, 128+N after signal N */
	int32_t signal;	   /* that ended the command; 0: none */
	int32_t error;	   /* errno, or 0; EAGAIN: the host's mounts changed on the way, and another try may do */
	char text[400];
};

/*
 * A run in a kept sandbox is one connection to its process 1 (SOCK_SEQPACKET). It begins with this, and with five
 * descriptors: the command's 0, 1, 2, and a file with its words, each with its NUL: the directory, the command, its
 * environment; and a file of the run's own cgroup, which the command's process enters first, by a "0" there. Then one byte
 * comes for each signal to pass on. Back come reports; READY, then ENDED or FAILED. Whose end of the connection is closed before
 * that is gone: netpawl's, then the command is killed; process 1's, then the sandbox is.
 */
struct kept_order {
	uint32_t size;
	uint32_t n_words;   /* of the command */
	uint32_t n_environ; /* of its environment */
	uint32_t bytes;	    /* of the file */
	uint32_t umask;
	sigset_t mask; /* the command's */
	sigset_t
		ignored; /* by the command: what the caller of this run ignores, and not what the maker of the sandbox did */
};
#define KEPT_FDS 5
#define KEPT_GROUP \
	0x80 /* with a signal: for the command's process group, as a terminal would have it, and not for it alone */
