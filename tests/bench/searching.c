/* SPDX-License-Identifier: MIT */
/*
 * searching: how fast the values of credentials are searched for, in pieces as they come from an origin, by how many there are and by
 * what the text is. One JSON list on stdout.
 */
#include "bench.h"

#include "base/buf.h"
#include "secrets/scrub.h"

#define PIECE  (16u << 10) /* a TLS record */
#define BYTES  (4u << 20)
#define ROUNDS 7

static uint64_t state = 88172645463325252ull;

static unsigned chance(unsigned n)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (unsigned)(state >> 33) % n;
}

static void random_bytes(char *text)
{
	for (size_t i = 0; i < BYTES; i++)
		text[i] = (char)chance(256);
}

static void base64_lines(char *text)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

	for (size_t i = 0; i < BYTES; i++)
		text[i] = i % 77 == 76 ? '\n' : digits[chance(64)];
}

/* As an API answers: members, numbers, URLs, escaped quotes. */
static void json_text(char *text)
{
	static const char *const words[] = { "\"id\": 12345678, ",
					     "\"node_id\": \"MDEwOlJlcG9zaXRvcnkxMjk2MjY5\", ",
					     "\"full_name\": \"octocat/Hello-World\",\n      ",
					     "\"html_url\": \"https://github.com/octocat/Hello-World\", ",
					     "\"description\": \"This your first repo! \\\"quoted\\\"\", ",
					     "\"created_at\": \"2011-01-26T19:01:12Z\",\n      ",
					     "\"private\": false, ",
					     "{\n",
					     "},\n" };
	size_t n = 0;

	while (n < BYTES) {
		const char *word = words[chance(sizeof(words) / sizeof(words[0]))];

		for (; *word && n < BYTES; word++)
			text[n++] = *word;
	}
}

static void html_text(char *text)
{
	static const char *const words[] = {
		"the ",	      "of ",
		"inspector ", "<a href=\"/wiki/Network_(disambiguation)\" title=\"Network\">network</a> ",
		"request ",   "which ",
		"&amp; ",     "is ",
		"therefore ", "<p>\n",
		"packets ",   "</p>\n",
		"&nbsp;",     "<span class=\"reference\">"
	};
	size_t n = 0;

	while (n < BYTES) {
		const char *word = words[chance(sizeof(words) / sizeof(words[0]))];

		for (; *word && n < BYTES; word++)
			text[n++] = *word;
	}
}

enum value_kind {
	NO_SIGNS,
	SIGNS,	 /* one in ten has % and & */
	ESCAPES, /* one in ten has what reads as an escape */
};

/* Tokens as GitHub makes them. */
static struct search *search_of(unsigned n, enum value_kind signs)
{
	static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
	struct needle *needles = calloc(n * FORMS_MAX, sizeof(*needles));
	struct search *search = NULL;
	size_t all = 0;

	for (unsigned i = 0; i < n; i++) {
		char value[41] = "ghp_";
		int made;

		for (unsigned k = 4; k < 40; k++)
			value[k] = letters[chance(62)];
		if (signs && i % 10 == 0)
			memcpy(value + 20, signs == SIGNS ? "%z2&B" : "%42&l", 5);
		made = forms_make(value, 40, i, needles + all);
		if (made < 0)
			errx(1, "forms");
		all += (size_t)made;
	}
	if (search_new(needles, all, &search) < 0)
		errx(1, "search");
	free(needles);
	return search;
}

static void pass(struct scrubber *scrubber, const char *text)
{
	size_t at = 0, used;

	while (at < BYTES) {
		const size_t left = BYTES - at, len = left < PIECE ? left : PIECE;

		if (scrub_look(scrubber, text + at, len, len == left, &used) != -1)
			errx(1, "it is not there");
		at += used ? used : len;
	}
}

int main(void)
{
	static const struct {
		const char *name;
		void (*make)(char *text);
	} texts[] = { { "random bytes", random_bytes },
		      { "base64 in lines", base64_lines },
		      { "JSON", json_text },
		      { "HTML", html_text } };
	static const struct {
		unsigned n;
		enum value_kind signs;
	} sets[] = { { 1, NO_SIGNS }, { 10, NO_SIGNS }, { 100, NO_SIGNS }, { 10, SIGNS }, { 10, ESCAPES } };
	static const char *const words[] = { "", ", with %, & in values", ", with %42 in values" };
	char *text = malloc(BYTES);
	const char *before = "";

	printf("[");
	for (size_t t = 0; t < sizeof(texts) / sizeof(texts[0]); t++) {
		texts[t].make(text);
		for (size_t s = 0; s < sizeof(sets) / sizeof(sets[0]); s++) {
			struct search *search = search_of(sets[s].n, sets[s].signs);
			struct scrubber scrubber = { .search = search };
			uint64_t best = UINT64_MAX;

			for (unsigned round = 0; round < ROUNDS; round++) {
				uint64_t start = clock_ns(CLOCK_PROCESS_CPUTIME_ID), took;

				pass(&scrubber, text);
				took = clock_ns(CLOCK_PROCESS_CPUTIME_ID) - start;
				best = took < best ? took : best;
			}
			printf("%s{\"text\":\"%s\",\"credentials\":%u,\"values\":\"%s\",\"mb_s\":%.0f}", before,
			       texts[t].name, sets[s].n, words[sets[s].signs], BYTES * 1e3 / (double)best);
			before = ",\n";
			scrubber_free(&scrubber);
			search_free(search);
		}
	}
	puts("]");
	free(text);
	return 0;
}
