/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants the four above first */
#include <cmocka.h>

#include "wire/resolver_list.c"

#include "base/cleanup.h"

static void what_c_ares_takes_is_taken(void **state)
{
	static const char *const good[] = {
		"192.0.2.53",	       "192.0.2.53:5353", "2001:db8::53",      "[2001:db8::53]",
		"[2001:db8::53]:5353", "fe80::1%eth0",	  "[fe80::1%eth0]:53", "192.0.2.53,[::1]:65535,::1",
		"1.2.3.4:1,::",
	};
	size_t len;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(good); i++)
		assert_null(resolver_list_wrong(good[i], &len));
}

static void the_wrong_word_is_named(void **state)
{
	static const char *const wrong[][2] = {
		{ "", "" },
		{ ",", "" },
		{ "foo", "foo" },
		{ "192.0.2.53,", "" },
		{ "192.0.2.53,,::1", "" },
		{ "::1,dns.example,::2", "dns.example" },
		{ "1.2.3.4:99999", "1.2.3.4:99999" },
		{ "1.2.3.4:0", "1.2.3.4:0" },
		{ "1.2.3.4:", "1.2.3.4:" },
		{ "1.2.3.4:5x", "1.2.3.4:5x" },
		{ "1.2.3", "1.2.3" },
		{ "[1.2.3.4]", "[1.2.3.4]" },
		{ "[::1", "[::1" },
		{ "[::1]53", "[::1]53" },
		{ "[::1]:", "[::1]:" },
		{ "[]", "[]" },
		{ "::1%", "::1%" },
		{ "1.2.3.4%eth0", "1.2.3.4%eth0" },
		{ "1.2.3.4, ::1", " ::1" },
		{ "fe80::1%a-name-that-is-long", "fe80::1%a-name-that-is-long" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		size_t len = 99;
		const char *word = resolver_list_wrong(wrong[i][0], &len);

		assert_non_null(word);
		assert_int_equal(len, strlen(wrong[i][1]));
		assert_memory_equal(word, wrong[i][1], len);
	}
}

static void an_address_alone(void **state)
{
	(void)state;
	assert_true(resolver_address_is_valid("192.0.2.53", 10));
	assert_true(resolver_address_is_valid("fe80::1%eth0", 12));
	assert_false(resolver_address_is_valid("192.0.2.53:53", 13));
	assert_false(resolver_address_is_valid("[::1]", 5));
	assert_false(resolver_address_is_valid("", 0));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_c_ares_takes_is_taken),
		cmocka_unit_test(the_wrong_word_is_named),
		cmocka_unit_test(an_address_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
