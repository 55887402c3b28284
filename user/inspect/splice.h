/* SPDX-License-Identifier: MIT */
#ifndef NP_INSPECT_SPLICE_H
#define NP_INSPECT_SPLICE_H

#include <stdint.h>

#include "loop/loop.h"

struct splice;

/* It is over: bytes that went from near to far, and back. From the loop only; the owner frees it. */
typedef void splice_closed_fn(void *ctx, uint64_t sent, uint64_t received);

/* Takes over both sockets (connected, non-blocking), also on failure. */
int splice_start(struct loop *loop, int near, int far, splice_closed_fn *closed, void *ctx, struct splice **ret);
void splice_count(const struct splice *splice, uint64_t *ret_sent, uint64_t *ret_received); /* so far */
void splice_free(struct splice *splice); /* NULL is fine; closes both, with resets unless both have said all */

#endif
