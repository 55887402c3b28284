/* SPDX-License-Identifier: MIT */
/*
 * The log in front of the store, for raises. An acknowledgement waits until a raise is on the disk, and a commit of SQLite that waits
 * for it costs more than the disk alone: several pages, each written at an odd place. Here a raise is one block of a file that
 * is laid out already, which the kernel writes while the raise goes on (base/disk_write.h); the commit, which need not be synced then,
 * follows when the answer is on its way.
 *
 * What SQLite has not, or loses when the kernel ends, is in here, and goes into the store at the next start (store_raises.c). An
 * entry is whole or not there at all: a digest covers it, and no two share a block, so that a crash while one is written harms no other.
 */
#pragma once

#include <stdint.h>

#include "session/store.h"

#define RAISE_BLOCK 4096 /* bytes of one entry: what file systems write at once */

struct raise_log;

/* What store_session_raise() is told. */
struct raise_entry {
	const char *session;
	struct np_rung rung;
	const struct dataset_row *dataset; /* may be NULL */
	const struct notice_row *notice;   /* may be NULL; its number is the store's to give */
};

/* What such an entry is read back as. */
struct raise_read {
	struct raise_entry entry; /* points into this, and into the block */
	uint64_t number;
	struct session_name session;
	struct dataset_row dataset;
	struct notice_row notice;
};

/* Without a file. number: entries have numbers that go up. -E2BIG: it does not fit. */
int raise_block_write(const struct raise_entry *entry, uint64_t number, char block[static RAISE_BLOCK]);
/* -ENOENT: there is no entry, or none that is whole. */
int raise_block_read(const char block[static RAISE_BLOCK], struct raise_read *ret);

/* Makes the file where there is none, with mode 0600, and lays it out. */
int raise_log_open(const char *path, struct raise_log **ret);
void raise_log_close(struct raise_log *log); /* NULL is fine */
/* Every entry that is whole, the oldest first. Stops at a negative answer of fn and returns it. */
int raise_log_each(const struct raise_log *log, int (*fn)(void *data, const struct raise_read *read), void *data);

/* Takes an entry, which raise_log_write() begins to write. *ret_number is its. -EAGAIN: its block has one of which the store may not be sure yet, see
 * raise_log_settled(). -E2BIG: it does not fit. -ESTALE: the file was removed. */
int raise_log_put(struct raise_log *log, const struct raise_entry *entry, uint64_t *ret_number);
void raise_log_write(struct raise_log *log);
int raise_log_wait(struct raise_log *log); /* it is on the disk when this returns 0, whoever began it */
/* The entry that was put last. */
int raise_log_last(const struct raise_log *log, struct raise_read *ret);
/* The next number will be higher than this one, too. The highest that there is. */
uint64_t raise_log_follow(struct raise_log *log, uint64_t number);
/* The store has all entries up to this number on the disk: their blocks may be used again. */
void raise_log_settled(struct raise_log *log, uint64_t number);
