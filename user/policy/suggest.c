/* SPDX-License-Identifier: MIT */
#include "policy/suggest.h"

#include <string.h>

#define SUGGEST_EDITS 2

static char lower_case(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static unsigned smaller_of(unsigned a, unsigned b)
{
	return a < b ? a : b;
}

/* Optimal string alignment: three rows of the table are enough. */
unsigned edit_distance(const char *a, const char *b, unsigned most)
{
	unsigned rows[3][SUGGEST_MAX + 1];
	size_t n = strnlen(a, SUGGEST_MAX + 1), m = strnlen(b, SUGGEST_MAX + 1);

	if (n > SUGGEST_MAX || m > SUGGEST_MAX || n > m + most || m > n + most)
		return most + 1;
	for (size_t j = 0; j <= m; j++)
		rows[0][j] = (unsigned)j;
	for (size_t i = 1; i <= n; i++) {
		const unsigned *before = rows[(i + 1) % 3], *above = rows[(i - 1) % 3];
		unsigned *row = rows[i % 3], best = row[0] = (unsigned)i;

		for (size_t j = 1; j <= m; j++) {
			unsigned change = lower_case(a[i - 1]) != lower_case(b[j - 1]);

			row[j] = smaller_of(above[j - 1] + change, smaller_of(above[j], row[j - 1]) + 1);
			if (i > 1 && j > 1 && lower_case(a[i - 1]) == lower_case(b[j - 2]) &&
			    lower_case(a[i - 2]) == lower_case(b[j - 1]))
				row[j] = smaller_of(row[j], before[j - 2] + 1);
			best = smaller_of(best, row[j]);
		}
		/* A swap looks two rows back, so one row above the bound does not yet say that all will be. */
		if (best > most + 1)
			return most + 1;
	}
	return smaller_of(rows[n % 3][m], most + 1);
}

void suggestion_offer(struct suggestion *suggestion, const char *word)
{
	size_t a = strnlen(suggestion->text, SUGGEST_MAX + 1), b = strnlen(word, SUGGEST_MAX + 1);
	unsigned distance = edit_distance(suggestion->text, word, SUGGEST_EDITS);

	if (a && b > a && !strncmp(suggestion->text, word, a) && word[a] == '_') /* "output" for "output_limit" */
		distance = 1;
	if (distance > SUGGEST_EDITS || 2 * distance > (a > b ? a : b))
		return;
	if (!suggestion->best || distance < suggestion->distance) {
		suggestion->best = word;
		suggestion->distance = distance;
	}
}

const char *suggest_word(const char *text, const char *const *words, size_t n_words)
{
	struct suggestion suggestion = { .text = text };

	for (size_t i = 0; i < n_words; i++)
		suggestion_offer(&suggestion, words[i]);
	return suggestion.best;
}
