/* SPDX-License-Identifier: MIT */
/* What a verdict asks a person about: the same words on either side of the link. Pure. */
#pragma once

#include "policy/verdict.h"

/* Where it is written that somebody is asked: a rule, or default:. Printable ASCII: anything else is a question mark. */
void asked_place(const struct policy *policy, enum level level, const struct verdict *verdict,
		 char text[static PLACE_TEXT_SIZE]);
/* The rule that asks, by what it says: a reload may move it to another line. */
uint64_t asked_rule(const struct verdict *verdict);
/* Does the policy ask about this, by that rule? method: empty for a connection, then url is "host:port". */
bool asked_still(const struct policy *policy, const struct np_rung *rung, const char *session, const char *method,
		 const char *url, bool has_body, uint64_t rule);
