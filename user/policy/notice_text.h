/* SPDX-License-Identifier: MIT */
/*
 * What an agent is told when its session's network tightens. The words are the policy's (notices:), or ours. Pure.
 *
 * In them a name in braces stands for a fact: {session} {cause} {dataset} {reason} {level} {mode} {allowed}. Braces
 * themselves are written twice.
 */
#pragma once

#include "base/buf.h"
#include "policy/policy.h"

struct notice_facts {
	const char *session;
	struct np_rung rung; /* PROXIED or NONE: no change leads to FULL */
	const char *dataset; /* NULL: none was named */
	const char *reason;  /* as given; NULL: none was */
	bool starts;	     /* the session was made there, perhaps because it had been there before it was forgotten */
	bool raised;	     /* the level rose; if neither, the policy gave it a stricter mode */
};

/* "the dataset \"customers.csv\" came in (ticket 4711)": what {cause} stands for. */
void notice_cause(const struct notice_facts *facts, struct buf *out);

/* NULL, or a sentence that says what is wrong with such a text. */
#define NOTICE_PROBLEM_SIZE 320
const char *notice_template_check(const char *text, size_t len, char problem[static NOTICE_PROBLEM_SIZE]);

/* At most NP_NOTICE_TEXT bytes are appended; what is longer is cut at a character and ends in "...". */
void notice_write(const struct policy *policy, const struct notice_facts *facts, struct buf *out);
