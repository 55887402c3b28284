/* SPDX-License-Identifier: MIT */
#include "policy/quote.c"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

#include "base/chars.h"
#include "base/cleanup.h"

static void quotes(void **state)
{
	static const struct {
		const char *text, *quoted;
	} cases[] = {
		{ "", "\"\"" },
		{ "a b", "\"a b\"" },
		{ "a\"b\\", "\"a\\\"b\\\\\"" },
		{ "\x1b[31m", "\"\\u001b[31m\"" },
		{ "\xff\xc3", "\"\\xff\\xc3\"" },
		{ "\xc3\xa9", "\"\xc3\xa9\"" },
		{ "\xe2\x80\xae", "\"\\u202e\"" },
		{ "\xf3\xa0\x81\x81", "\"\\U000e0041\"" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		assert_string_equal(QUOTE(cases[i].text, strlen(cases[i].text)), cases[i].quoted);
	assert_string_equal(QUOTE("a\0b", 3), "\"a\\u0000b\"");
}

/* Whatever the length and the kind of characters: it fits, is in quotes, and is cut between two of them. */
static void long_text_is_cut(void **state)
{
	static const char *const units[] = {
		"a", "\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x98\x80", "\x01", "\xff", "\""
	};
	char text[1024];

	(void)state;
	for (size_t u = 0; u < ARRAY_SIZE(units); u++) {
		for (size_t n = 0; n < 200; n++) {
			const char *out;
			size_t len, unit = strlen(units[u]);

			for (size_t i = 0; i < n; i++)
				memcpy(text + i * unit, units[u], unit);
			out = QUOTE(text, n * unit);
			len = strlen(out);
			assert_true(len >= 2 && len < QUOTE_SIZE);
			assert_true(out[0] == '"' && out[len - 1] == '"');
			for (size_t i = 0; i < len;) {
				uint32_t c;
				unsigned used = char_decode(out + i, len - i, &c);

				assert_true(used && char_is_printable(c));
				i += used;
			}
			if (n == 199)
				assert_non_null(strstr(out, "...\""));
		}
	}
}

static void cleans(void **state)
{
	char out[8], same[] = "a\x1b"
			      "b\xff\xe2\x80\xae"
			      "c";

	(void)state;
	text_clean(out, sizeof(out), "abc", 3);
	assert_string_equal(out, "abc");
	text_clean(out, sizeof(out), "abcdefg", 7);
	assert_string_equal(out, "abcdefg");
	text_clean(out, sizeof(out), "abcdefgh", 8);
	assert_string_equal(out, "abcd...");
	text_clean(out, sizeof(out),
		   "abc\xc3\xa9"
		   "efgh",
		   9); /* the dots do not split a character */
	assert_string_equal(out, "abc...");
	text_clean(out, sizeof(out), "\n\x80\0", 3);
	assert_string_equal(out, "???");
	text_clean(out, sizeof(out), "", 0);
	assert_string_equal(out, "");
	text_clean(out, 4, "abcd", 4);
	assert_string_equal(out, "...");
	text_clean(same, sizeof(same), same, strlen(same));
	assert_string_equal(same, "a?b??c");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(quotes),
		cmocka_unit_test(long_text_is_cut),
		cmocka_unit_test(cleans),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
