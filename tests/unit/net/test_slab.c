/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants the four above first */
#include <cmocka.h>

#include "net/slab.c"

static void test_sizes(void **state)
{
	static const size_t sizes[] = { 1,	   SMALLEST,	  SMALLEST + 1, 6 * PAGE, 6 * PAGE + 1,
					10 * PAGE, 10 * PAGE + 1, 1 << 20 };
	char *p[ARRAY_SIZE(sizes)];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		p[i] = slab_alloc(sizes[i]);
		assert_non_null(p[i]);
		memset(p[i], (int)i + 1, sizes[i]);
	}
#ifndef __SANITIZE_ADDRESS__
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++)
		assert_ptr_equal(pool_of(p[i]), i < 2 || i > 5 ? NULL : i < 4 ? &pools[0] : &pools[1]);
#endif
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		for (size_t k = 0; k < sizes[i]; k++)
			assert_int_equal(p[i][k], i + 1);
		slab_free(p[i]);
	}
	slab_free(NULL);
}

/* Many at a time, several times: nothing is given to two, and what was free for long works as well. */
static void test_many(void **state)
{
	enum { N = 100, SIZE = 16408 };
	static char *p[N];

	(void)state;
	for (int round = 0; round < 2; round++) {
		for (int i = 0; i < N; i++) {
			p[i] = slab_alloc(SIZE);
			assert_non_null(p[i]);
			memset(p[i], i, SIZE);
		}
		for (int i = 0; i < N; i++) {
			assert_int_equal(p[i][0], i);
			assert_int_equal(p[i][SIZE - 1], i);
			slab_free(p[i]);
		}
	}
#ifndef __SANITIZE_ADDRESS__
	assert_in_range(pools[0].used, N, N + 8);
	assert_int_equal(pools[0].n_free, pools[0].used);
#endif
	for (int round = 0; round < 5; round++)
		slab_trim();
	for (int i = 0; i < N; i++) {
		p[i] = slab_alloc(SIZE);
		memset(p[i], i, SIZE);
	}
	for (int i = 0; i < N; i++) {
		assert_int_equal(p[i][SIZE - 1], i);
		slab_free(p[i]);
	}
}

#ifndef __SANITIZE_ADDRESS__
static size_t resident(void)
{
	size_t n = 0;

	for (size_t i = 0; i < ARRAY_SIZE(pools); i++) {
		static unsigned char pages[10 * SLOTS];

		assert_int_equal(mincore(pools[i].base, pools[i].size * SLOTS, pages), 0);
		for (size_t k = 0; k < pools[i].size * SLOTS / PAGE; k++)
			n += pages[k] & 1;
	}
	return n;
}

/* What is used all the time is not given back, what is not used is. */
static void test_trim(void **state)
{
	enum { N = 50 };
	static char *p[N];

	(void)state;
	for (int round = 0; round < 10; round++) {
		for (int i = 0; i < N; i++) {
			p[i] = slab_alloc(10 * PAGE);
			memset(p[i], 1, 10 * PAGE);
		}
		for (int i = 0; i < N; i++)
			slab_free(p[i]);
		slab_trim();
		assert_true(resident() >= N * 10);
	}
	slab_trim();
	slab_trim();
	slab_trim();
	assert_true(resident() <= WARM * 16);
	/* All of them again: the cold ones, too. */
	for (int i = 0; i < N; i++)
		p[i] = slab_alloc(10 * PAGE);
	assert_int_equal(pools[1].n_cold, 0);
	for (int i = 0; i < N; i++)
		slab_free(p[i]);
}
#endif

static void test_growing(void **state)
{
	static const size_t sizes[] = { 100, 9000, 20000, 30000, 40000, 100000, 50, 12000 };
	char *p = NULL;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		p = slab_realloc(p, sizes[i]);
		assert_non_null(p);
		if (i > 0)
			for (size_t k = 0; k < 50; k++)
				assert_int_equal(p[k], i);
		memset(p, (int)i + 1, sizes[i]);
	}
	slab_free(p);
	p = slab_alloc(20000);
	assert_null(slab_realloc(p, 0)); /* freed, as realloc() does */
}

/* When there is no slot left there still is malloc(). */
static void test_exhausted(void **state)
{
	static void *p[2 * SLOTS + 10];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(p); i++) {
		p[i] = slab_alloc(SMALLEST + 1);
		assert_non_null(p[i]);
	}
#ifndef __SANITIZE_ADDRESS__
	assert_null(pool_of(p[ARRAY_SIZE(p) - 1]));
#endif
	for (size_t i = 0; i < ARRAY_SIZE(p); i++)
		slab_free(p[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sizes),	cmocka_unit_test(test_many),
#ifndef __SANITIZE_ADDRESS__
		cmocka_unit_test(test_trim),
#endif
		cmocka_unit_test(test_growing), cmocka_unit_test(test_exhausted),
	};

	if (slab_init() < 0)
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
