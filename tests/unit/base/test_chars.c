/* SPDX-License-Identifier: MIT */
#include "base/chars.c"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

static void decodes(void **state)
{
	static const struct {
		const char *text;
		size_t len;
		unsigned used;
		uint32_t c;
	} cases[] = {
		{ "a", 1, 1, 'a' },
		{ "", 0, 0, 0 },
		{ "\0", 1, 1, 0 },
		{ "\x7f", 1, 1, 0x7f },
		{ "\xc3\xa9", 2, 2, 0xe9 },
		{ "\xc3\xa9", 1, 0, 0 }, /* cut */
		{ "\xe2\x82\xac", 3, 3, 0x20ac },
		{ "\xe2\x82\xac", 2, 0, 0 },
		{ "\xf0\x9f\x98\x80", 4, 4, 0x1f600 },
		{ "\xf0\x9f\x98", 3, 0, 0 },
		{ "\xf4\x8f\xbf\xbf", 4, 4, 0x10ffff },
		{ "\x80", 1, 0, 0 },
		{ "\xc0\x80", 2, 0, 0 }, /* overlong */
		{ "\xe0\x80\x80", 3, 0, 0 },
		{ "\xf0\x80\x80\x80", 4, 0, 0 },
		{ "\xed\xa0\x80", 3, 0, 0 },	 /* surrogate */
		{ "\xf4\x90\x80\x80", 4, 0, 0 }, /* beyond the last */
		{ "\xff", 1, 0, 0 },
		{ "\xc3\x28", 2, 0, 0 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		uint32_t c = 0;

		assert_int_equal(char_decode(cases[i].text, cases[i].len, &c), cases[i].used);
		assert_int_equal(c, cases[i].c);
	}
}

static void printable(void **state)
{
	static const uint32_t shown[] = { ' ', '~', 0xa0, 0xe9, 0x20ac, 0x4e2d, 0x1f600, 0xfffd };
	static const uint32_t hidden[] = { 0,	   '\t',   '\n',   0x1b,   0x7f,   0x85,   0x9b,   0xad,
					   0x200b, 0x200d, 0x200f, 0x2028, 0x202e, 0x2066, 0xfeff, 0xe0041 };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(shown); i++)
		assert_true(char_is_printable(shown[i]));
	for (size_t i = 0; i < ARRAY_SIZE(hidden); i++)
		assert_false(char_is_printable(hidden[i]));
}

/* The first and the last of each range that is hidden, and their neighbours. */
static void edges_of_what_is_hidden(void **state)
{
	static const struct {
		uint32_t first, last;
	} hidden[] = { { 0x7f, 0x9f },	   { 0xad, 0xad },	{ 0x61c, 0x61c },   { 0x180e, 0x180e },
		       { 0x200b, 0x200f }, { 0x2028, 0x202e },	{ 0x2060, 0x206f }, { 0xfeff, 0xfeff },
		       { 0xfff9, 0xfffb }, { 0xe0000, 0xe0fff } };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(hidden); i++) {
		assert_true(char_is_printable(hidden[i].first - 1));
		assert_false(char_is_printable(hidden[i].first));
		assert_false(char_is_printable(hidden[i].last));
		assert_true(char_is_printable(hidden[i].last + 1));
	}
}

/* Of all that two and three bytes can be: what is taken is what its number is written as, so no two texts are one. */
static void every_short_form(void **state)
{
	(void)state;
	for (uint32_t bytes = 0; bytes < 1u << 24; bytes += bytes < 1u << 16 ? 1 : 7) {
		const char text[] = { (char)(bytes & 0xff), (char)(bytes >> 8 & 0xff), (char)(bytes >> 16) };
		uint32_t c;
		unsigned n = char_decode(text, sizeof(text), &c);
		unsigned char again[3];

		if (n < 2)
			continue;
		if (n == 2) {
			again[0] = (unsigned char)(0xc0 | c >> 6);
			again[1] = (unsigned char)(0x80 | (c & 0x3f));
			assert_in_range(c, 0x80, 0x7ff);
		} else {
			again[0] = (unsigned char)(0xe0 | c >> 12);
			again[1] = (unsigned char)(0x80 | (c >> 6 & 0x3f));
			again[2] = (unsigned char)(0x80 | (c & 0x3f));
			assert_in_range(c, 0x800, 0xffff);
			assert_false(c >= 0xd800 && c <= 0xdfff);
		}
		assert_memory_equal(again, text, n);
	}
}

static void words(void **state)
{
	static const char *const table[] = { NULL, "one", "two" };

	(void)state;
	assert_int_equal(word_index(table, 3, "two"), 2);
	assert_int_equal(word_index(table, 2, "two"), -EINVAL);
	assert_int_equal(word_index(table, 3, "on"), -EINVAL);
	assert_int_equal(word_index(table, 3, NULL), -EINVAL);
	assert_true(WORD_IS_ONE_OF("one", table) && !WORD_IS_ONE_OF("", table));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(words),
		cmocka_unit_test(decodes),
		cmocka_unit_test(printable),
		cmocka_unit_test(edges_of_what_is_hidden),
		cmocka_unit_test(every_short_form),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
