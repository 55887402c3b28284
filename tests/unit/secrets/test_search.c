/* SPDX-License-Identifier: MIT */
/* Which values have to be looked for in every way of reading a text, and which are found by one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
/* cmocka wants the four above first */
#include <cmocka.h>

#include "secrets/search.c"

#include "base/buf.h"
#include "secrets/scrub.h"

static struct search *search_for(const char *value)
{
	struct needle needles[FORMS_MAX];
	struct search *search = NULL;
	int n = forms_make(value, strlen(value), 0, needles);

	assert_true(n > 0);
	assert_int_equal(search_new(needles, (size_t)n, &search), 0);
	return search;
}

static void test_what_reads_as_an_escape(void **state)
{
	static const struct {
		const char *value;
		bool escapes;
	} cases[] = {
		{ "abcdefgh", false },	  { "abcd%zz-efgh", false }, { "abcd%4z-efgh", false },
		{ "abcd%41-efgh", true }, { "abcdefgh%", true },     { "abcdefgh%4", true },
		{ "abcdefgh%z", false },  { "abcd&efgh", false },    { "abcd&amp;efgh", true },
		{ "abcd&#efgh", true },	  { "abcdefgh&", true },     { "abcd\\defgh", true },
		{ "abcd\\nefgh", true },  { "abcd\\\\efgh", true },  { "abcdefgh\\", true },
		{ "abcd\\\"efgh", true },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct search *search = search_for(cases[i].value);

		if (search_has_escapes(search) != cases[i].escapes)
			fail_msg("%s", cases[i].value);
		search_free(search);
	}
}

static uint64_t seed = 88172645463325252ull;

static unsigned chance(unsigned n)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return (unsigned)(seed >> 33) % n;
}

/* A character as it is, or in one of the ways that one can write it. */
static void put(struct buf *out, char c, unsigned how)
{
	const unsigned byte = (unsigned char)c;

	switch (how) {
	case 0:
		buf_printf(out, "%%%02x", byte);
		return;
	case 1:
		buf_printf(out, "%%25%02X", byte);
		return;
	case 2:
		buf_printf(out, "\\u%04x", byte);
		return;
	case 3:
		buf_printf(out, "\\x%02x", byte);
		return;
	case 4:
		buf_printf(out, "&#%u;", byte);
		return;
	case 5:
		buf_printf(out, "&#x%x;", byte);
		return;
	default:
		break;
	}
	if (how == 6 && strchr("\\/\"'", c))
		buf_append(out, "\\", 1);
	buf_append(out, &c, 1);
	if (how == 7 && c == '&')
		buf_puts(out, "amp;");
}

static void neighbour(struct buf *out)
{
	static const char *const words[] = { "%", "\\u", "\\u0",  "\\u00", "\\", "&#",	"&#x",
					     "&", "%4",	 "%25",	  "\\x",   "\n", "x",	"1",
					     "a", ";",	 "&amp;", "\\\\",  "41", "&am", "%2" };

	for (unsigned n = chance(3); n; n--)
		buf_puts(out, words[chance(sizeof(words) / sizeof(words[0]))]);
}

/* With a value that has no escapes of its own, reading a text in every way finds nothing that reading it in one does not. */
static void test_the_others_are_found_by_one_reading(void **state)
{
	static const char letters[] = "14abcdfgnuxzlqm;#/\"%%%&&&";
	const unsigned cases = 10000;
	unsigned met = 0;

	(void)state;
	for (unsigned i = 0; i < cases; i++) {
		_buf_ struct buf text = BUF_INIT(4096);
		struct scrubber one = { 0 }, all = { 0 };
		char value[24] = { 0 };
		struct search *search;
		const unsigned kind = chance(9), often = 1 + chance(4), len = 8 + chance(12);
		size_t used;

		for (unsigned k = 0; k < len; k++)
			value[k] = letters[chance(sizeof(letters) - 1)];
		search = search_for(value);
		if (!search->has_escapes) {
			neighbour(&text);
			for (unsigned k = 0; k < len; k++)
				put(&text, value[k], chance(often) ? 9 : chance(2) ? kind : chance(9));
			neighbour(&text);
			assert_int_equal(buf_error(&text), 0);
			one.search = all.search = search;
			search->has_escapes = true;
			if (scrub_look(&all, text.data, text.len, true, &used) == 0) {
				met++;
				search->has_escapes = false;
				if (scrub_look(&one, text.data, text.len, true, &used) != 0)
					fail_msg("the value [%s] in [%s]", value, text.data);
			}
		}
		scrubber_free(&one);
		scrubber_free(&all);
		search_free(search);
	}
	assert_true(met > cases / 100);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_reads_as_an_escape),
		cmocka_unit_test(test_the_others_are_found_by_one_reading),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
