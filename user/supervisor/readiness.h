/* SPDX-License-Identifier: MIT */
/* For how long no inspector has been ready, and why. A start takes a moment, and so does one more after a crash: that is no fault yet. Pure:
 * time is passed in. Zeroed: nobody waits for any. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define UNREADY_FAILURES 3     /* starts that failed, ... */
#define UNREADY_MS	 3000  /* ... and none was ready for so long: it will not mend by itself */
#define UNREADY_SLOW_MS	 15000 /* they do not end, and say nothing either */

struct readiness {
	uint64_t since_ns; /* none is ready since; 0: one is, or none is expected yet */
	unsigned failures; /* starts since then that failed */
	bool lasts;	   /* it has been said: the words below stay, or each change of them would be news */
	char why[128];	   /* the last of them failed */
};

static inline void readiness_gain(struct readiness *r)
{
	*r = (struct readiness){ 0 };
}

/* None is ready any more. */
static inline void readiness_lose(struct readiness *r, uint64_t at_ns)
{
	if (!r->since_ns)
		r->since_ns = at_ns;
}

static inline void readiness_fail(struct readiness *r, const char *why)
{
	if (!r->since_ns)
		return;
	r->failures++;
	if (!r->lasts)
		snprintf(r->why, sizeof(r->why), "%s", why);
}

/* NULL: all is well, or may be in a moment. Else why not. */
static inline const char *readiness_problem(struct readiness *r, uint64_t at_ns)
{
	uint64_t ms = r->since_ns && at_ns > r->since_ns ? (at_ns - r->since_ns) / 1000000 : 0;

	if (ms >= UNREADY_SLOW_MS || (ms >= UNREADY_MS && r->failures >= UNREADY_FAILURES))
		r->lasts = true;
	if (r->lasts && !r->failures && !r->why[0])
		snprintf(r->why, sizeof(r->why), "nothing was heard of it");
	return r->lasts ? r->why : NULL;
}
