/* SPDX-License-Identifier: MIT */
/* A launched run, as launches.c starts it and launch_streams.c carries its bytes. */
#pragma once

#include <stdint.h>
#include <sys/queue.h>

#include "base/fs.h"
#include "daemon/launches.h"
#include "vocab/limits.h"

#define TAIL_MAX 3 /* bytes of a character whose rest has not come yet */

struct stream {
	struct launch *launch;
	const char *name;
	int fd;	    /* -1: ended */
	bool waits; /* for its reader: it is not read */
	char tail[TAIL_MAX];
	size_t n_tail;
};

struct launch {
	TAILQ_ENTRY(launch) of_all;
	struct launches *launches;
	uint64_t id;
	pid_t pid; /* 0: reaped */
	int pidfd;
	struct stream streams[2];
	struct buf lines;
	size_t dropped; /* bytes of lines that were read and are forgotten */
	bool truncated;
	uid_t caller;
	bool attach, terminal;
	bool read;	    /* of one that is attached: its reader is there */
	int to;		    /* its input; -1: it has none (any more) */
	struct buf input;   /* not taken yet */
	bool input_waits;   /* to is watched */
	bool input_ends;    /* after these */
	char kept_name[96]; /* of the file with its lines; empty: it has none */
	int kept_fd;
};

TAILQ_HEAD(launch_list, launch);

struct launches {
	struct launches_config config;
	char exe[FS_PATH_SIZE], socket[FS_PATH_SIZE], dir[FS_PATH_SIZE];
	struct launch_list all; /* the oldest first */
	unsigned count;
	size_t bytes; /* of all lines */
};

/* The launcher's descriptors of its own output, from here on: it only holds them. See launch_takeover.c. */
#define LAUNCH_HELD 3

int launch_new(struct launches *l, const struct run_launch *how, struct launch **ret);
int launch_watch(struct launch *launch);
void launch_free(struct launch *launch); /* and forgets its output */
bool launch_ended(const struct launch *launch);
struct launch *launch_find(const struct launches *l, uint64_t id); /* NULL: there is none */
void fd_end(struct launches *l, int *fd);
void input_close(struct launch *launch);
int launches_input(void *ctx, uint64_t id, const struct run_input *input, struct failure *ret_failure);
int launches_output(void *ctx, uint64_t id, size_t from, struct run_text *ret, bool *ret_ended);
/* Reads its output, or leaves it unread for as long as its reader has not read enough. */
void streams_hold(struct launch *launch);
loop_fd_fn on_output; /* of a struct stream */

/* -- launch_room.c: both may end what is kept of other launches, which have ended. False: there is no room. */
bool launch_room_make(struct launches *l);			  /* for one more */
bool launch_output_room(const struct launch *launch, size_t len); /* for so many bytes, which it is about to get */

/* -- launch_takeover.c: for the next daemon */
void launch_keep(struct launch *launch);
void launch_keep_line(struct launch *launch, const char *data, size_t len);
void launch_forget(struct launch *launch);
void launch_leave_kept(struct launch *launch); /* for the next daemon */
int launches_recover(struct launches *l);
