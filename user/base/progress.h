/* SPDX-License-Identifier: MIT */
/*
 * Long work shows that it goes on: a line on standard error that is rewritten about ten times a second where that is a terminal, and
 * a plain line every ten seconds where it is not. Short work shows nothing.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct progress {
	const char *what; /* "cases" */
	uint64_t done, total;
	uint64_t start_ms, shown_ms;
	bool terminal, drawn;
};

/* total 0: how much there is is not known. */
void progress_start(struct progress *progress, const char *what, uint64_t total);
void progress_step(struct progress *progress, uint64_t n);
/* The terminal's line is empty again: at the end, and before something else is written there. */
void progress_clear(struct progress *progress);

/* The line, without its end: "cases 1200/5000 24% [#####...............]". Pure. */
void progress_format(const struct progress *progress, unsigned width, char *ret, unsigned size);
