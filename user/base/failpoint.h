/* SPDX-License-Identifier: MIT */
/*
 * Places at which a test build of the daemon dies on demand, to show that a crash
 * between any two steps leaves the system tighter than recorded, never looser.
 * In every other build this is nothing.
 */
#ifndef NP_BASE_FAILPOINT_H
#define NP_BASE_FAILPOINT_H

#ifdef NP_FAILPOINTS
#include <signal.h>
#include <stdlib.h>
#include <string.h>

static inline void failpoint(const char *name)
{
	const char *wanted = getenv("NETPAWL_FAILPOINT");

	if (wanted && !strcmp(wanted, name))
		raise(SIGKILL);
}
#else
static inline void failpoint(const char *name)
{
	(void)name;
}
#endif

#endif
