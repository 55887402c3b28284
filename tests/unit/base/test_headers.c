/* SPDX-License-Identifier: MIT */
/* What of base/ is in headers alone: array.h, hash.h, cleanup.h. */
#include "base/array.h"
#include "base/cleanup.h"
#include "base/hash.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <cmocka.h>

static void arrays_grow(void **state)
{
	_free_ int *items = NULL;
	size_t size = 0, before;

	(void)state;
	assert_int_equal(ARRAY_RESERVE(items, size, 0), 0);
	assert_null(items);
	for (size_t i = 0; i < 1000; i++) {
		assert_int_equal(ARRAY_RESERVE(items, size, i + 1), 0);
		assert_true(size > i);
		items[i] = (int)i;
	}
	for (size_t i = 0; i < 1000; i++)
		assert_int_equal(items[i], i);
	before = size;
	assert_int_equal(ARRAY_RESERVE(items, size, 10), 0);
	assert_int_equal(size, before); /* never less */
}

static void an_array_that_no_memory_holds(void **state)
{
	_free_ uint64_t *items = NULL;
	size_t size = 0;

	(void)state;
	assert_int_equal(ARRAY_RESERVE(items, size, 4), 0);
	items[0] = 4711;
	assert_int_equal(ARRAY_RESERVE(items, size, SIZE_MAX), -ENOMEM);
	assert_int_equal(ARRAY_RESERVE(items, size, SIZE_MAX / 2 + 2), -ENOMEM);
	assert_int_equal(ARRAY_RESERVE(items, size, SIZE_MAX / 8), -ENOMEM); /* the product wraps */
	assert_int_equal(size, 16);
	assert_int_equal(items[0], 4711);
}

static void hashes(void **state)
{
	const struct hash_key key = { { 1, 0x9e3779b97f4a7c15u } }, other = { { 2, 0x9e3779b97f4a7c15u } };
	char text[32] = "0123456789abcdefghijklmnopqrstu";
	uint64_t seen[33];

	(void)state;
	for (size_t len = 0; len <= 32; len++) {
		seen[len] = hash_bytes(&key, text, len);
		assert_true(seen[len] == hash_bytes(&key, text, len));
		assert_true(seen[len] != hash_bytes(&other, text, len));
		for (size_t i = 0; i < len; i++)
			assert_true(seen[i] != seen[len]);
	}
	for (size_t i = 0; i < sizeof(text); i++) { /* each byte counts, in the words and behind them */
		text[i] ^= 1;
		assert_true(hash_bytes(&key, text, 31) != seen[31] || i == 31);
		text[i] ^= 1;
	}
	assert_true(hash_bytes(&key, "a", 1) != hash_bytes(&key, "a\0", 2)); /* the length counts */
	assert_true(hash_mark("x", 1) == hash_mark("x", 1));
	assert_true(hash_mark("x", 1) != hash_mark("y", 1));
}

static bool is_open(int fd)
{
	return fcntl(fd, F_GETFD) >= 0;
}

static int handed_over(void)
{
	_close_ int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

	return take_fd(fd);
}

static void scopes(void **state)
{
	int inner, fd;
	char *text;

	(void)state;
	{
		_close_ int a = open("/dev/null", O_RDONLY | O_CLOEXEC);
		_close_ int none = -1;
		_free_ char *nothing = NULL;
		_closedir_ DIR *no_folder = NULL;
		_free_ char *p = strdup("x");

		inner = a;
		assert_true(is_open(inner));
		text = take_ptr(p);
		assert_null(p);
		(void)none, (void)nothing, (void)no_folder;
	}
	assert_false(is_open(inner));
	assert_string_equal(text, "x");
	free(text);
	fd = handed_over();
	assert_true(is_open(fd));
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(arrays_grow),
		cmocka_unit_test(an_array_that_no_memory_holds),
		cmocka_unit_test(hashes),
		cmocka_unit_test(scopes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
