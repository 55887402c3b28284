/* SPDX-License-Identifier: MIT */
/* A policy from text, and every line that was told about it. Every failure ends the test. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "policy/policy.h"
#include "vocab/limits.h"

static struct policy *policy;
static struct problems found;
static char found_lines[NP_POLICY_PROBLEMS * 2 * PROBLEM_LINE_SIZE];

static inline int found_clear(void **state)
{
	(void)state;
	policy_free(policy);
	policy = NULL;
	problems_clear(&found);
	return 0;
}

/* All problems as lines, each with a newline. */
static inline const char *found_join(void)
{
	char line[PROBLEM_LINE_SIZE];
	size_t at = 0;

	found_lines[0] = '\0';
	for (size_t i = 0; i < found.count; i++) {
		problem_format(&found.items[i], line);
		at += (size_t)snprintf(found_lines + at, sizeof(found_lines) - at, "%s\n", line);
	}
	return found_lines;
}

static inline void load_n(const char *text, size_t len)
{
	int r;

	found_clear(NULL);
	r = policy_load_text("p.yaml", text, len, &policy, &found);
	assert_int_equal(r == 0, policy != NULL);
	assert_int_equal(r == 0, found.errors == 0);
}

/* Exactly these lines are told. */
static inline void tells_n(const char *text, size_t len, const char *lines)
{
	load_n(text, len);
	assert_string_equal(found_join(), lines);
}

static inline void tells(const char *text, const char *lines)
{
	tells_n(text, strlen(text), lines);
}

/* Nothing is told, and there is a policy. */
static inline void loads(const char *text)
{
	tells(text, "");
	assert_non_null(policy);
}

/* One rule, from line 3 on: "  - " is put in front, so that its first key is in column 5. */
static inline const char *one_rule(const char *rule)
{
	static char text[16384];

	snprintf(text, sizeof(text), "version: 1\nrules:\n  - %s\n", rule);
	return text;
}

#define RULE_TELLS(rule, lines) tells(one_rule(rule), lines)
#define RULE_LOADS(rule)	loads(one_rule(rule))
