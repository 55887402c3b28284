/* SPDX-License-Identifier: MIT */
#include "control/body.c"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

static const char *session, *level;
static const struct body_field fields[] = {
	{ "session", true, .ret_text = &session },
	{ "level", false, .ret_text = &level },
	{ "command", false, .is_nested = true },
	{ "words", false, .is_array = true },
};
static struct failure failure;
static json_t *root;

static int reset(void **state)
{
	(void)state;
	json_decref(root);
	root = NULL;
	session = level = "untouched";
	memset(&failure, 0, sizeof(failure));
	return 0;
}

static int read_n(const char *text, size_t len)
{
	reset(NULL);
	return body_read(text, len, fields, ARRAY_SIZE(fields), &root, &failure);
}

static int read_text(const char *text)
{
	return read_n(text, strlen(text));
}

#define REFUSED(text, why, place) refused(text, strlen(text), why, place)
static void refused(const char *text, size_t len, unsigned why, const char *place)
{
	assert_int_equal(read_n(text, len), -EINVAL);
	assert_int_equal(failure.reason, why);
	if (!strstr(failure.text, place))
		fail_msg("\"%s\" does not say \"%s\"", failure.text, place);
	assert_null(root);
	assert_string_equal(session, "untouched");
	assert_string_equal(level, "untouched");
}

static void reads(void **state)
{
	(void)state;
	assert_int_equal(read_text("{\"session\":\"alice/demo\",\"level\":\"SECRET\"}"), 0);
	assert_string_equal(session, "alice/demo");
	assert_string_equal(level, "SECRET");
	assert_int_equal(read_text(" \r\n{ \"session\" : \"\\u00e9[{[{[{\\\"\\\\\" }\n"), 0);
	assert_string_equal(session, "\xc3\xa9[{[{[{\"\\");
	assert_null(level);
}

static void refuses_what_is_no_json(void **state)
{
	(void)state;
	REFUSED("", NP_R_BAD_JSON, "empty");
	REFUSED("{", NP_R_BAD_JSON, "line 1");
	REFUSED("hello", NP_R_BAD_JSON, "line 1, column");
	REFUSED("{'session':'a/b'}", NP_R_BAD_JSON, "line 1");
	REFUSED("{\"session\":\"a/b\",}", NP_R_BAD_JSON, "line 1");
	REFUSED("{\"session\":\"a/b", NP_R_BAD_JSON, "line 1");
	REFUSED("{\"session\":\"a\nb\"}", NP_R_BAD_JSON, "line 1");
	REFUSED("{\"session\":\"\xff\"}", NP_R_BAD_JSON, "0xff");
	REFUSED("{\"session\":\"\\ud800\"}", NP_R_BAD_JSON, "line 1");
	REFUSED("\xef\xbb\xbf{\"session\":\"a/b\"}", NP_R_BAD_JSON, "line 1");
	REFUSED("\n\n{\"session\":oops}", NP_R_BAD_JSON, "line 3");
}

static void refuses_bytes_behind(void **state)
{
	(void)state;
	REFUSED("{\"session\":\"a/b\"} x", NP_R_BAD_JSON, "end of file");
	REFUSED("{\"session\":\"a/b\"}{}", NP_R_BAD_JSON, "end of file");
	refused("{\"session\":\"a/b\"}\0", 18, NP_R_BAD_JSON, "NUL at byte 17");
}

static void refuses_nul(void **state)
{
	(void)state;
	refused("{\"session\":\"a/b\0c\"}", 19, NP_R_BAD_JSON, "NUL at byte 15");
	refused("{\"session\":\"a/b\\\0\"}", 19, NP_R_BAD_JSON, "NUL at byte 16");
	REFUSED("{\"session\":\"a/b\\u0000c\"}", NP_R_BAD_JSON, "\\u0000");
	REFUSED("{\"session\\u0000\":\"a/b\"}", NP_R_BAD_JSON, "u0000");
}

static void refuses_other_shapes(void **state)
{
	(void)state;
	REFUSED("[]", NP_R_BAD_JSON, "an array");
	REFUSED("[\"session\"]", NP_R_BAD_JSON, "an array");
	REFUSED("\"session\"", NP_R_BAD_JSON, "");
	REFUSED("null", NP_R_BAD_JSON, "");
}

static void names_the_field(void **state)
{
	(void)state;
	REFUSED("{\"session\":\"a/b\",\"colour\":\"red\"}", NP_R_UNKNOWN_FIELD, "\"colour\"");
	REFUSED("{\"session\":\"a/b\",\"Level\":\"PUBLIC\"}", NP_R_UNKNOWN_FIELD, "\"Level\"");
	REFUSED("{\"session\":\"a/b\",\"\":1}", NP_R_UNKNOWN_FIELD, "\"\"");
	REFUSED("{\"session\":\"a/b\",\"level\":2}", NP_R_BAD_FIELD, "\"level\" must be a string, not a number");
	REFUSED("{\"session\":\"a/b\",\"level\":null}", NP_R_BAD_FIELD, "\"level\" must be a string, not null");
	REFUSED("{\"session\":[\"a/b\"]}", NP_R_BAD_FIELD, "\"session\" must be a string, not an array");
	REFUSED("{\"session\":{}}", NP_R_BAD_FIELD, "not an object");
	REFUSED("{\"session\":\"a/b\",\"command\":\"x\"}", NP_R_BAD_FIELD,
		"\"command\" must be an array or an object, not a string");
	REFUSED("{\"session\":\"a/b\",\"command\":null}", NP_R_BAD_FIELD, "not null");
	REFUSED("{\"session\":\"a/b\",\"words\":\"x\"}", NP_R_BAD_FIELD, "\"words\" must be an array, not a string");
	REFUSED("{\"session\":\"a/b\",\"words\":{}}", NP_R_BAD_FIELD, "\"words\" must be an array, not an object");
	REFUSED("{\"session\":true}", NP_R_BAD_FIELD, "not a boolean");
	REFUSED("{\"level\":\"PUBLIC\"}", NP_R_BAD_FIELD, "\"session\" is missing");
	REFUSED("{}", NP_R_BAD_FIELD, "\"session\" is missing");
}

static void refuses_twice(void **state)
{
	(void)state;
	REFUSED("{\"session\":\"a/b\",\"session\":\"c/d\"}", NP_R_BAD_JSON, "session");
	REFUSED("{\"session\":\"a/b\",\"sess\\u0069on\":\"c/d\"}", NP_R_BAD_JSON, "duplicate");
}

static void bounds_the_depth(void **state)
{
	char deep[4096];

	(void)state;
	/* As deep as allowed: then it is the type that is wrong. */
	REFUSED("{\"session\":[[[]]]}", NP_R_BAD_FIELD, "an array");
	REFUSED("{\"session\":[[[[]]]]}", NP_R_BAD_JSON, "deeper than 4 at byte 14");
	memset(deep, '[', sizeof(deep));
	refused(deep, sizeof(deep), NP_R_BAD_JSON, "deeper than 4 at byte 4");
	/* What closes does not count: siblings are not depth. */
	REFUSED("{\"session\":[[],[],[],[],[],{}]}", NP_R_BAD_FIELD, "an array");
	/* Closing more than was opened must not buy depth. */
	REFUSED("]]]]]]]][[[[[", NP_R_BAD_JSON, "deeper than 4 at byte 12");
}

static void cuts_long_names(void **state)
{
	char text[2048];

	(void)state;
	memset(text, 'x', sizeof(text));
	memcpy(text, "{\"", 2);
	memcpy(text + sizeof(text) - 4, "\":1}", 4);
	refused(text, sizeof(text), NP_R_UNKNOWN_FIELD, "\"xxxx");
	assert_true(strlen(failure.text) < 100);
}

static void reads_numbers(void **state)
{
	uint64_t upto = 7;
	const struct body_field numbers[] = { { "upto", true, .ret_number = &upto } };
	static const char *const bad[] = { "{\"upto\":\"1\"}", "{\"upto\":-1}", "{\"upto\":1.0}", "{\"upto\":true}",
					   "{\"upto\":null}" };

	(void)state;
	reset(NULL);
	assert_int_equal(body_read("{\"upto\":12}", 11, numbers, 1, &root, &failure), 0);
	assert_int_equal(upto, 12);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		reset(NULL);
		assert_int_equal(body_read(bad[i], strlen(bad[i]), numbers, 1, &root, &failure), -EINVAL);
		assert_int_equal(failure.reason, NP_R_BAD_FIELD);
		assert_non_null(strstr(failure.text, "\"upto\" must be a whole number"));
	}
	assert_int_equal(upto, 12);
	/* What JSON can say and no integer holds. */
	reset(NULL);
	assert_int_equal(body_read("{\"upto\":99999999999999999999}", 31, numbers, 1, &root, &failure), -EINVAL);
}

static void reads_flags(void **state)
{
	bool keep = true;
	const struct body_field flags[] = { { "keep", false, .ret_flag = &keep } };
	static const char *const bad[] = { "{\"keep\":\"true\"}", "{\"keep\":1}", "{\"keep\":null}", "{\"keep\":[]}" };

	(void)state;
	reset(NULL);
	assert_int_equal(body_read("{}", 2, flags, 1, &root, &failure), 0);
	assert_false(keep);
	reset(NULL);
	assert_int_equal(body_read("{\"keep\":true}", 13, flags, 1, &root, &failure), 0);
	assert_true(keep);
	reset(NULL);
	assert_int_equal(body_read("{\"keep\":false}", 14, flags, 1, &root, &failure), 0);
	assert_false(keep);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		reset(NULL);
		assert_int_equal(body_read(bad[i], strlen(bad[i]), flags, 1, &root, &failure), -EINVAL);
		assert_non_null(strstr(failure.text, "\"keep\" must be true or false"));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads),
		cmocka_unit_test(reads_flags),
		cmocka_unit_test(refuses_what_is_no_json),
		cmocka_unit_test(refuses_bytes_behind),
		cmocka_unit_test(refuses_nul),
		cmocka_unit_test(refuses_other_shapes),
		cmocka_unit_test(names_the_field),
		cmocka_unit_test(refuses_twice),
		cmocka_unit_test(bounds_the_depth),
		cmocka_unit_test(cuts_long_names),
		cmocka_unit_test(reads_numbers),
	};

	return cmocka_run_group_tests(tests, NULL, reset);
}
