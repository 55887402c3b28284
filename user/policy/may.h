/* SPDX-License-Identifier: MIT */
/*
 * Is there any way in which a name could be reached? For whoever has to answer before it is known what for, as the DNS gate
 * does. Pure.
 */
#ifndef NP_POLICY_MAY_H
#define NP_POLICY_MAY_H

#include "policy/policy.h"

/* The ways: */
#define MAY_HTTP 1 /* TCP to one of inspect_ports */
#define MAY_TCP	 2 /* to other ports */
#define MAY_UDP	 4
#define MAY_ALL	 (MAY_HTTP | MAY_TCP | MAY_UDP)

/* A way that is missing is one in which policy_decide() denies every attempt at this canonical name, whatever its port,
 * request or address. The reverse is not certain: a grant that denies of single ports, of requests or of addresses leave
 * nothing of counts all the same; only one that comes behind a deny of every port, or for MAY_HTTP of all inspect_ports,
 * does not. default: ask grants what no such deny takes. The work is linear in the destinations that match the name. */
unsigned policy_may_name(const struct policy *policy, enum np_mode mode, enum level level, const char *name);

/* Of a name for which policy_may_name() has nothing: the rule that denies it, or NULL: none does, and none allows it. */
const struct rule *policy_denies_name(const struct policy *policy, enum level level, const char *name);

#endif
