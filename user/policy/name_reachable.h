/* SPDX-License-Identifier: MIT */
/*
 * Is there any way in which a name could be reached? For whoever has to answer before it is known what for, as the DNS gate
 * does. Pure.
 */
#pragma once

#include "policy/policy.h"

/* The ways: */
#define MAY_HTTP 1 /* TCP to one of inspect_ports */
#define MAY_TCP	 2 /* to other ports */
#define MAY_UDP	 4
#define MAY_ALL	 (MAY_HTTP | MAY_TCP | MAY_UDP)

/* session: as in struct facts (decide.h). A way that is missing is one in which policy_decide() denies every attempt at this canonical name, whatever its port,
 * request or address. The reverse is not certain: a grant still counts when denies of single ports, requests or addresses
 * together leave nothing of it. It does not count when a deny of every port comes first (for MAY_HTTP: of every one of
 * inspect_ports). `default: ask` and `allow` grant of TCP what no such deny takes. The work is linear in the destinations that match. */
unsigned policy_may_name(const struct policy *policy, const struct np_rung *rung, const char *session,
			 const char *name);

/* Is it a name that default: speaks of? One that a rule grants in some way is. Else not a single label, nor what no resolver
 * of the internet knows (.local), nor a name that begins with one that a rule grants: a search list made that, and a resolver
 * goes on to the name that was meant only when this one does not exist. */
bool policy_default_knows(const struct policy *policy, const struct np_rung *rung, const char *session,
			  const char *name);

/* Of a name for which policy_may_name() has nothing: the destination, of a rule, that denies it; or NULL: none does, and none
 * allows it. */
const struct pattern *policy_denies_name(const struct policy *policy, const struct np_rung *rung, const char *session,
					 const char *name);
