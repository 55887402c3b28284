/* SPDX-License-Identifier: MIT */
/* What ledgers.c and ledger_files.c share. */
#pragma once

#include "base/table.h"
#include "supervisor/ledgers.h"

/* The daemon's alone. */
struct index {
	uint32_t version, entry_size;
	uint32_t reserved; /* slots that have memory */
	uint32_t pad1;
	/* Of each ledger: bytes that were taken from the ring, and the seq of the event that the report there becomes: if
	 * the log has it, a daemon died between writing it and moving on. */
	uint64_t read[NP_WORKERS_MAX], seq[NP_WORKERS_MAX];
	uint64_t pad2[510 - 2 * NP_WORKERS_MAX];
	struct ledger_entry entries[NP_SANDBOXES_MAX];
};
_Static_assert(offsetof(struct index, entries) == 4096, "a page");

struct ledgers {
	struct ledgers_config config;
	struct index *index;
	struct ledger *ledgers[NP_WORKERS_MAX]; /* NULL: there is none */
	int index_fd, fds[NP_WORKERS_MAX];
	struct table by_cgroup;
	struct table_node *nodes; /* of each slot */
	bool fresh;		  /* the index is: what ledgers hold is nobody's */
	bool wiped;		  /* what a ledger of another version had counted is lost */
	uint32_t reserved;	  /* slots that have memory in every file */
	uint32_t free_from;	  /* no slot below it is free */
	uint32_t used_to;	  /* none from it on is used */
	struct ledger_slot gone;  /* what was counted of sandboxes that have left */
	uint32_t turn;		  /* where the next tick begins */
};

/* ledger_files.c. 0 or -errno. */
int index_open(struct ledgers *l);
int ledger_open(struct ledgers *l, unsigned i); /* the index comes first */
int chunk_reserve(struct ledgers *l);		/* memory for some more slots, in every file; -ENOSPC: these are all */
