/* SPDX-License-Identifier: MIT */
/* What is wrong with a policy, each with its place. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "vocab/limits.h"

#define PROBLEM_FILE_SIZE 256
#define PROBLEM_TEXT_SIZE 512

struct problem {
	bool warning;
	char file[PROBLEM_FILE_SIZE];
	uint32_t line, column;	      /* from 1; 0: the file as a whole */
	char text[PROBLEM_TEXT_SIZE]; /* a sentence without the place; printable UTF-8 */
	/* The other place that a warning speaks of (the rule that covers this one); line 0: none. */
	char other_file[PROBLEM_FILE_SIZE];
	uint32_t other_line;
};

/* At most NP_POLICY_PROBLEMS of each kind are kept; the rest is counted. */
struct problems {
	struct problem *items; /* in the order found */
	size_t count;
	unsigned errors, warnings; /* found, kept or not */
};

void problems_clear(struct problems *problems);
#define _problems_ __attribute__((__cleanup__(problems_clear)))

/* Adds one. The answer is where to write other_file and other_line, or NULL when it was only counted. */
struct problem *problem_add(struct problems *problems, bool warning, const char *file, uint32_t line, uint32_t column,
			    const char *fmt, ...) __attribute__((format(printf, 6, 7)));

/* Sets them; NULL is fine. */
void problem_point(struct problem *problem, const char *file, uint32_t line);

/* "FILE:LINE:COLUMN: error: text" (or "warning:"), without a newline. */
#define PROBLEM_LINE_SIZE (2 * PROBLEM_FILE_SIZE + PROBLEM_TEXT_SIZE + 64)
void problem_format(const struct problem *problem, char text[static PROBLEM_LINE_SIZE]);
/* The first error (a warning if there is none) as such a line; "" when there is nothing. */
void problems_first(const struct problems *problems, char text[static PROBLEM_LINE_SIZE]);
