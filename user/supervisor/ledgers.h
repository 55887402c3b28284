/* SPDX-License-Identifier: MIT */
/*
 * The ledgers of all inspectors (link/ledger.h), and the daemon's own index of them: which slot is which sandbox's, how
 * far each ring was read, what was told. All are files in the run directory, mapped: whoever is killed, they stay, and the
 * next daemon goes on from there. A reboot may take them, and with them go the sandboxes.
 */
#pragma once

#include <stdbool.h>

#include "link/ledger.h"
#include "session/gate.h"
#include "vocab/limits.h"

struct ledgers;

/* What the index says of a sandbox: enough for an event about it, also when it is gone. */
struct ledger_entry {
	uint64_t cgroup_id;	/* 0: the slot is free */
	uint64_t everyday;	/* refusals of the gate that are no news, or of a sandbox before, and not counted */
	uint64_t message;	/* suppressed requests that an event has told of */
	uint64_t gate_reported; /* suppressed events of the gate, likewise */
	struct np_rung rung;
	uint32_t partial; /* it was there before it was counted */
	char sandbox[NP_SANDBOX_ID_MAX + 4];
	char session[NP_LABEL_SIZE];
	uint64_t pad[21];
};
_Static_assert(sizeof(struct ledger_entry) == 512, "entries of the index");

struct ledgers_config {
	const char *dir; /* is made */
	unsigned count;	 /* of inspectors */
	/* A report. False: it is nonsense. */
	bool (*on_report)(void *data, const struct ledger_entry *of, const struct link_request *report,
			  const char *const tails[LINK_TAILS]);
	/* So many requests will never be reported. */
	void (*on_lost)(void *data, const struct ledger_entry *of, uint64_t count);
	/* So many requests were suppressed since it was last told. */
	void (*on_suppressed)(void *data, const struct ledger_entry *of, uint64_t count);
	/* seq of the last event in the log. */
	uint64_t (*last_seq)(void *data);
	void *data;
};

/* Reports what a daemon before this one has left. */
int ledgers_new(const struct ledgers_config *config, struct ledgers **ret);
void ledgers_free(struct ledgers *ledgers); /* the files stay */

/* A slot for a sandbox, from 1, also when it has one; 0: there is no room, it is not counted. */
uint32_t ledgers_enter(struct ledgers *ledgers, uint64_t cgroup_id, const char *sandbox, const char *session,
		       const struct np_rung *rung, bool partial);
void ledgers_leave(struct ledgers *ledgers, uint64_t cgroup_id);		/* tells what is left to tell */
struct ledger_entry *ledgers_find(struct ledgers *ledgers, uint64_t cgroup_id); /* or NULL */
/* After a start: forgets sandboxes that are gone. */
void ledgers_sweep(struct ledgers *ledgers, bool (*is_used)(void *data, uint64_t cgroup_id), void *data);

/* What all inspectors have counted of it. */
void ledgers_sum(const struct ledgers *ledgers, const struct ledger_entry *entry, struct ledger_slot *ret);
/* The same of all sandboxes, those that are gone since this daemon's start included: it only grows. */
void ledgers_total(const struct ledgers *ledgers, struct ledger_slot *ret);
/* Suppressed requests that nobody was told of: they count as told now. */
uint64_t ledgers_suppressed(const struct ledgers *ledgers, struct ledger_entry *entry);
/* About every second: tells what was suppressed of sandboxes that were quiet since. What it costs does not grow with the
 * number of sandboxes. */
void ledgers_tick(struct ledgers *ledgers);
uint64_t ledgers_cut(const struct ledgers *ledgers);
uint64_t ledgers_unread(const struct ledgers *ledgers, unsigned index); /* bytes of reports that wait */

/* Of one inspector: its file; takes the reports that are there, up to `most` bytes or a little more (0, or -EPROTO); when it is dead: takes them, tells what it
 * left open, and makes the ring ready for the next. */
int ledgers_fd(const struct ledgers *ledgers, unsigned index);
int ledgers_drain(struct ledgers *ledgers, unsigned index, uint64_t most);
void ledgers_reset(struct ledgers *ledgers, unsigned index);
