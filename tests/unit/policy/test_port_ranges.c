/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "policy/port_ranges.c"

#include <string.h>

static uint32_t seed = 7;
static uint32_t roll(uint32_t below)
{
	seed = seed * 1664525 + 1013904223;
	return (seed >> 8) % below;
}

/* Against the plain way: a paint brush over 65,536 ports. */
static void first_claim_has_the_port(void **state)
{
	static uint32_t want[65536], got[65536];
	struct range claims[12], out[2 * (12 + 3) + 1];

	(void)state;
	for (int round = 0; round < 300; round++) {
		uint16_t cuts[3] = { 53, 80, 443 };
		size_t n = roll(13), n_out;

		memset(want, 0xff, sizeof(want));
		memset(got, 0xff, sizeof(got));
		for (size_t i = 0; i < n; i++) {
			uint32_t a = 1 + roll(round % 2 ? 65535 : 500), b = 1 + roll(round % 2 ? 65535 : 500);

			claims[i] = (struct range){ (uint16_t)(a < b ? a : b), (uint16_t)(a < b ? b : a), roll(4) };
			if (roll(6) == 0)
				claims[i].first = 1, claims[i].last = 65535;
			for (uint32_t p = claims[i].first; p <= claims[i].last; p++)
				if (want[p] == UINT32_MAX)
					want[p] = claims[i].owner;
		}
		n_out = segments_make(claims, n, cuts, 3, out);
		assert_true(n_out <= segments_room(n, 3));
		for (size_t i = 0; i < n_out; i++) {
			assert_true(out[i].first <= out[i].last && out[i].first > 0);
			assert_true(!i || out[i].first > out[i - 1].last);
			for (size_t k = 0; k < 3; k++)
				if (out[i].first <= cuts[k] && cuts[k] <= out[i].last)
					assert_int_equal(out[i].first, out[i].last);
			for (uint32_t p = out[i].first; p <= out[i].last; p++)
				got[p] = out[i].owner;
		}
		assert_memory_equal(want, got, sizeof(want));
	}
}

static unsigned covered[65536], blocks;
static void cover(void *data, uint16_t first, unsigned bits)
{
	(void)data;
	assert_true(bits <= 16);
	assert_int_equal(first & ((1u << (16 - bits)) - 1), 0);
	for (uint32_t p = first; p < first + (1u << (16 - bits)); p++)
		covered[p]++;
	blocks++;
}

static void blocks_make_up_a_range(void **state)
{
	(void)state;
	for (int round = 0; round < 500; round++) {
		uint32_t a = roll(65536), b = roll(65536), first = a < b ? a : b, last = a < b ? b : a;

		if (round == 0)
			first = 0, last = 65535;
		if (round == 1)
			first = last = 65535;
		if (round == 2)
			first = 1, last = 65535;
		memset(covered, 0, sizeof(covered));
		blocks = 0;
		range_blocks((uint16_t)first, (uint16_t)last, cover, NULL);
		for (uint32_t p = 0; p < 65536; p++)
			assert_int_equal(covered[p], p >= first && p <= last);
		assert_true(blocks <= 30);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(first_claim_has_the_port),
		cmocka_unit_test(blocks_make_up_a_range),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
