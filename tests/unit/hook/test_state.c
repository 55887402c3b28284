/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants the four above first */
#include <cmocka.h>

#include "hook/state.c"

static int state_of(const char *text, struct oci_state *ret, const char **ret_problem)
{
	*ret_problem = NULL;
	return oci_state_read(text, strlen(text), ret, ret_problem);
}

static void test_what_a_runtime_says(void **state)
{
	struct oci_state s;
	const char *problem;

	(void)state;
	assert_int_equal(
		state_of("{\"ociVersion\":\"1.0.2-dev\",\"id\":\"c0ffee\",\"status\":\"creating\",\"pid\":4711,"
			 "\"bundle\":\"/b\",\"annotations\":{\"io.container.manager\":\"libpod\","
			 "\"netpawl.dev/session\":\"alice/demo\",\"netpawl.dev/level\":\"secret\"}}",
			 &s, &problem),
		0);
	assert_string_equal(s.id, "c0ffee");
	assert_int_equal(s.pid, 4711);
	assert_string_equal(s.wish.session.text, "alice/demo");
	assert_true(s.wish.has_level && s.wish.level == LEVEL_SECRET);
}

static void test_without_annotations(void **state)
{
	static const char *const texts[] = {
		"{\"id\":\"a\",\"pid\":1}",
		"{\"id\":\"a\",\"pid\":1,\"annotations\":null}",
		"{\"id\":\"a\",\"pid\":1,\"annotations\":{}}",
		"{\"id\":\"a\",\"pid\":1,\"annotations\":{\"netpawl.dev/sessions\":\"a/b\",\"x\":{\"y\":[1]}}}",
	};
	struct oci_state s;
	const char *problem;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		assert_int_equal(state_of(texts[i], &s, &problem), 0);
		assert_string_equal(s.wish.session.text, "");
		assert_false(s.wish.has_level);
	}
}

static void test_mistakes(void **state)
{
	static const char *const texts[] = {
		"",
		"null",
		"[]",
		"{",
		"{}",
		"{\"id\":\"a\"}",
		"{\"pid\":1}",
		"{\"id\":\"\",\"pid\":1}",
		"{\"id\":\"a\",\"pid\":0}",
		"{\"id\":\"a\",\"pid\":-1}",
		"{\"id\":\"a\",\"pid\":\"1\"}",
		"{\"id\":\"a\",\"pid\":1.5}",
		"{\"id\":\"a\",\"pid\":4294967296}",
		"{\"id\":7,\"pid\":1}",
		"{\"id\":\"a\",\"pid\":1}x",
		"{\"id\":\"a\",\"pid\":1,\"pid\":2}",
		"{\"id\":\"a\",\"pid\":1,\"annotations\":[]}",
		"{\"id\":\"a\",\"pid\":1,\"annotations\":{\"netpawl.dev/session\":7}}",
		"{\"id\":\"a\",\"pid\":1,\"annotations\":{\"netpawl.dev/session\":\"\"}}",
		"{\"id\":\"a\",\"pid\":1,\"annotations\":{\"netpawl.dev/session\":\"alice\"}}",
		"{\"id\":\"a\",\"pid\":1,\"annotations\":{\"netpawl.dev/session\":\"../demo\"}}",
		"{\"id\":\"a\",\"pid\":1,\"annotations\":{\"netpawl.dev/session\":\"a/b\\u0000\"}}",
		"{\"id\":\"a\",\"pid\":1,\"annotations\":{\"netpawl.dev/session\":\"a/b\",\"netpawl.dev/session\":\"c/"
		"d\"}}",
		"{\"id\":\"a\",\"pid\":1,\"annotations\":{\"netpawl.dev/level\":\"SECRET\"}}",
		"{\"id\":\"a\",\"pid\":1,\"annotations\":{\"netpawl.dev/session\":\"a/b\",\"netpawl.dev/"
		"level\":\"HIGH\"}}",
		"{\"id\":\"a\",\"pid\":1,\"annotations\":{\"netpawl.dev/session\":\"a/b\",\"netpawl.dev/level\":3}}",
	};
	struct oci_state s = { .pid = 99 };
	const char *problem;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		assert_int_equal(state_of(texts[i], &s, &problem), -EINVAL);
		assert_non_null(problem);
		assert_int_equal(s.pid, 99); /* untouched */
	}
}

static void test_an_id_of_any_length(void **state)
{
	char text[2 * NP_CONTAINER_ID_MAX], id[NP_CONTAINER_ID_MAX + 2] = "";
	const char *problem;
	struct oci_state s;

	(void)state;
	memset(id, 'a', NP_CONTAINER_ID_MAX);
	snprintf(text, sizeof(text), "{\"id\":\"%s\",\"pid\":1}", id);
	assert_int_equal(state_of(text, &s, &problem), 0);
	assert_string_equal(s.id, id);
	id[NP_CONTAINER_ID_MAX] = 'a';
	snprintf(text, sizeof(text), "{\"id\":\"%s\",\"pid\":1}", id);
	assert_int_equal(state_of(text, &s, &problem), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_a_runtime_says),
		cmocka_unit_test(test_without_annotations),
		cmocka_unit_test(test_mistakes),
		cmocka_unit_test(test_an_id_of_any_length),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
