/* SPDX-License-Identifier: MIT */
/* What a verdict asks a person about: the same words on either side of the link. Pure. */
#pragma once

#include "policy/verdict.h"

/* Where it is written that somebody is asked: a rule, or default:. Printable ASCII: anything else is a question mark. */
void asked_place(const struct policy *policy, enum level level, const struct verdict *verdict,
		 char text[static PLACE_TEXT_SIZE]);
/* The rule that asks, by what it says: a reload may move it to another line. */
uint64_t asked_rule(const struct verdict *verdict);
/* What a question on record is about. */
struct asked {
	struct np_rung rung;
	uint64_t rule;
	const char *session;
	const char *method; /* empty for a connection, then url is "host:port" */
	const char *url;
	const char *headers; /* "name: value" a line */
	bool has_body;
};
/* Does the policy still ask about it, by that rule? */
bool asked_still(const struct policy *policy, const struct asked *asked);
