/* SPDX-License-Identifier: MIT */
#include "control/url_text.c"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

static void decodes(void **state)
{
	char text[] = "a%2Fb%20c%41%7e", plain[] = "plain", empty[] = "", utf8[] = "%c3%A9";

	(void)state;
	assert_int_equal(url_decode(text), 0);
	assert_string_equal(text, "a/b cA~");
	assert_int_equal(url_decode(plain), 0);
	assert_string_equal(plain, "plain");
	assert_int_equal(url_decode(empty), 0);
	assert_string_equal(empty, "");
	assert_int_equal(url_decode(utf8), 0);
	assert_string_equal(utf8, "\xc3\xa9");
}

static void decodes_once(void **state)
{
	char text[] = "%2541";

	(void)state;
	assert_int_equal(url_decode(text), 0);
	assert_string_equal(text, "%41");
}

static void refuses_and_leaves_alone(void **state)
{
	static const char *const bad[] = {
		"%", "%4", "a%", "%4g", "%g4", "%%41", "a%00b", "%0a", "a\nb", "%7f", "a%-1"
	};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		char text[16];

		strcpy(text, bad[i]);
		assert_int_equal(url_decode(text), -EINVAL);
		assert_string_equal(text, bad[i]);
	}
}

static void reads_numbers(void **state)
{
	uint64_t n = 77;

	(void)state;
	assert_int_equal(url_number("0", 10, &n), 0);
	assert_int_equal(n, 0);
	assert_int_equal(url_number("18446744073709551615", UINT64_MAX, &n), 0);
	assert_true(n == UINT64_MAX);
	n = 77;
	assert_int_equal(url_number("18446744073709551616", UINT64_MAX, &n), -ERANGE);
	assert_int_equal(url_number("99999999999999999999999", UINT64_MAX, &n), -ERANGE);
	assert_int_equal(url_number("11", 10, &n), -ERANGE);
	assert_int_equal(url_number("", 10, &n), -EINVAL);
	assert_int_equal(url_number("-1", 10, &n), -EINVAL);
	assert_int_equal(url_number("+1", 10, &n), -EINVAL);
	assert_int_equal(url_number(" 1", 10, &n), -EINVAL);
	assert_int_equal(url_number("1x", 10, &n), -EINVAL);
	assert_int_equal(url_number("0x1", 10, &n), -EINVAL);
	assert_int_equal(n, 77);
}

static void reads_flags(void **state)
{
	bool flag = true;

	(void)state;
	assert_int_equal(url_flag(NULL, &flag), 0);
	assert_false(flag);
	assert_int_equal(url_flag("1", &flag), 0);
	assert_true(flag);
	assert_int_equal(url_flag("yes", &flag), -EINVAL);
	assert_int_equal(url_flag("", &flag), -EINVAL);
	assert_int_equal(url_flag("10", &flag), -EINVAL);
	assert_true(flag);
	assert_int_equal(url_flag("0", &flag), 0);
	assert_false(flag);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(decodes),
		cmocka_unit_test(decodes_once),
		cmocka_unit_test(refuses_and_leaves_alone),
		cmocka_unit_test(reads_numbers),
		cmocka_unit_test(reads_flags),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
