/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants the four above first */
#include <cmocka.h>

#include "dns/synthetic_names.c"

#include <malloc.h>
#include <stdio.h>

#include "base/cleanup.h"
#include "vocab/limits.h"

#define MOST NP_NAMES_PER_SESSION
#define REST ((uint64_t)NP_NAME_REST_MS)

static const struct hash_key key = { { 0x0123456789abcdef, 0xfedcba9876543211 } };

static struct names *new_names(void)
{
	struct names *names = NULL;

	assert_int_equal(names_new(&key, &names), 0);
	return names;
}

static void free_names(struct names **names)
{
	names_free(*names);
}
#define _names_ cleanup(free_names)

static uint32_t get(struct names *names, const char *name, uint64_t now_ms)
{
	uint32_t index = 0;

	assert_int_equal(names_get(names, NAMES_ALLOWED, name, now_ms, &index), 0);
	assert_string_equal(names_find(names, index), name);
	return index;
}

static const char *numbered(unsigned i)
{
	static char name[64];

	snprintf(name, sizeof(name), "host-%u.some-zone.example", i);
	return name;
}

/* All indexes, the first at 0 ms, each a millisecond after the one before. */
static struct names *full_names(void)
{
	struct names *names = new_names();

	for (unsigned i = 1; i <= MOST; i++)
		assert_int_equal(get(names, numbered(i), i - 1), i);
	assert_int_equal(names_count(names, NAMES_ALLOWED), MOST);
	return names;
}

static void names_and_indexes(void **state)
{
	_names_ struct names *names = new_names();

	(void)state;
	names_free(NULL);
	assert_null(names_find(names, 0));
	assert_null(names_find(names, 1));
	assert_int_equal(get(names, "a.example", 5), 1);
	assert_int_equal(get(names, "b.example", 5), 2);
	assert_int_equal(get(names, "a.example", REST * 9), 1);
	assert_int_equal(names_count(names, NAMES_ALLOWED), 2);
	assert_null(names_find(names, 0));
	assert_null(names_find(names, 3));
	assert_null(names_find(names, UINT32_MAX));
	names_touch(names, 0, 1);
	names_touch(names, 3, 1);
	names_touch(names, UINT32_MAX, 1);
	assert_int_equal(names_count(names, NAMES_ALLOWED), 2);
}

static void what_is_no_name(void **state)
{
	_names_ struct names *names = new_names();
	char text[NAME_SIZE + 1];
	uint32_t index = 77;

	(void)state;
	memset(text, 'a', sizeof(text));
	text[NAME_SIZE] = '\0';
	assert_int_equal(names_get(names, NAMES_ALLOWED, text, 0, &index), -EINVAL);
	assert_int_equal(names_get(names, NAMES_ALLOWED, "", 0, &index), -EINVAL);
	assert_int_equal(names_restore(names, 1, text, 0), -EINVAL);
	assert_int_equal(index, 77);
	text[NAME_SIZE - 1] = '\0';
	assert_int_equal(get(names, text, 0), 1);
}

static void none_is_left(void **state)
{
	_names_ struct names *names = full_names();
	uint32_t index = 77;

	(void)state;
	/* The first was used at 0 ms, and is free at REST and not before. */
	assert_int_equal(names_get(names, NAMES_ALLOWED, "one-more.example", MOST, &index), -ENOSPC);
	assert_int_equal(names_get(names, NAMES_ALLOWED, "one-more.example", REST - 1, &index), -ENOSPC);
	assert_int_equal(index, 77);
	assert_int_equal(names_count(names, NAMES_ALLOWED), MOST);
	/* What is there is found all the same. */
	for (unsigned i = 1; i <= MOST; i++)
		assert_string_equal(names_find(names, i), numbered(i));
	assert_int_equal(get(names, "one-more.example", REST), 1);
	assert_int_equal(names_count(names, NAMES_ALLOWED), MOST);
	/* And the name that had it gets another, now that the second is free, too. */
	assert_int_equal(names_get(names, NAMES_ALLOWED, numbered(1), REST, &index), -ENOSPC);
	assert_int_equal(get(names, numbered(1), REST + 1), 2);
	assert_string_equal(names_find(names, 1), "one-more.example");
}

static void the_longest_unused_goes_first(void **state)
{
	_names_ struct names *names = full_names();

	(void)state;
	/* Asked for again; used by a connection; and the first of all not at all. */
	assert_int_equal(get(names, numbered(2), MOST), 2);
	names_touch(names, 3, MOST + 1);
	names_touch(names, 3, MOST + 2);
	assert_int_equal(get(names, "n1.example", 2 * REST), 1);
	for (unsigned i = 4; i <= MOST; i++)
		assert_int_equal(get(names, numbered(MOST + i), 2 * REST), i);
	assert_int_equal(get(names, "n2.example", 2 * REST), 2);
	assert_int_equal(get(names, "n3.example", 2 * REST), 3);
	assert_int_equal(names_get(names, NAMES_ALLOWED, "n4.example", 2 * REST, &(uint32_t){ 0 }), -ENOSPC);
	for (unsigned i = 4; i <= MOST; i++)
		assert_string_equal(names_find(names, i), numbered(MOST + i));
}

static void use_keeps_a_name(void **state)
{
	_names_ struct names *names = full_names();
	uint64_t now_ms = 0;

	(void)state;
	/* A busy one keeps its index while all others change hands again and again. */
	for (unsigned round = 1; round <= 3; round++) {
		now_ms += REST;
		names_touch(names, 4711, now_ms - 1);
		for (unsigned i = 1; i < MOST; i++)
			get(names, numbered(round * 100000 + i), now_ms + MOST);
		assert_string_equal(names_find(names, 4711), numbered(4711));
		assert_int_equal(names_get(names, NAMES_ALLOWED, "x.example", now_ms + MOST, &(uint32_t){ 0 }),
				 -ENOSPC);
		now_ms += MOST;
	}
}

static void a_clock_that_goes_back_frees_nothing(void **state)
{
	_names_ struct names *names = full_names();

	(void)state;
	for (unsigned i = 1; i <= MOST; i++)
		names_touch(names, i, REST * 5);
	assert_int_equal(names_get(names, NAMES_ALLOWED, "x.example", 0, &(uint32_t){ 0 }), -ENOSPC);
	names_touch(names, 1, 7);
	assert_int_equal(names_get(names, NAMES_ALLOWED, "x.example", REST * 5, &(uint32_t){ 0 }), -ENOSPC);
	assert_int_equal(names_get(names, NAMES_ALLOWED, "x.example", REST * 6 - 1, &(uint32_t){ 0 }), -ENOSPC);
	assert_int_equal(get(names, "x.example", REST * 6), 2);
}

static void after_a_restart(void **state)
{
	_names_ struct names *names = new_names();

	(void)state;
	assert_int_equal(names_restore(names, MOST, "last.example", 10), 0);
	assert_int_equal(names_restore(names, 2, "two.example", 10), 0);
	assert_int_equal(names_restore(names, 2, "two.example", 11), 0);
	/* Another process has given it to another name since. */
	assert_int_equal(names_restore(names, 2, "other.example", 12), 0);
	assert_string_equal(names_find(names, 2), "other.example");
	assert_int_equal(names_index(names, NAMES_ALLOWED, "other.example"), 2);
	assert_int_equal(names_index(names, NAMES_ALLOWED, "two.example"), 0);
	assert_int_equal(names_used_ms(names, 2), 12);
	assert_int_equal(names_restore(names, 2, "two.example", 13), 0);
	assert_int_equal(names_restore(names, 3, "two.example", 10), -EEXIST);
	assert_int_equal(names_restore(names, 0, "zero.example", 10), -EINVAL);
	assert_int_equal(names_restore(names, NAMES_ALL + 1, "much.example", 10), -EINVAL);
	assert_int_equal(names_restore(names, UINT32_MAX, "much.example", 10), -EINVAL);
	assert_int_equal(names_count(names, NAMES_ALLOWED), 2);
	assert_int_equal(get(names, "last.example", 11), MOST);
	/* New names go around those. */
	assert_int_equal(get(names, "a.example", 12), 1);
	assert_int_equal(get(names, "b.example", 13), 3);
	assert_int_equal(get(names, "two.example", 14), 2);
	for (unsigned i = 4; i < MOST; i++)
		assert_int_equal(get(names, numbered(i), 100), i);
	assert_int_equal(names_get(names, NAMES_ALLOWED, "x.example", 100, &(uint32_t){ 0 }), -ENOSPC);
	assert_int_equal(get(names, "x.example", REST + 11), MOST);
}

static void a_restored_name_rests_anew(void **state)
{
	_names_ struct names *names = new_names();

	(void)state;
	for (unsigned i = MOST; i >= 1; i--)
		assert_int_equal(names_restore(names, i, numbered(i), 50), 0);
	assert_int_equal(names_get(names, NAMES_ALLOWED, "x.example", REST + 49, &(uint32_t){ 0 }), -ENOSPC);
	assert_int_equal(get(names, "x.example", REST + 50), MOST);
}

/* 10,000 names of 27 bytes, in two sessions: what they take is bounded. */
static void memory(void **state)
{
	size_t before = mallinfo2().uordblks, bytes;
	_names_ struct names *a = new_names(), *b = new_names();

	(void)state;
	for (unsigned i = 0; i < 5000; i++) {
		get(a, numbered(100000 + i), 0);
		get(b, numbered(200000 + i), 0);
	}
	bytes = mallinfo2().uordblks - before;
	print_message("10,000 names: %zu bytes\n", bytes);
	assert_true(bytes < 1000000); /* 0 under ASan, whose allocator is another */
}

/* A flood of refused names takes nothing from the others, and is over when its own indexes are. */
static void refused_names_have_their_own(void **state)
{
	_names_ struct names *names = new_names();
	uint32_t index;

	(void)state;
	assert_int_equal(get(names, "good.example", 0), 1);
	for (unsigned i = 1; i <= NP_REFUSED_NAMES; i++) {
		assert_int_equal(names_get(names, NAMES_REFUSED, numbered(i), 0, &index), 0);
		assert_int_equal(index, MOST + i);
		assert_string_equal(names_find(names, index), numbered(i));
	}
	assert_int_equal(names_get(names, NAMES_REFUSED, "more.example", 1, &index), -ENOSPC);
	assert_string_equal(names_find(names, 1), "good.example");
	assert_int_equal(get(names, "better.example", 1), 2);
	assert_int_equal(names_index(names, NAMES_ALLOWED, numbered(1)), 0);
	assert_int_equal(names_index(names, NAMES_REFUSED, numbered(1)), MOST + 1);
	assert_int_equal(names_index(names, NAMES_REFUSED, "good.example"), 0);
	assert_int_equal(names_count(names, NAMES_REFUSED), NP_REFUSED_NAMES);
	/* One that is allowed later has an index among those that are. */
	assert_int_equal(get(names, numbered(1), 2), 3);
	/* They rest for a shorter time, and go to others; what is used stays. */
	names_touch(names, MOST + 1, NP_REFUSED_REST_MS - 1);
	assert_int_equal(names_get(names, NAMES_REFUSED, "more.example", NP_REFUSED_REST_MS, &index), 0);
	assert_int_equal(index, MOST + 2);
	assert_string_equal(names_find(names, MOST + 1), numbered(1));
	/* After a restart. */
	assert_int_equal(names_restore(names, NAMES_ALL, "last.example", 5), 0);
	assert_string_equal(names_find(names, NAMES_ALL), "last.example");
	assert_null(names_find(names, NAMES_ALL + 1));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_and_indexes),
		cmocka_unit_test(what_is_no_name),
		cmocka_unit_test(none_is_left),
		cmocka_unit_test(the_longest_unused_goes_first),
		cmocka_unit_test(use_keeps_a_name),
		cmocka_unit_test(a_clock_that_goes_back_frees_nothing),
		cmocka_unit_test(after_a_restart),
		cmocka_unit_test(a_restored_name_rests_anew),
		cmocka_unit_test(refused_names_have_their_own),
		cmocka_unit_test(memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
