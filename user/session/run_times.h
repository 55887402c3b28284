/* SPDX-License-Identifier: MIT */
/* When the time of a run is over: by the record's times, whatever is done to the wall's clock. */
#pragma once

#include "session/service_internal.h"

bool run_is_over(struct service *service, const struct run_row *run); /* it waits, and its time is over */
/* It has lost_us, and whoever runs it had time to report its end. */
bool run_is_lost(struct service *service, const struct run_row *run);
/* Its time begins now: the record has until_us. */
void run_time_begin(struct service *service, uint64_t id, uint64_t until_us, uint64_t for_us);
/* What the record gets as the time of something that happens to a run that waits: it holds that against expires_us. */
uint64_t run_wall_us(const struct service *service, const struct run_row *run);
/* Around a look at all open runs: those that were not asked about are forgotten. */
void run_times_begin(struct service *service);
void run_times_end(struct service *service);
