/* SPDX-License-Identifier: MIT */
#include "policy/problem.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "policy/quote.h"
#include "vocab/limits.h"

void problems_clear(struct problems *problems)
{
	free(problems->items);
	*problems = (struct problems){ 0 };
}

/* Of a name that is too long the end is kept: that is where the file is. */
static void file_copy(char out[static PROBLEM_FILE_SIZE], const char *file)
{
	size_t len = strlen(file);
	char tail[PROBLEM_FILE_SIZE];

	if (len >= PROBLEM_FILE_SIZE) {
		snprintf(tail, sizeof(tail), "...%s", file + len - (PROBLEM_FILE_SIZE - 4));
		file = tail;
		len = PROBLEM_FILE_SIZE - 1;
	}
	text_clean(out, PROBLEM_FILE_SIZE, file, len);
}

static struct problem *problems_grow(struct problems *problems)
{
	size_t n = problems->count;
	struct problem *items;

	/* Room for 8, then for the next power of two. */
	if (n == 0 || (n >= 8 && !(n & (n - 1)))) {
		items = realloc(problems->items, (n ? 2 * n : 8) * sizeof(*items));
		if (!items)
			return NULL;
		problems->items = items;
	}
	problems->count++;
	return memset(&problems->items[n], 0, sizeof(*items));
}

struct problem *problem_add(struct problems *problems, bool warning, const char *file, uint32_t line, uint32_t column,
			    const char *fmt, ...)
{
	unsigned *found = warning ? &problems->warnings : &problems->errors;
	char text[2 * PROBLEM_TEXT_SIZE];
	struct problem *problem;
	va_list ap;

	if ((*found)++ >= NP_POLICY_PROBLEMS)
		return NULL;
	problem = problems_grow(problems);
	if (!problem)
		return NULL;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	problem->warning = warning;
	file_copy(problem->file, file);
	problem->line = line;
	problem->column = column;
	text_clean(problem->text, sizeof(problem->text), text, strlen(text));
	return problem;
}

void problem_point(struct problem *problem, const char *file, uint32_t line)
{
	size_t len = strnlen(file, PROBLEM_FILE_SIZE - 1);

	if (!problem)
		return;
	memcpy(problem->other_file, file, len);
	problem->other_file[len] = '\0';
	problem->other_line = line;
}

void problem_format(const struct problem *problem, char text[static PROBLEM_LINE_SIZE])
{
	char place[32] = "";

	if (problem->line && problem->column)
		snprintf(place, sizeof(place), ":%u:%u", problem->line, problem->column);
	else if (problem->line)
		snprintf(place, sizeof(place), ":%u", problem->line);
	snprintf(text, PROBLEM_LINE_SIZE, "%s%s: %s: %s", problem->file, place, problem->warning ? "warning" : "error",
		 problem->text);
}

void problems_first(const struct problems *problems, char text[static PROBLEM_LINE_SIZE])
{
	const struct problem *first = NULL;

	for (size_t i = 0; i < problems->count && (!first || first->warning); i++)
		if (!first || !problems->items[i].warning)
			first = &problems->items[i];
	text[0] = '\0';
	if (first)
		problem_format(first, text);
}
