/* SPDX-License-Identifier: MIT */
/*
 * Places at which a test build of the daemon dies on demand, to show that a crash between any two steps leaves the system
 * tighter than recorded, never looser. In every other build this is nothing.
 */
#pragma once

#ifdef NP_FAILPOINTS
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static inline void failpoint(const char *name)
{
	const char *wanted = getenv("NETPAWL_FAILPOINT");

	if (wanted && !strcmp(wanted, name))
		raise(SIGKILL);
}

/* If a test has the daemon die at this name in another thread, waits for that: what follows here has not happened when it dies. */
static inline void failpoint_hold(const char *name)
{
	const char *wanted = getenv("NETPAWL_FAILPOINT");

	while (wanted && !strcmp(wanted, name))
		pause();
}
#else
static inline void failpoint(const char *name)
{
	(void)name;
}

static inline void failpoint_hold(const char *name)
{
	(void)name;
}
#endif
