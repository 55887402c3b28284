/* SPDX-License-Identifier: MIT */
/* Inside of exchanges. Files: exchange.c (life, verdict, response), exchange_request.c (the request's way),
 * exchange_time.c (how long it waits). */
#ifndef NP_INSPECT_EXCHANGE_H
#define NP_INSPECT_EXCHANGE_H

#include "inspect/worker.h"

/* Answers instead of an origin. With a verdict: its rule is named. */
void exchange_refuse(struct exchange *ex, enum np_reason reason, const struct verdict *verdict, const char *detail);
/* The client's side cannot be finished properly. */
void exchange_break(struct exchange *ex);
/* It has waited for ms, which is all that its rule gives it: name is the key of timeouts. */
void exchange_timed_out(struct exchange *ex, const char *name, uint32_t ms);

#endif
