/* SPDX-License-Identifier: MIT */
/* Inside of the deciders. Files: deciders.c (all of them; what is asked, and what came of it), decider_process.c (the processes
 * and the connection of one). */
#pragma once

#include <sys/queue.h>
#include <sys/types.h>

#include "base/exposition.h"
#include "base/fs.h"
#include "base/hash.h"
#include "base/table.h"
#include "link/decide_message.h"
#include "supervisor/breaker.h"
#include "supervisor/deciders.h"

/* Something that it was asked and that is waited for. */
struct asked {
	struct table_node node; /* by its number */
	TAILQ_ENTRY(asked) next;
	struct decider_line *of;
	uint64_t id, since_ns;
	bool needs_body; /* it has said so: once is enough */
};
TAILQ_HEAD(asked_queue, asked);

/* One decider of the policy. */
struct decider_line {
	struct deciders *deciders;
	TAILQ_ENTRY(decider_line) next;
	struct decider is; /* a copy: its texts are below */
	char **words;	   /* of its command */
	char *name, *socket;
	bool wanted; /* the policy has it */
	/* The channel. */
	pid_t reader;  /* its netpawl-decide; 0: none */
	pid_t command; /* 0: none, or not its own; not reaped yet */
	int link;      /* to the reader */
	bool ready;
	uint64_t start_ns;
	unsigned starts, failures; /* in all; in a row */
	/* What it was asked. */
	struct asked_queue asked; /* the oldest is first: all have the same time */
	unsigned n_asked;
	struct breaker breaker;
	/* Counts. */
	uint64_t answers[DECISION_KINDS], late, lost, turned_away; /* not in time; with the channel; at once */
	uint64_t sum_us, max_us;				   /* of answers */
	struct histogram latency;				   /* of answers */
};
TAILQ_HEAD(decider_line_list, decider_line);

struct deciders {
	struct deciders_config config;
	char exe[FS_PATH_SIZE], root[FS_PATH_SIZE];
	struct hash_key key;
	struct table asked;
	struct decider_line_list lines;
};

/* -- decider_process.c */
/* A new channel, if there is none and it is time. */
void line_start(struct decider_line *line);
void line_drop(struct decider_line *line); /* without a word; what was asked is the caller's to end */
bool line_reap(struct decider_line *line); /* true: nothing of it is left */

/* -- deciders.c */
void line_end(struct decider_line *line, const char *why); /* the channel is over */
int line_receive(struct decider_line *line);		   /* one message of its reader; -EAGAIN; -errno */
