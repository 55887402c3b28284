/* SPDX-License-Identifier: MIT */
/* Parts of plan_make(). */
#ifndef NP_LAUNCH_PLAN_INTERNAL_H
#define NP_LAUNCH_PLAN_INTERNAL_H

#include "launch/plan.h"

/* The array is the caller's to free, the words in it are the arena's and the request's. 0 or -ENOMEM. */
int environment_make(const struct plan_request *request, struct arena *arena, char ***ret);

#endif
