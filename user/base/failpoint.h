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
/* A bound that a test would take too long, or may not, go beyond: it sets this variable to a lower one. */
static inline unsigned failpoint_bound(const char *variable, unsigned bound)
{
	const char *text = getenv(variable);

	return text ? (unsigned)strtoul(text, NULL, 10) : bound;
}
#else
static inline void failpoint(const char *name)
{
	(void)name;
}

static inline unsigned failpoint_bound(const char *variable, unsigned bound)
{
	(void)variable;
	return bound;
}

static inline void failpoint_hold(const char *name)
{
	(void)name;
}
#endif
