/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "exporter/journald.c"

static struct buf out = { .max = ENTRY_MAX };

static void entry_of(const char *text)
{
	json_t *event = json_loads(text, 0, NULL);

	assert_non_null(event);
	buf_clear(&out);
	journald_put(event, &out);
	json_decref(event);
	assert_int_equal(buf_error(&out), 0);
}

static void test_fields(void **state)
{
	(void)state;
	entry_of("{\"seq\":7,\"kind\":\"refuse\",\"reason\":\"not_in_policy\",\"session\":\"a/"
		 "b\",\"message\":\"no\",\"quiet\":true,"
		 "\"method\":\"GET\",\"url\":\"https://x/\"}");
	assert_string_equal(
		out.data, "MESSAGE=refuse not_in_policy a/b GET https://x/: no\nPRIORITY=5\nSYSLOG_IDENTIFIER=netpawl\n"
			  "NETPAWL_SEQ=7\nNETPAWL_KIND=refuse\nNETPAWL_REASON=not_in_policy\nNETPAWL_SESSION=a/b\n"
			  "NETPAWL_QUIET=1\nNETPAWL_METHOD=GET\nNETPAWL_URL=https://x/\n");
}

/* A newline in a value has it written with its length: the bytes behind it are no field. */
static void test_a_value_is_no_field(void **state)
{
	static const char want[] = "NETPAWL_COMM\n\x0a\0\0\0\0\0\0\0x\nPRIORITY\n";

	(void)state;
	entry_of("{\"kind\":\"allow\",\"comm\":\"x\\nPRIORITY\"}");
	assert_non_null(memmem(out.data, out.len, want, sizeof(want) - 1));
	assert_non_null(strstr(out.data, "PRIORITY=6\n"));
}

static void test_what_is_not_sent(void **state)
{
	(void)state;
	entry_of("{\"request_body\":\"hunter2\",\"response_headers\":\"a: "
		 "hunter2\",\"request_base64\":\"x\",\"a=b\":\"c\",\"A\":\"d\","
		 "\"nested\":{\"x\":\"hunter2\"},\"comm\":\"fine\",\"text\":\"\\u001b[31mred\\n\"}");
	assert_null(strstr(out.data, "hunter2"));
	assert_null(strstr(out.data, "A=d"));
	assert_null(strstr(out.data, "NETPAWL_A="));
	assert_non_null(strstr(out.data, "NETPAWL_COMM=fine\n"));
	assert_non_null(strstr(out.data, ": ?[31mred?\n")); /* MESSAGE is for terminals */
}

static void test_long_texts_are_cut_between_characters(void **state)
{
	static char text[3 * NP_EXPORT_STRING];
	json_t *value;

	(void)state;
	memset(text, 'a', NP_EXPORT_STRING - 1);
	strcpy(text + NP_EXPORT_STRING - 1, "\xc3\xa9"
					    "bbb");
	value = json_string(text);
	assert_int_equal(member_text_length(value), NP_EXPORT_STRING - 1);
	json_decref(value);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fields),
		cmocka_unit_test(test_a_value_is_no_field),
		cmocka_unit_test(test_what_is_not_sent),
		cmocka_unit_test(test_long_texts_are_cut_between_characters),
	};
	int r = cmocka_run_group_tests(tests, NULL, NULL);

	buf_free(&out);
	return r;
}
