/* SPDX-License-Identifier: MIT */
/* A filter and, behind a zero byte, what an event says. What was read stays in its bounds, and a filter and its opposite never agree. */
#include "vocab/event_filter.c"

#include <stdint.h>
#include <stdlib.h>

#include "check.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char text[2 * FILTER_TEXT_MAX], problem[FILTER_PROBLEM_SIZE];
	struct event_filter filter;
	struct filter_facts facts = { 0 };
	const char *fact;

	if (size >= sizeof(text))
		return 0;
	memcpy(text, data, size);
	text[size] = '\0';
	fact = strlen(text) < size ? text + strlen(text) + 1 : "";
	for (unsigned key = 0; key < FILTER_KEYS; key++)
		facts.of[key] = key % 2 ? fact : NULL;
	if (event_filter_parse(text, &filter, problem))
		return 0;
	check(filter.n <= FILTER_WORDS_MAX && filter.text[sizeof(filter.text) - 1] == '\0');
	for (unsigned i = 0; i < filter.n; i++) {
		struct event_filter one = { .n = 1 };
		bool passes;

		memcpy(one.text, filter.text, sizeof(one.text));
		one.words[0] = filter.words[i];
		for (unsigned v = 0; v < one.words[0].n; v++)
			check(one.words[0].values[v] < sizeof(one.text) && one.text[one.words[0].values[v]]);
		passes = event_filter_passes(&one, &facts);
		one.words[0].negated = !one.words[0].negated;
		check(passes != event_filter_passes(&one, &facts));
	}
	event_filter_passes(&filter, &facts);
	return 0;
}
