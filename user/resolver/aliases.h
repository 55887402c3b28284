/* SPDX-License-Identifier: MIT */
/* The names that a name stands for (CNAME) on the way to an address: whoever keeps the address keeps them, for a rule may
 * deny them. Never changed once they are made, so they are shared. */
#pragma once

#include <stdlib.h>

#include "sandbox.h"

struct aliases {
	unsigned refs;
	char names[]; /* as facts.aliases (policy/decide.h) has them */
};

/* Where a host leads. */
struct route {
	struct np_addr addr;
	struct aliases *aliases; /* NULL: none */
};

static inline struct aliases *aliases_ref(struct aliases *aliases)
{
	if (aliases)
		aliases->refs++;
	return aliases;
}

static inline void aliases_unref(struct aliases *aliases)
{
	if (aliases && !--aliases->refs)
		free(aliases);
}

/* Instead of what was there. */
static inline void route_set(struct route *route, const struct route *to)
{
	struct aliases *old = route->aliases;

	*route = *to;
	aliases_ref(route->aliases);
	aliases_unref(old);
}

static inline void route_clear(struct route *route)
{
	aliases_unref(route->aliases);
	route->aliases = NULL;
}
