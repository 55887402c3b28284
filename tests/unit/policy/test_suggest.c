/* SPDX-License-Identifier: MIT */
#include "policy/suggest.c"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

static void distances(void **state)
{
	static const struct {
		const char *a, *b;
		unsigned distance; /* 3: more than two */
	} cases[] = {
		{ "", "", 0 },
		{ "a", "", 1 },
		{ "", "ab", 2 },
		{ "", "abc", 3 },
		{ "method", "methods", 1 },
		{ "methods", "method", 1 },
		{ "mehtods", "methods", 1 },
		{ "METHODS", "methods", 0 },
		{ "metods", "methods", 1 },
		{ "motheds", "methods", 2 },
		{ "allow", "alow", 1 },
		{ "deny", "allow", 3 },
		{ "kitten", "sitting", 3 },
		{ "abcdef", "badcfe", 3 },
		{ "abcd", "badc", 2 },
		{ "inspect_port", "inspect_ports", 1 },
		{ "xa", "ax", 1 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(edit_distance(cases[i].a, cases[i].b, 2), cases[i].distance);
		assert_int_equal(edit_distance(cases[i].b, cases[i].a, 2), cases[i].distance);
	}
}

/* The plain table, without bounds, to check against. */
static unsigned plain_distance(const char *a, const char *b)
{
	unsigned d[16][16];
	size_t n = strlen(a), m = strlen(b);

	for (size_t i = 0; i <= n; i++)
		for (size_t j = 0; j <= m; j++) {
			d[i][j] = (unsigned)(i + j);
			if (!i || !j)
				continue;
			d[i][j] = smaller_of(d[i - 1][j - 1] + (a[i - 1] != b[j - 1]),
					     smaller_of(d[i - 1][j], d[i][j - 1]) + 1);
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
				d[i][j] = smaller_of(d[i][j], d[i - 2][j - 2] + 1);
		}
	return d[n][m];
}

static void distances_as_the_plain_table_has_them(void **state)
{
	char words[2][8];
	unsigned seed = 1;

	(void)state;
	for (unsigned i = 0; i < 200000; i++) {
		for (unsigned w = 0; w < 2; w++) {
			size_t len = (seed = seed * 1103515245 + 12345) >> 16 & 7;

			for (size_t j = 0; j < len; j++)
				words[w][j] = (char)('a' + ((seed = seed * 1103515245 + 12345) >> 16) % 3);
			words[w][len] = '\0';
		}
		for (unsigned most = 0; most < 4; most++)
			assert_int_equal(edit_distance(words[0], words[1], most),
					 smaller_of(plain_distance(words[0], words[1]), most + 1));
	}
}

static void long_words_are_far_from_everything(void **state)
{
	char most[SUGGEST_MAX + 1], more[SUGGEST_MAX + 2];

	(void)state;
	memset(most, 'a', SUGGEST_MAX);
	most[SUGGEST_MAX] = '\0';
	memset(more, 'a', SUGGEST_MAX + 1);
	more[SUGGEST_MAX + 1] = '\0';
	assert_int_equal(edit_distance(most, most, 2), 0);
	assert_int_equal(edit_distance(more, more, 2), 3);
	assert_int_equal(edit_distance(most, more, 2), 3);
}

static void suggests_the_nearest(void **state)
{
	static const char *const words[] = { "methods", "paths", "by", "for", "PUBLIC", "mathods" };

	(void)state;
	assert_string_equal(suggest_word("method", words, 6), "methods");
	assert_string_equal(suggest_word("mathod", words, 6), "mathods");
	assert_string_equal(suggest_word("public", words, 6), "PUBLIC");
	assert_string_equal(suggest_word("path", words, 6), "paths");
	assert_string_equal(suggest_word("fro", words, 6), "for");
	assert_null(suggest_word("hosts", words, 6));
	assert_null(suggest_word("x", words, 6)); /* two edits from "by", and nothing of it */
	assert_null(suggest_word("", words, 6));
	assert_null(suggest_word("method", words, 0));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(distances),
		cmocka_unit_test(distances_as_the_plain_table_has_them),
		cmocka_unit_test(long_words_are_far_from_everything),
		cmocka_unit_test(suggests_the_nearest),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
