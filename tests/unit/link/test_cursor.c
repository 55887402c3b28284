/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include <sys/mman.h>

#include "link/cursor.c"

static struct cursor c;
static int fd = -1;

static int empty(void **state)
{
	(void)state;
	if (fd >= 0)
		close(fd);
	fd = memfd_create("cursor", 0);
	return fd < 0;
}

static void test_nothing_was_written_yet(void **state)
{
	(void)state;
	assert_int_equal(cursor_open(&c, fd), -ENOENT);
}

static void test_the_last_one_counts(void **state)
{
	(void)state;
	cursor_open(&c, fd);
	for (uint64_t seq = 1; seq < 20; seq++) {
		assert_int_equal(cursor_put(&c, seq * 1000000007), 0);
		assert_int_equal(cursor_open(&c, fd), 0);
		assert_int_equal(c.seq, seq * 1000000007);
	}
	assert_int_equal(cursor_put(&c, UINT64_MAX), 0);
	assert_int_equal(cursor_open(&c, fd), 0);
	assert_true(c.seq == UINT64_MAX);
	assert_int_equal(cursor_put(&c, 3), 0); /* whoever begins anew goes back */
	assert_int_equal(cursor_open(&c, fd), 0);
	assert_int_equal(c.seq, 3);
}

/* Whatever a crash makes of the slot that is being written: the one before it counts. */
static void test_a_torn_write_leaves_the_one_before(void **state)
{
	char good[CURSOR_SLOT];

	(void)state;
	cursor_open(&c, fd);
	cursor_put(&c, 41);
	cursor_put(&c, 42); /* in the first of them */
	assert_int_equal(pread(fd, good, CURSOR_SLOT, 0), CURSOR_SLOT);
	for (size_t n = 0; n < CURSOR_SLOT - 1; n++) {
		char torn[CURSOR_SLOT];

		memcpy(torn, good, sizeof(torn));
		torn[n] = (char)(torn[n] ^ 1);
		assert_int_equal(pwrite(fd, torn, CURSOR_SLOT, 0), CURSOR_SLOT);
		assert_int_equal(cursor_open(&c, fd), 0);
		assert_int_equal(c.seq, 41);
	}
	assert_int_equal(ftruncate(fd, CURSOR_SLOT / 2), 0);
	assert_int_equal(cursor_open(&c, fd), -EPROTO);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_nothing_was_written_yet, empty),
		cmocka_unit_test_setup(test_the_last_one_counts, empty),
		cmocka_unit_test_setup(test_a_torn_write_leaves_the_one_before, empty),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
