/* SPDX-License-Identifier: MIT */
#include "base/buf.c"

#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

static void an_empty_one(void **state)
{
	struct buf b = BUF_INIT(10);
	char *text;

	(void)state;
	assert_null(b.data);
	buf_drop(&b, 5);
	buf_clear(&b);
	buf_append(&b, NULL, 0); /* nothing, which is fine */
	assert_int_equal(buf_error(&b), 0);
	assert_int_equal(b.len, 0);
	text = buf_take(&b);
	assert_string_equal(text, "");
	free(text);
	buf_free(&b);
	buf_free(&b); /* twice is once */
}

static void grows(void **state)
{
	_buf_ struct buf b = BUF_INIT(100000);

	(void)state;
	for (unsigned i = 0; i < 10000; i++) {
		buf_printf(&b, "%04u", i);
		assert_int_equal(b.data[b.len], '\0');
	}
	assert_int_equal(buf_error(&b), 0);
	assert_int_equal(b.len, 40000);
	assert_memory_equal(b.data, "00000001", 8);
	assert_memory_equal(b.data + 39996, "9999", 5);
	buf_append(&b, "a\0b", 3); /* any bytes */
	assert_memory_equal(b.data + 40000, "a\0b", 4);
}

static void the_bound(void **state)
{
	_buf_ struct buf b = BUF_INIT(10), none = BUF_INIT(0);

	(void)state;
	buf_puts(&b, "0123456789");
	assert_int_equal(buf_error(&b), 0);
	buf_append(&b, "", 0);
	assert_int_equal(buf_error(&b), 0);
	buf_puts(&b, "x");
	assert_int_equal(buf_error(&b), -E2BIG);
	assert_string_equal(b.data, "0123456789"); /* what was there is unharmed */
	assert_int_equal(b.len, 10);
	buf_drop(&b, 10);
	buf_puts(&b, "y"); /* there is room, but the error stays: what is in it would have a hole */
	assert_int_equal(b.len, 0);
	assert_null(buf_take(&b));
	buf_clear(&b);
	assert_int_equal(buf_error(&b), 0);
	buf_printf(&b, "%s", "0123456789");
	assert_int_equal(buf_error(&b), 0);
	buf_printf(&b, "%c", 'x');
	assert_int_equal(buf_error(&b), -E2BIG);
	buf_append(&none, "", 0);
	assert_int_equal(buf_error(&none), 0);
	buf_puts(&none, "x");
	assert_int_equal(buf_error(&none), -E2BIG);
}

static void a_length_that_wraps(void **state)
{
	_buf_ struct buf b = BUF_INIT(10);

	(void)state;
	buf_puts(&b, "abc");
	buf_append(&b, "x", SIZE_MAX);
	assert_int_equal(buf_error(&b), -E2BIG);
	buf_clear(&b);
	buf_append(&b, "x", SIZE_MAX - 1);
	assert_int_equal(buf_error(&b), -E2BIG);
}

static void drops(void **state)
{
	_buf_ struct buf b = BUF_INIT(10);

	(void)state;
	buf_puts(&b, "abcdef");
	buf_drop(&b, 0);
	assert_string_equal(b.data, "abcdef");
	buf_drop(&b, 2);
	assert_string_equal(b.data, "cdef");
	buf_puts(&b, "ghijkl"); /* as much as there is room now */
	assert_int_equal(buf_error(&b), 0);
	assert_string_equal(b.data, "cdefghijkl");
	buf_drop(&b, SIZE_MAX);
	assert_int_equal(b.len, 0);
	assert_string_equal(b.data, "");
}

static void takes(void **state)
{
	_buf_ struct buf b = BUF_INIT(10);
	char *first, *second;

	(void)state;
	buf_puts(&b, "first");
	first = buf_take(&b);
	buf_puts(&b, "second"); /* with memory of its own, and the same bound */
	second = buf_take(&b);
	assert_string_equal(first, "first");
	assert_string_equal(second, "second");
	assert_int_equal(b.max, 10);
	free(first);
	free(second);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_empty_one),	       cmocka_unit_test(grows), cmocka_unit_test(the_bound),
		cmocka_unit_test(a_length_that_wraps), cmocka_unit_test(drops), cmocka_unit_test(takes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
