/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants the four above first */
#include <cmocka.h>

#include "policy/metadata.c"

#include <stdlib.h>

#include "addr.h"
#include "make.h"

static void test_what_lies_inside(void **state)
{
	static const struct {
		const char *addr;
		uint8_t bits;
		bool inside;
	} rows[] = {
		{ "169.254.0.0", 96 + 16, true },
		{ "169.254.169.254", 128, true },
		{ "169.254.128.0", 96 + 17, true },
		{ "169.254.0.0", 96 + 15, false },
		{ "0.0.0.0", 96, false },
		{ "100.100.100.200", 128, true },
		{ "100.100.100.200", 127, false },
		{ "100.100.100.201", 128, false },
		{ "fe80::", 10, true },
		{ "fe80::", 9, false },
		{ "febf::1", 128, true },
		{ "fd00:ec2::", 32, true },
		{ "fd00:ec2::254", 128, true },
		{ "fd00:ec2::", 31, false },
		{ "::", 0, false },
		{ "fd20:ce::254", 128, true },
		{ "fd20:ce::", 64, false },
		{ "fd00:42::42", 128, true },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct np_addr addr = addr_of(rows[i].addr);

		if (metadata_holds(&addr, rows[i].bits, np_addr_is_v4(&addr)) != rows[i].inside)
			fail_msg("%s/%d", rows[i].addr, rows[i].bits);
	}
}

/* The table says the same as the function that the gate is compiled with: at and around each edge, and anywhere. */
static void test_it_agrees_with_the_gate(void **state)
{
	unsigned inside = 0;

	(void)state;
	srand(4);
	for (int round = 0; round < 200000; round++) {
		const struct metadata_range *range = &metadata_ranges[rand() % (int)n_metadata_ranges];
		struct np_addr addr = range->addr;

		for (int bit = range->bits; bit < 128; bit++)
			if (round % 3 ? rand() % 2 : round % 2)
				addr.b[bit / 8] |= (uint8_t)(0x80 >> bit % 8);
		/* One bit off: still inside, just outside, or of the other family. */
		if (round % 4) {
			int bit = rand() % 128;

			addr.b[bit / 8] ^= (uint8_t)(0x80 >> bit % 8);
		}
		assert_int_equal(metadata_holds(&addr, 128, np_addr_is_v4(&addr)), np_addr_is_metadata(&addr));
		inside += np_addr_is_metadata(&addr);
	}
	assert_in_range(inside, 50000, 150000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_lies_inside),
		cmocka_unit_test(test_it_agrees_with_the_gate),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
