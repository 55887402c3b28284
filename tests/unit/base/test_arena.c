/* SPDX-License-Identifier: MIT */
#include "base/arena.c"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

static void pieces(void **state)
{
	_arena_ struct arena *arena = NULL;
	char *before = NULL;

	(void)state;
	assert_int_equal(arena_new(1 << 20, &arena), 0);
	for (size_t size = 1; size < 3000; size += 7) {
		char *p = arena_alloc(arena, 1, size);

		assert_non_null(p);
		assert_int_equal((uintptr_t)p % alignof(max_align_t), 0);
		for (size_t i = 0; i < size; i++)
			assert_int_equal(p[i], 0);
		memset(p, 0xaa, size); /* nobody else's: the next ones are zero all the same */
		assert_ptr_not_equal(p, before);
		before = p;
	}
}

static void large_ones_do_not_waste_the_rest(void **state)
{
	_arena_ struct arena *arena = NULL;
	char *small, *next;

	(void)state;
	assert_int_equal(arena_new(10 * CHUNK, &arena), 0);
	assert_non_null(arena_alloc(arena, 1, CHUNK)); /* as the first one, too */
	small = arena_alloc(arena, 1, 16);
	assert_non_null(arena_alloc(arena, 2, CHUNK));
	next = arena_alloc(arena, 1, 16);
	assert_ptr_equal(next, small + 16);
}

static void the_bound(void **state)
{
	_arena_ struct arena *arena = NULL, *nothing = NULL;

	(void)state;
	assert_int_equal(arena_new(1024, &arena), 0);
	assert_null(arena_alloc(arena, 1, 1025));
	for (int i = 0; i < 64; i++)
		assert_non_null(arena_alloc(arena, 1, 1)); /* each takes what alignment takes */
	assert_null(arena_alloc(arena, 1, 1));
	assert_null(arena_text(arena, "x", 1));
	assert_int_equal(arena_new(0, &nothing), 0);
	assert_null(arena_alloc(nothing, 1, 1));
}

static void products_that_wrap(void **state)
{
	_arena_ struct arena *arena = NULL;

	(void)state;
	assert_int_equal(arena_new(1 << 20, &arena), 0);
	assert_null(arena_alloc(arena, SIZE_MAX / 2 + 1, 2));
	assert_null(arena_alloc(arena, SIZE_MAX, SIZE_MAX));
	assert_null(arena_alloc(arena, SIZE_MAX, 1));
	assert_null(arena_text(arena, "x", SIZE_MAX));
	assert_non_null(arena_alloc(arena, 1, 1)); /* a refusal takes nothing */
}

/* No items are no error, of a new arena neither. */
static void nothing_is_not_out_of_memory(void **state)
{
	_arena_ struct arena *arena = NULL;

	(void)state;
	assert_int_equal(arena_new(1024, &arena), 0);
	assert_non_null(arena_alloc(arena, 0, 8));
	assert_non_null(arena_alloc(arena, 8, 0));
}

static void texts(void **state)
{
	_arena_ struct arena *arena = NULL;
	const char source[] = "with\0a NUL";
	char *copy;

	(void)state;
	assert_int_equal(arena_new(1024, &arena), 0);
	copy = arena_text(arena, source, sizeof(source) - 1);
	assert_memory_equal(copy, source, sizeof(source));
	assert_ptr_not_equal(copy, source);
	assert_string_equal(arena_text(arena, "abcdef", 3), "abc");
	assert_string_equal(arena_text(arena, "abcdef", 0), "");
}

static void freeing_nothing(void **state)
{
	(void)state;
	arena_free(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pieces),
		cmocka_unit_test(large_ones_do_not_waste_the_rest),
		cmocka_unit_test(the_bound),
		cmocka_unit_test(products_that_wrap),
		cmocka_unit_test(nothing_is_not_out_of_memory),
		cmocka_unit_test(texts),
		cmocka_unit_test(freeing_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
