/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "link/ledger.c"

#include "vocab/limits.h"

static char data[LINK_BYTES_MAX];

static struct ledger *make(uint64_t at)
{
	struct ledger *ledger = calloc(1, sizeof(*ledger));

	assert_non_null(ledger);
	ledger->written = ledger->read = at;
	return ledger;
}

/* Takes one and compares. */
static void take(struct ledger *ledger, char fill, size_t len)
{
	uint64_t next;

	assert_int_equal(ledger_next(ledger, ledger->read, data, &next), len);
	for (size_t i = 0; i < len; i++)
		assert_int_equal(data[i], fill);
	ledger->read = next;
}

static void put(struct ledger *ledger, char fill, size_t len, int expected)
{
	static char report[LINK_BYTES_MAX + 1];

	memset(report, fill, sizeof(report));
	assert_int_equal(ledger_put(ledger, report, len), expected);
}

static void test_around_the_ring(void **state)
{
	struct ledger *ledger = make(0);

	(void)state;
	for (unsigned i = 0; i < 3 * NP_LEDGER_RING / 1000; i++) {
		put(ledger, (char)i, 1 + i % 2000, 0);
		take(ledger, (char)i, 1 + i % 2000);
	}
	assert_int_equal(ledger_next(ledger, ledger->read, data, &(uint64_t){ 0 }), 0);
	assert_true(ledger->written > NP_LEDGER_RING);
	free(ledger);
}

static void test_a_full_ring_takes_no_more(void **state)
{
	struct ledger *ledger = make(UINT64_MAX - 7 - 4096); /* the count of bytes may run over */
	unsigned n = 0;

	(void)state;
	while (NP_LEDGER_RING - (ledger->written - ledger->read) >= 1008)
		put(ledger, (char)n++, 1000, 0);
	put(ledger, 'x', 1000, -ENOSPC);
	put(ledger, 'x', LINK_BYTES_MAX + 1, -ENOSPC);
	for (unsigned i = 0; i < n; i++)
		take(ledger, (char)i, 1000);
	put(ledger, 'y', LINK_BYTES_MAX, 0);
	take(ledger, 'y', LINK_BYTES_MAX);
	free(ledger);
}

static void test_nonsense(void **state)
{
	static const struct {
		uint64_t there, len;
	} bad[] = { { 4, 0 },
		    { NP_LEDGER_RING + 8, 8 },
		    { UINT64_MAX, 8 },
		    { 16, 0 },
		    { 16, 9 },
		    { 64, UINT64_MAX },
		    { 64, UINT64_MAX - 8 },
		    { NP_LEDGER_RING, LINK_BYTES_MAX + 1 } };
	struct ledger *ledger = make(0);
	uint64_t next;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		ledger->written = bad[i].there;
		memcpy(ledger->ring, &bad[i].len, sizeof(bad[i].len));
		assert_int_equal(ledger_next(ledger, 0, data, &next), -EPROTO);
	}
	ledger->written = 16;
	assert_int_equal(ledger_next(ledger, 4, data, &next), -EPROTO);
	free(ledger);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_around_the_ring),
		cmocka_unit_test(test_a_full_ring_takes_no_more),
		cmocka_unit_test(test_nonsense),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
