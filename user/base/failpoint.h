/* SPDX-License-Identifier: MIT */
/*
 * Places at which a test build of the daemon dies on demand, to show that a crash between any two steps leaves the system
 * tighter than recorded, never looser. In every other build this is nothing.
 */
#pragma once

#include <stdbool.h>

#ifdef NP_FAILPOINTS
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Will it die at this name? Then what goes on beside that place waits, or is waited for, so that it is known what had happened. */
static inline bool failpoint_is(const char *name)
{
	const char *wanted = getenv("NETPAWL_FAILPOINT");

	return wanted && !strcmp(wanted, name);
}

static inline void failpoint(const char *name)
{
	if (failpoint_is(name))
		raise(SIGKILL);
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

static inline bool failpoint_is(const char *name)
{
	(void)name;
	return false;
}
#endif
