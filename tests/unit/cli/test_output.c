/* SPDX-License-Identifier: MIT */
#include "cli/output.c"

#include <setjmp.h>
#include <cmocka.h>

static void assert_clean(const char *text, const char *expected)
{
	struct buf out = BUF_INIT(1024);

	output_text(&out, text, strlen(text));
	assert_string_equal(out.data, expected);
	buf_free(&out);
}

static void hostile_text_is_cleaned(void **state)
{
	(void)state;
	assert_clean("plain text", "plain text");
	assert_clean("gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x98\x80",
		     "gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x98\x80");
	assert_clean("a\x1b[31mb\r\n\tc\x7f", "a?[31mb???c?");
	assert_clean("\xc2\x9b"
		     "31m",
		     "?31m"); /* CSI as one character */
	assert_clean("a\xe2\x80\xae"
		     "b\xe2\x81\xa6",
		     "a?b?");						   /* right-to-left override, isolate */
	assert_clean("\xff\xc0\xaf\xe0\x80\xaf\xed\xa0\x80", "?????????"); /* never, overlong, surrogate */
	assert_clean("end\xe2\x82", "end??");				   /* cut short */
}

static void tables_are_aligned(void **state)
{
	_table_ struct table table = { .columns = 3, .heading = true };
	char *text = NULL;
	size_t len = 0;
	FILE *to = open_memstream(&text, &len);

	(void)state;
	table_add(&table, "A", "LONG", "C");
	table_add(&table,
		  "gr\xc3\xbc"
		  "n",
		  NULL, "x y");
	table_add(&table, "1", "a\nb", "");
	table_print(&table, to);
	fclose(to);
	assert_string_equal(text, "A     LONG  C\n"
				  "gr\xc3\xbcn  -     x y\n"
				  "1     a?b   -\n");
	free(text);
}

static void scalars_in_words(void **state)
{
	_json_ json_t *json = json_loads("{\"s\":\"x\",\"i\":12,\"t\":true,\"f\":false,\"n\":null,\"o\":{}}", 0, NULL);
	static const char *const expected[][2] = {
		{ "s", "x" }, { "i", "12" }, { "t", "yes" }, { "f", "no" }, { "n", "none" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(expected); i++) {
		char *text = scalar_text(json_object_get(json, expected[i][0]));

		assert_string_equal(text, expected[i][1]);
		free(text);
	}
	assert_null(scalar_text(json_object_get(json, "o")));
	assert_null(scalar_text(json_object_get(json, "missing")));
	assert_null(member_text(json, "i"));
	assert_null(member_text(NULL, "i"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hostile_text_is_cleaned),
		cmocka_unit_test(tables_are_aligned),
		cmocka_unit_test(scalars_in_words),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
