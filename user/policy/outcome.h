/* SPDX-License-Identifier: MIT */
/*
 * What a sandbox meets, for people: the verdict of the rules, with what the gate, the DNS gate and the inspector say by
 * themselves, whatever the rules are. They do it where it happens; tests/e2e/test_differential.py holds the two against
 * each other. Pure.
 *
 *   - loopback and the addresses of this host (facts.local) are the sandbox's own listeners and host_loopback; rules have
 *     no say in them;
 *   - multicast and broadcast are refused;
 *   - in PROXIED port 53 is the DNS gate's, a synthetic address stands for a name, and a name is for TCP only;
 *   - in PROXIED a name that leads to this host, to nowhere or to many is refused (address_refused).
 */
#pragma once

#include "policy/decide.h"

struct verdict policy_outcome(const struct policy *policy, const struct facts *facts);

/* The URL of the upstream proxy that it goes by; NULL: none, or it goes nowhere. */
const char *outcome_proxy(const struct policy *policy, const struct facts *facts, const struct verdict *verdict);

/* Has no rule a say in such an outcome? */
static inline bool outcome_is_beside_rules(enum np_reason reason)
{
	return reason == NP_R_HOST_LOOPBACK || reason == NP_R_HOST_PORT || reason == NP_R_MULTICAST ||
	       reason == NP_R_ADDRESS_REFUSED || reason == NP_R_NAME_FORGOTTEN;
}

/* One sentence: what was decided, by which rule, and why. */
#define VERDICT_TEXT_SIZE 1280
void verdict_text(const struct policy *policy, const struct facts *facts, const struct verdict *verdict,
		  char text[static VERDICT_TEXT_SIZE]);
