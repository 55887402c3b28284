/* SPDX-License-Identifier: MIT */
/* "Did you mean ...?" */
#pragma once

#include <stddef.h>

/* How many letters have to be added, dropped, changed or swapped with their neighbour to get from a to b; ASCII case
 * does not count. Anything above most, and words of more than SUGGEST_MAX bytes, give most + 1. */
#define SUGGEST_MAX 64
unsigned edit_distance(const char *a, const char *b, unsigned most);

/* The nearest of the words offered so far. best is NULL when none is near enough: at most two edits, and fewer for
 * short words, for every word of two letters is two edits from any other. */
struct suggestion {
	const char *text; /* what was written */
	const char *best;
	unsigned distance;
};
void suggestion_offer(struct suggestion *suggestion, const char *word);

const char *suggest_word(const char *text, const char *const *words, size_t n_words);
