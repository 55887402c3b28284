/* SPDX-License-Identifier: MIT */
/*
 * One destination of a policy, from text to struct pattern. Pure.
 *
 *   NAME | ADDRESS | ADDRESS/BITS, then perhaps :PORT, :FIRST-LAST or :*, then perhaps /tcp or /udp
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "policy/rule.h"
#include "wire/hostname.h"

/* What is not written stays 0: ports, protocols. ret->name is name, where the canonical name goes. 0, -EINVAL with
 * a sentence, or -ENOMEM. */
#define PATTERN_PROBLEM_SIZE 400
int pattern_parse(const char *text, size_t len, char name[static NAME_SIZE], struct pattern *ret,
		  char problem[static PATTERN_PROBLEM_SIZE]);

/* The name of such a destination: labels, "*" for one of them, "**" in front for one or more; or "." and a name: that one
 * and everything below it. -ENOMEM too. */
int pattern_name(const char *text, size_t len, char name[static NAME_SIZE], char problem[static PATTERN_PROBLEM_SIZE]);

/* Who uses a destination says what it means where no port or protocol is written. */
enum pattern_use {
	PATTERN_GRANT, /* allow, ask, decide */
	PATTERN_REFUSE,
	PATTERN_FULL,	    /* the list for FULL, allow and deny */
	PATTERN_READ,	    /* the list for runs that may only read */
	PATTERN_CREDENTIAL, /* hosts of a credential: names, TCP, port 443 unless written */
};
/* Fills in what was not written. NULL, or a sentence that says why it cannot be used so, and pattern is untouched. */
const char *pattern_settle(struct pattern *pattern, enum pattern_use use);

/* Of a settled pattern: port 53 is one of several. */
bool pattern_spans_dns(const struct pattern *pattern);
/* Metadata addresses are some of its addresses, but not all. */
bool pattern_spans_metadata(const struct pattern *pattern);
