/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants the four above first */
#include <cmocka.h>
#include <stdlib.h>

#include "vocab/session_name.c"

#include "vocab/limits.h"

static void test_good_names(void **state)
{
	static const char *const good[] = {
		"alice/demo",	    "a/b", "0/9", "A.b_c-d/x.y_z-", "a../b..", "a--/b--", "alice@example.org/demo",
		"a.b+c@d.example/e"
	};
	struct session_name name;
	const char *problem = "untouched";

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		memset(&name, 0xff, sizeof(name));
		assert_int_equal(session_name_parse(good[i], &name, &problem), 0);
		assert_string_equal(name.text, good[i]);
		assert_int_equal(name.user_len, strchr(good[i], '/') - good[i]);
		for (size_t k = strlen(good[i]); k < sizeof(name.text); k++)
			assert_int_equal(name.text[k], 0);
	}
	assert_string_equal(problem, "untouched");
}

static void test_bad_names(void **state)
{
	static const struct {
		const char *name, *says;
	} bad[] = {
		{ "", "no slash" },
		{ "alice", "no slash" },
		{ "/demo", "user before the slash is empty" },
		{ "alice/", "session after the slash is empty" },
		{ "/", "user before the slash is empty" },
		{ "a/b/c", "session after the slash has a character" },
		{ "../x", "user before the slash does not start" },
		{ "a/..", "session after the slash does not start" },
		{ "a/.", "session after the slash does not start" },
		{ "-a/b", "user before the slash does not start" },
		{ "a/-rf", "session after the slash does not start" },
		{ "_a/b", "user before the slash does not start" },
		{ "a b/c", "user before the slash has a character" },
		{ "a/b\n", "session after the slash has a character" },
		{ "a/b\x7f", "session after the slash has a character" },
		{ "a/\xc3\xa9", "session after the slash does not start" },
		{ "a/x\xc3\xa9", "session after the slash has a character" },
		{ "a\\x/b", "user before the slash has a character" },
		{ "a%2f/b", "user before the slash has a character" },
		{ "@a/b", "user before the slash does not start" },
		{ "a@b", "no slash" },
		{ "a/b@c", "session after the slash has a character" },
		{ "a/b+c", "session after the slash has a character" },
		{ "a,b/c", "user before the slash has a character" },
		{ "a:b@c/d", "user before the slash has a character" },
	};
	struct session_name name = { .text = "untouched" };

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		const char *problem = NULL;

		assert_int_equal(session_name_parse(bad[i].name, &name, &problem), -EINVAL);
		if (!strstr(problem, bad[i].says))
			fail_msg("%s: said \"%s\"", bad[i].name, problem);
	}
	assert_string_equal(name.text, "untouched");
}

static void test_name_lengths(void **state)
{
	char text[2 * NP_NAME_MAX + 4];
	struct session_name name;
	const char *problem;

	(void)state;
	memset(text, 'x', sizeof(text));
	text[NP_NAME_MAX] = '/';
	text[NP_SESSION_MAX] = '\0';
	assert_int_equal(session_name_parse(text, &name, &problem), 0);
	assert_string_equal(name.text, text);
	text[NP_SESSION_MAX] = 'x';
	text[NP_SESSION_MAX + 1] = '\0';
	assert_int_equal(session_name_parse(text, &name, &problem), -EINVAL);
	assert_non_null(strstr(problem, "session after the slash is longer"));
	text[NP_NAME_MAX] = 'x';
	text[NP_NAME_MAX + 1] = '/';
	assert_int_equal(session_name_parse(text, &name, &problem), -EINVAL);
	assert_non_null(strstr(problem, "user before the slash is longer"));
}

static void test_good_text(void **state)
{
	static const char *const good[] = {
		"customers.csv",
		" ",
		"quarter 3; \"draft\" <b>",
		"\xc3\xa9t\xc3\xa9",	    /* two bytes */
		"\xe6\x97\xa5\xe6\x9c\xac", /* three */
		"\xf0\x9f\x98\x80",	    /* four */
		"\xc2\xa0",		    /* U+00A0: the first after C1 */
		"\xe2\x80\xa9\xe2\x80\xaf", /* U+2029, U+202F: either side of the direction marks */
		"\xe2\x81\xa5\xe2\x81\xaa", /* U+2065, U+206A */
		"\xed\x9f\xbf\xee\x80\x80", /* either side of the surrogates */
		"\xf4\x8f\xbf\xbf",	    /* U+10FFFF */
	};
	const char *problem = NULL;

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		if (text_check(good[i], 128, &problem))
			fail_msg("%zu: %s", i, problem);
}

static void test_bad_text(void **state)
{
	static const struct {
		const char *text, *says;
	} bad[] = {
		{ "", "empty" },
		{ "a\nb", "control" },
		{ "\x1b[2J", "control" },
		{ "a\tb", "control" },
		{ "\x7f", "control" },
		{ "\xc2\x80", "control" },
		{ "\xc2\x9b"
		  "31m",
		  "control" },
		{ "\xc2\x9f", "control" },
		{ "\xe2\x80\xaa", "direction" },
		{ "a\xe2\x80\xae"
		  "b",
		  "direction" },
		{ "\xe2\x81\xa6", "direction" },
		{ "\xe2\x81\xa9", "direction" },
		{ "\x80", "UTF-8" },
		{ "\xbf", "UTF-8" },
		{ "\xff", "UTF-8" },
		{ "\xc3", "UTF-8" }, /* cut short */
		{ "\xe2\x80", "UTF-8" },
		{ "\xf0\x9f\x98", "UTF-8" },
		{ "\xc3(", "UTF-8" },
		{ "\xc0\x80", "UTF-8" }, /* overlong NUL */
		{ "\xc1\xbf", "UTF-8" },
		{ "\xe0\x80\x8a", "UTF-8" }, /* overlong newline */
		{ "\xf0\x80\x80\x8a", "UTF-8" },
		{ "\xed\xa0\x80", "UTF-8" }, /* surrogate */
		{ "\xed\xbf\xbf", "UTF-8" },
		{ "\xf4\x90\x80\x80", "UTF-8" }, /* above U+10FFFF */
		{ "\xf8\x88\x80\x80\x80", "UTF-8" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		/* On the heap and not one byte longer, so that a sanitizer sees a read past the
		 * end. */
		char *copy = strdup(bad[i].text);
		const char *problem = NULL;

		assert_int_equal(text_check(copy, 128, &problem), -EINVAL);
		if (!strstr(problem, bad[i].says))
			fail_msg("%zu: said \"%s\"", i, problem);
		free(copy);
	}
}

static void test_text_length_counts_bytes(void **state)
{
	const char *problem;

	(void)state;
	assert_int_equal(text_check("abcd", 4, &problem), 0);
	assert_int_equal(text_check("abcde", 4, &problem), -EINVAL);
	assert_non_null(strstr(problem, "too long"));
	assert_int_equal(text_check("\xc3\xa9\xc3\xa9", 4, &problem), 0);
	assert_int_equal(text_check("\xc3\xa9\xc3\xa9", 3, &problem), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_good_names),   cmocka_unit_test(test_bad_names),
		cmocka_unit_test(test_name_lengths), cmocka_unit_test(test_good_text),
		cmocka_unit_test(test_bad_text),     cmocka_unit_test(test_text_length_counts_bytes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
