/* SPDX-License-Identifier: MIT */
#include "init/caps.c"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "../child.h"

static int dropped(void)
{
	CHECK(caps_drop_bounding() == 0);
	CHECK(caps_drop() == 0);
	for (int cap = 0; cap <= CAP_LAST_CAP; cap++)
		CHECK(prctl(PR_CAPBSET_READ, cap, 0, 0, 0) <= 0);
	/* An exec as root does not bring them back. */
	execl("/bin/sh", "sh", "-c",
	      "grep -q '^CapEff:.0*$' /proc/self/status && grep -q '^CapPrm:.0*$' /proc/self/status && "
	      "grep -q '^CapInh:.0*$' /proc/self/status && grep -q '^CapAmb:.0*$' /proc/self/status",
	      (char *)NULL);
	return 1;
}

/* The bounding set alone is not enough, and neither are the others: what each of them is for. */
static int without_the_bounding_set(void)
{
	CHECK(caps_drop() == 0);
	execl("/bin/sh", "sh", "-c", "! grep -q '^CapEff:.0*$' /proc/self/status", (char *)NULL);
	return 1;
}

static void none_is_left(void **state)
{
	(void)state;
	if (geteuid() != 0)
		skip();
	assert_int_equal(child_run(dropped), 0);
	assert_int_equal(child_run(without_the_bounding_set), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(none_is_left),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
