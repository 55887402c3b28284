/* SPDX-License-Identifier: MIT */
#include "base/json.c"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>
#include <jansson.h>

#include "base/cleanup.h"

static char *quoted(const char *text, size_t max)
{
	struct buf b = BUF_INIT(1 << 20);

	json_quote(&b, text, max);
	assert_int_equal(buf_error(&b), 0);
	return buf_take(&b);
}

static void forms(void **state)
{
	static const struct {
		const char *text, *quoted;
	} cases[] = {
		{ "", "\"\"" },
		{ "plain text", "\"plain text\"" },
		{ "a\"b\\c/d", "\"a\\\"b\\\\c/d\"" },
		{ "\n\t\r\b\x1b\x7f", "\"\\n\\t\\u000d\\u0008\\u001b\\u007f\"" },
		{ "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", "\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\"" },
		{ "\xe2\x80\xa8\xe2\x80\xae", "\"\\u2028\\u202e\"" }, /* ends a line; turns text around */
		{ "\xf3\xa0\x81\x81", "\"\\udb40\\udc41\"" },	      /* a tag, as two surrogates */
		{ "\xff\x80x", "\"\\u00ff\\u0080x\"" },		      /* no UTF-8 */
		{ "\xc0\xaf", "\"\\u00c0\\u00af\"" },		      /* an overlong slash */
		{ "\xed\xa0\x80", "\"\\u00ed\\u00a0\\u0080\"" },      /* a surrogate on its own */
		{ "\xe2\x82", "\"\\u00e2\\u0082\"" },		      /* cut by its writer */
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		_free_ char *out = quoted(cases[i].text, 1000);

		assert_string_equal(out, cases[i].quoted);
	}
}

static void long_text_is_cut_at_a_character(void **state)
{
	static const struct {
		const char *text;
		size_t max;
		const char *quoted;
	} cases[] = {
		{ "abc", 3, "\"abc\"" },
		{ "abcd", 3, "\"abc...\"" },
		{ "abc", 0, "\"...\"" },
		{ "", 0, "\"\"" },
		{ "ab\xe2\x82\xac", 5, "\"ab\xe2\x82\xac\"" },
		{ "ab\xe2\x82\xac", 4, "\"ab...\"" },
		{ "ab\xe2\x82\xac", 3, "\"ab...\"" },
		{ "ab\xff\xff", 3, "\"ab\\u00ff...\"" },
		{ "a\"\"", 2, "\"a\\\"...\"" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		_free_ char *out = quoted(cases[i].text, cases[i].max);

		assert_string_equal(out, cases[i].quoted);
	}
}

/* Whatever bytes: a parser of JSON takes it, it is one line, and valid text comes back as it was. */
static void any_bytes_are_valid_json(void **state)
{
	uint32_t seed = 1;

	(void)state;
	for (int round = 0; round < 20000; round++) {
		char text[24] = "";
		_free_ char *out = NULL;
		json_t *json;

		for (size_t i = 0; i < sizeof(text) - 1; i++) {
			seed = seed * 1664525 + 1013904223;
			text[i] = (char)(seed >> 24);
		}
		out = quoted(text, 20);
		assert_null(strpbrk(out, "\n\r"));
		json = json_loads(out, JSON_DECODE_ANY, NULL);
		if (!json)
			fail_msg("no JSON: %s", out);
		json_decref(json);
	}
}

static void it_comes_back_as_it_was(void **state)
{
	static const char text[] =
		"q\" b\\ n\n t\t \x01\x1f\x7f \xc3\xa9 \xe2\x80\xae \xf0\x9f\x98\x80 \xf3\xa0\x81\x81";
	_free_ char *out = quoted(text, 1000);
	json_t *json = json_loads(out, JSON_DECODE_ANY, NULL);

	(void)state;
	assert_non_null(json);
	assert_string_equal(json_string_value(json), text);
	json_decref(json);
}

/* Objects and arrays in each other, what a caller adds to, several values on lines of their own. */
static void values_and_commas(void **state)
{
	_buf_ struct buf b = BUF_INIT(4096);

	(void)state;
	json_open_object(&b, NULL);
	json_put_text(&b, "a\"\n", "{", 10);
	json_put_text(&b, "none", NULL, 10);
	json_put_number(&b, "zero", 0);
	json_put_number(&b, "most", UINT64_MAX);
	json_put_bool(&b, "yes", true);
	json_open_array(&b, "list");
	json_close_array(&b);
	json_open_array(&b, "lists");
	json_open_array(&b, NULL);
	json_put_number(&b, NULL, 1);
	json_put_text(&b, NULL, "[", 10);
	json_close_array(&b);
	json_open_object(&b, NULL);
	json_close_object(&b);
	json_put_bool(&b, NULL, false);
	json_close_array(&b);
	json_open_object(&b, "in");
	json_put_text(&b, "cut", "abcdef", 3);
	json_put_text(&b, "colon", ":", 3);
	json_close_object(&b);
	json_close_object(&b);
	buf_puts(&b, "\n");
	json_open_object(&b, NULL);
	json_close_object(&b);
	assert_string_equal(b.data, "{\"a\\\"\\n\":\"{\",\"none\":null,\"zero\":0,\"most\":18446744073709551615,"
				    "\"yes\":true,\"list\":[],\"lists\":[[1,\"[\"],{},false],"
				    "\"in\":{\"cut\":\"abc...\",\"colon\":\":\"}}\n{}");
}

/* Bytes with a length: NUL is one of them, and what is not UTF-8 is replaced, each byte by itself. */
static void bytes(void **state)
{
	static const char data[] = "a\0\"\xff\xe2\x82\xac\xe2\x82";
	_buf_ struct buf b = BUF_INIT(4096);

	(void)state;
	json_put_bytes(&b, NULL, data, sizeof(data) - 1);
	assert_string_equal(b.data, "\"a\\u0000\\\"\\ufffd\xe2\x82\xac\\ufffd\\ufffd\"");
	buf_clear(&b);
	json_put_bytes(&b, NULL, data, 6); /* nothing behind the length is looked at */
	assert_string_equal(b.data, "\"a\\u0000\\\"\\ufffd\\ufffd\\ufffd\"");
	buf_clear(&b);
	json_put_bytes(&b, NULL, NULL, 0);
	assert_string_equal(b.data, "\"\"");
}

static void a_full_buffer_says_so(void **state)
{
	_buf_ struct buf b = BUF_INIT(5);

	(void)state;
	json_quote(&b, "12345", 100);
	assert_int_equal(buf_error(&b), -E2BIG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(forms),
		cmocka_unit_test(long_text_is_cut_at_a_character),
		cmocka_unit_test(any_bytes_are_valid_json),
		cmocka_unit_test(it_comes_back_as_it_was),
		cmocka_unit_test(values_and_commas),
		cmocka_unit_test(bytes),
		cmocka_unit_test(a_full_buffer_says_so),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
