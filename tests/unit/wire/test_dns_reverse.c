/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants the four above first */
#include <cmocka.h>

#include "wire/dns_reverse.c"

#include "base/cleanup.h"
#include "vocab/words.h"

static void reads(const char *name, const char *expected)
{
	char text[ADDR_TEXT_SIZE];
	struct np_addr addr;

	assert_int_equal(dns_reverse_parse(name, &addr), 0);
	addr_format(&addr, text);
	assert_string_equal(text, expected);
}

#define ZEROS "0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0."

static void whole_addresses(void **state)
{
	(void)state;
	reads("1.2.0.192.in-addr.arpa", "192.0.2.1");
	reads("0.0.0.0.in-addr.arpa", "0.0.0.0");
	reads("255.254.18.198.in-addr.arpa", "198.18.254.255");
	reads("1.0.0.0." ZEROS "1.0.d.f.ip6.arpa", "fd01::1");
	reads("f.e.d.c." ZEROS "8.b.d.0.ip6.arpa", "db8::cdef");
}

static void anything_else(void **state)
{
	static const char *const names[] = {
		"",
		"arpa",
		"in-addr.arpa",
		".in-addr.arpa",
		"0.192.in-addr.arpa",
		"5.1.2.0.192.in-addr.arpa",
		"1.2.0.256.in-addr.arpa",
		"01.2.0.192.in-addr.arpa",
		"1..0.192.in-addr.arpa",
		"-1.2.0.192.in-addr.arpa",
		"+1.2.0.192.in-addr.arpa",
		"a.2.0.192.in-addr.arpa",
		"1.2.0.192.in-addr.arpa.example",
		"1.2.0.192.ip6.arpa",
		"1.2.0.192",
		"0-127.2.0.192.in-addr.arpa",
		"lb._dns-sd._udp.2.0.192.in-addr.arpa",
		"1.0.0.0." ZEROS "1.0.d.f.in-addr.arpa",
		"0.0.0." ZEROS "1.0.d.f.ip6.arpa",
		"0.1.0.0.0." ZEROS "1.0.d.f.ip6.arpa",
		"1.0.0.0." ZEROS "1.0.d.g.ip6.arpa",
		"1.0.0.0." ZEROS "1.0.df.ip6.arpa",
		"10.0.0.0." ZEROS "1.0.d.f.ip6.arpa",
		"ip6.arpa",
	};
	struct np_addr addr = { .b = { 9 } };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		assert_int_equal(dns_reverse_parse(names[i], &addr), -EINVAL);
		assert_int_equal(addr.b[0], 9);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(whole_addresses),
		cmocka_unit_test(anything_else),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
