/* SPDX-License-Identifier: MIT */
/* Who is asked by a verdict that asks, for how long, and what trying again is good for: words for people. Pure. */
#pragma once

#include "policy/decide.h"

#define ASKED_TEXT_SIZE 640
struct asked_whom {
	char whom[ASKED_TEXT_SIZE];    /* "a person: root, ...", "the decider "guard" (...)" */
	char about[ASKED_TEXT_SIZE];   /* what an answer is for: "writing to h.example:443, in TLS" */
	char waits[ASKED_TEXT_SIZE];   /* how long, and what the client gets then */
	char retry[ASKED_TEXT_SIZE];   /* does that make sense? */
	const struct decider *decider; /* NULL: a person is asked */
};

/* False, and *ret untouched: it asks nobody. */
bool asked_whom(const struct policy *policy, const struct facts *facts, const struct verdict *verdict,
		struct asked_whom *ret);
