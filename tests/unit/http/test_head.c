/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants the four above first */
#include <cmocka.h>

#include "http/head.c"

#include "vocab/limits.h"

static void test_add_and_find(void **state)
{
	struct fields fields;

	(void)state;
	fields_init(&fields);
	assert_null(fields_find(&fields, "accept"));
	assert_int_equal(fields_add(&fields, "accept", 6, "*/*", 3), 0);
	assert_int_equal(fields_add(&fields, "X-Mixed-Case", 12, "As Is", 5), 0);
	assert_int_equal(fields_add(&fields, "accept", 6, "text/html", 9), 0);
	assert_int_equal(fields_add(&fields, "empty", 5, NULL, 0), 0);
	assert_int_equal(fields.n, 4);
	assert_string_equal(fields_find(&fields, "accept")->value, "*/*");
	assert_string_equal(fields_find(&fields, "x-mixed-case")->value, "As Is");
	assert_int_equal(fields_find(&fields, "x-mixed-case")->value_len, 5);
	assert_string_equal(fields_find(&fields, "empty")->value, "");
	assert_null(fields_find(&fields, "accep"));
	assert_null(fields_find(&fields, "accept2"));
	fields_clear(&fields);
	assert_int_equal(fields.n, 0);
	assert_null(fields_find(&fields, "accept"));
	fields_free(&fields);
	fields_free(&fields);
}

/* Every byte, at every place of a word and behind the last whole one. */
static void test_lower(void **state)
{
	(void)state;
	for (size_t len = 1; len <= 20; len++) {
		for (size_t at = 0; at < len; at++) {
			struct fields fields;
			char name[20];

			fields_init(&fields);
			for (int c = 0; c < 128; c++) {
				memset(name, 'X', len);
				name[at] = (char)(2 * c + (int)(len & 1));
				assert_int_equal(fields_add(&fields, name, len, "", 0), 0);
				for (size_t i = 0; i < len; i++)
					assert_int_equal(fields.items[c].name[i],
							 name[i] >= 'A' && name[i] <= 'Z' ? name[i] + 32 : name[i]);
				assert_int_equal(fields.items[c].name[len], '\0');
			}
			fields_free(&fields);
		}
	}
}

static void test_number_bound(void **state)
{
	struct fields fields;

	(void)state;
	fields_init(&fields);
	for (size_t i = 0; i < NP_HEAD_FIELDS; i++)
		assert_int_equal(fields_add(&fields, "a", 1, "b", 1), 0);
	assert_int_equal(fields_add(&fields, "a", 1, "b", 1), -E2BIG);
	assert_int_equal(fields.n, NP_HEAD_FIELDS);
	fields_free(&fields);
}

static void test_byte_bound(void **state)
{
	static char large[NP_HEAD_BYTES];
	struct fields fields;

	(void)state;
	memset(large, 'x', sizeof(large));
	fields_init(&fields);
	/* One byte of name and two NULs. */
	assert_int_equal(fields_add(&fields, "a", 1, large, NP_HEAD_BYTES - 2), -E2BIG);
	assert_int_equal(fields_add(&fields, "a", 1, large, SIZE_MAX), -E2BIG);
	assert_int_equal(fields_add(&fields, large, SIZE_MAX, large, SIZE_MAX), -E2BIG);
	assert_int_equal(fields_add(&fields, "a", 1, large, NP_HEAD_BYTES - 3), 0);
	assert_int_equal(fields_add(&fields, "", 0, "", 0), -E2BIG);
	fields_clear(&fields);
	/* However it is cut, the sum is the bound. */
	for (size_t i = 0; i < NP_HEAD_BYTES / 1024; i++)
		assert_int_equal(fields_add(&fields, "a", 1, large, 1021), 0);
	assert_int_equal(fields_add(&fields, "", 0, "", 0), -E2BIG);
	assert_true(fields.size <= NP_HEAD_BYTES);
	fields_free(&fields);
}

static void test_text_stays(void **state)
{
	char value[1000];
	struct head head;

	(void)state;
	memset(value, 'v', sizeof(value));
	head_init(&head);
	assert_int_equal(head.length, BODY_UNKNOWN);
	assert_int_equal(head_set_method(&head, "GET", 3), 0);
	assert_int_equal(head_set_authority(&head, "example.com:8443", 16), 0);
	assert_int_equal(head_set_target(&head, "/a?b", 4), 0);
	assert_int_equal(head_set_scheme(&head, "https", 5), 0);
	assert_int_equal(head_set_upgrade(&head, "websocket", 9), 0);
	assert_int_equal(fields_add(&head.fields, "first", 5, "1", 1), 0);
	for (size_t i = 0; i < 60; i++)
		assert_int_equal(fields_add(&head.fields, "x", 1, value, sizeof(value)), 0);
	assert_string_equal(head.method, "GET");
	assert_string_equal(head.authority, "example.com:8443");
	assert_string_equal(head.target, "/a?b");
	assert_string_equal(head.scheme, "https");
	assert_string_equal(head.upgrade, "websocket");
	assert_string_equal(fields_find(&head.fields, "first")->value, "1");
	assert_int_equal(head_set_target(&head, value, NP_HEAD_BYTES), -E2BIG);
	assert_string_equal(head.target, "/a?b");
	head_clear(&head);
	assert_null(head.method);
	assert_null(head.upgrade);
	assert_int_equal(head.fields.n, 0);
	assert_int_equal(head_set_target(&head, NULL, 0), 0);
	assert_string_equal(head.target, "");
	head_free(&head);
}

/* By the grammar, byte for byte. */
static void test_names(void **state)
{
	static const char token[] = "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
	(void)state;
	for (int c = 0; c < 256; c++) {
		char name[3] = { 'a', (char)c, 'b' };

		assert_int_equal(field_name_is_valid(name, 3), c && strchr(token, c));
	}
	assert_true(field_name_is_valid("a", 1));
	assert_false(field_name_is_valid("", 0));
}

static void test_values(void **state)
{
	char value[40];

	(void)state;
	/* At every place of a word of eight, and behind the last whole one. */
	for (size_t len = 1; len <= sizeof(value); len++) {
		for (size_t at = 0; at < len; at++) {
			for (int c = 0; c < 256; c++) {
				bool edge = at == 0 || at == len - 1;
				bool valid = c >= 0x20 && c != 0x7f;

				if (c == '\t')
					valid = true;
				if (edge && (c == '\t' || c == ' '))
					valid = false;
				memset(value, 'x', sizeof(value));
				value[at] = (char)c;
				assert_int_equal(field_value_is_valid(value, len), valid);
			}
		}
	}
	assert_true(field_value_is_valid("", 0));
	assert_true(field_value_is_valid("a\t \tb", 5));
	assert_false(field_value_is_valid("a\tb\nc", 5));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_add_and_find), cmocka_unit_test(test_lower),
		cmocka_unit_test(test_number_bound), cmocka_unit_test(test_byte_bound),
		cmocka_unit_test(test_text_stays),   cmocka_unit_test(test_names),
		cmocka_unit_test(test_values),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
