/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "loop/loop.h"

struct splice;

/* It is over: bytes that went from near to far, and back. From the loop or from splice_tick() only; the owner frees it.
 * After both ends have said all it is over when the far one has acknowledged everything. */
typedef void splice_closed_fn(void *ctx, uint64_t sent, uint64_t received);

/* Takes over both sockets (connected, non-blocking; the far one resets on close), also on failure. */
int splice_start(struct loop *loop, struct lane *lane, int near, int far, splice_closed_fn *closed, void *ctx,
		 struct splice **ret);
void splice_count(const struct splice *splice, uint64_t *ret_sent, uint64_t *ret_received); /* so far */
size_t splice_unsent(const struct splice *splice); /* bytes that it only waits for the far end to acknowledge */
bool splice_owes(const struct splice *splice);	   /* the far end has not acknowledged all that the near one says */
void splice_tick(struct splice *splice);	   /* every 50 ms or so: are there any left? */
/* NULL is fine; closes both, with resets unless both have said all. What the far end has not acknowledged is lost. */
void splice_free(struct splice *splice);
