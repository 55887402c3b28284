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

/* Waits, when another thread dies at the place of this name: what comes here has not happened then. */
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
