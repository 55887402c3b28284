/* SPDX-License-Identifier: MIT */
/*
 * The ledger of one inspector: memory that it shares with netpawld, as a file in the run directory, so that it outlives both of
 * them. It holds what the inspector counts of each sandbox, and a ring of reports on requests that have ended.
 *
 * One writer a field. netpawld believes nothing of what an inspector writes: positions and lengths are checked, and a report is
 * copied before it is looked at. An inspector cannot make the file shorter: its system call filter has no call for that.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "link/link.h"
#include "vocab/limits.h"

#define LEDGER_VERSION 3u

/* Of one sandbox. netpawld says which slot is whose (struct link_sandbox). */
struct ledger_slot {
	/* the inspector's */
	/* HTTP requests and tunnels, those that are open included, and connections that were refused before they had one.
	 * Each is reported once when it has ended, or counted as suppressed. */
	uint64_t requests;
	uint64_t refused;	 /* of these, and of the queries */
	uint64_t sent, received; /* of bodies and tunnels: given to the origin's connection, come from there */
	uint64_t suppressed;	 /* without a report: over the rate, or the ring was full */
	uint64_t queries;	 /* that came to the DNS gate */
	uint64_t query_reports;	 /* for some of them: reported, or counted as suppressed */
	/* netpawld's */
	uint64_t taken; /* reports from the ring, and losses that it has told of */
};
_Static_assert(sizeof(struct ledger_slot) == 64, "one cache line");

struct ledger {
	uint32_t version, report_size; /* LEDGER_VERSION, sizeof(struct link_request): else nobody can read it */
	uint64_t pad1[7];
	/* the inspector's */
	uint64_t written; /* bytes that were put into the ring, ever */
	uint64_t cut;	  /* requests and tunnels that a new level or policy has ended */
	uint64_t pad2[6];
	/* netpawld's */
	uint64_t read; /* bytes that were taken from the ring, ever */
	uint64_t pad3[495];
	char ring[NP_LEDGER_RING];
	struct ledger_slot slots[NP_SANDBOXES_MAX];
};
_Static_assert(offsetof(struct ledger, ring) == 4096 && NP_LEDGER_RING % 4096 == 0, "whole pages");

/* Maps the whole of it; munmap() frees. */
int ledger_map(int fd, struct ledger **ret);

/* For the writer of a counter. */
static inline void ledger_add(uint64_t *counter, uint64_t n)
{
	__atomic_store_n(counter, *counter + n, __ATOMIC_RELAXED);
}

/* For the other side, and never past what a JSON number holds. */
static inline uint64_t ledger_get(const uint64_t *counter)
{
	uint64_t n = __atomic_load_n(counter, __ATOMIC_RELAXED);

	return n < INT64_MAX / NP_WORKERS_MAX ? n : INT64_MAX / NP_WORKERS_MAX;
}

/* The inspector's: puts one report into the ring. -ENOSPC when there is no room for it. */
int ledger_put(struct ledger *ledger, const void *data, size_t len);

/* netpawld's: copies the report at `at` (which counts all bytes, ever). Its length; 0 when there is none yet; -EPROTO for
 * nonsense. *ret_next is where the next one begins. */
ssize_t ledger_next(const struct ledger *ledger, uint64_t at, char data[static LINK_BYTES_MAX], uint64_t *ret_next);
