/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants the four above first */
#include <cmocka.h>

#include "hook/config.c"

#define HUGE_LIMIT "18446744073709551615"

static int add(const char *text, struct buf *out)
{
	cleanup(cleanup_json) json_t *mounts =
		json_pack("[{s:s,s:s},{s:s,s:s}]", "destination", "/run/netpawl", "source", "/t\"1", "destination",
			  "/etc/b.pem", "source", "/t/b");
	cleanup(cleanup_json) json_t *variables = json_pack("[s,s]", "A=/run/netpawl/a", "AB=2");
	const char *problem = NULL;
	int r = oci_config_add(text, strlen(text), mounts, variables, out, &problem);

	assert_true(r == 0 || problem);
	return r;
}

static void expect(const char *text, const char *wanted)
{
	_buf_ struct buf out = BUF_INIT(4096);

	assert_int_equal(add(text, &out), 0);
	assert_string_equal(out.data, wanted);
}

#define OURS_1 "{\"destination\":\"/run/netpawl\",\"source\":\"/t\\\"1\"}"
#define OURS_2 "{\"destination\":\"/etc/b.pem\",\"source\":\"/t/b\"}"

static void test_what_is_added_and_what_stays(void **state)
{
	(void)state;
	expect("{\"process\":{\"env\":[\"PATH=/bin\"],\"rlimits\":[{\"hard\":" HUGE_LIMIT
	       "}]},\"mounts\":[{\"destination\":\"/proc\"}],\"x\":[1.50]}",
	       "{\"process\":{\"env\":[\"PATH=/bin\",\"A=/run/netpawl/a\",\"AB=2\"],\"rlimits\":[{\"hard\":" HUGE_LIMIT
	       "}]},\"mounts\":[{\"destination\":\"/proc\"}," OURS_1 "," OURS_2 "],\"x\":[1.50]}");
	/* in the other order, empty, with spaces; and texts that look like the ends of things */
	expect(" { \"a\" : \"\\\"mounts\\\":[]}\\\\\" , \"mounts\" : [ ] ,\n\"process\" : { \"args\" : [\"]\", "
	       "\"\\\\\"], \"env\" : [ ] } } ",
	       " { \"a\" : \"\\\"mounts\\\":[]}\\\\\" , \"mounts\" : [ " OURS_1 "," OURS_2
	       "] ,\n\"process\" : { \"args\" : [\"]\", \"\\\\\"], \"env\" : [ \"A=/run/netpawl/a\",\"AB=2\"] } } ");
}

static void test_what_is_said_already_wins(void **state)
{
	(void)state;
	expect("{\"mounts\":[{\"destination\":\"/etc/b.pem\",\"source\":\"/"
	       "mine\"}],\"process\":{\"env\":[\"A=mine\"]}}",
	       "{\"mounts\":[{\"destination\":\"/etc/b.pem\",\"source\":\"/mine\"}," OURS_1
	       "],\"process\":{\"env\":[\"A=mine\",\"AB=2\"]}}");
}

static void test_nested_ones_are_others(void **state)
{
	(void)state;
	expect("{\"linux\":{\"mounts\":[1],\"process\":{\"env\":[2]}},\"mounts\":[],\"process\":{\"x\":{\"env\":[3]},"
	       "\"env\":[]}}",
	       "{\"linux\":{\"mounts\":[1],\"process\":{\"env\":[2]}},\"mounts\":[" OURS_1 "," OURS_2
	       "],\"process\":{\"x\":{\"env\":[3]},\"env\":[\"A=/run/netpawl/a\",\"AB=2\"]}}");
}

static void test_mistakes(void **state)
{
	static const char *const texts[] = {
		"",
		"null",
		"[\"mounts\"]",
		"[]",
		"{",
		"{}",
		"\"mounts\"",
		"{\"mounts\":[]}",
		"{\"mounts\":{},\"process\":{\"env\":[]}}",
		"{\"mounts\":[],\"process\":[]}",
		"{\"mounts\":[],\"process\":{\"env\":{}}}",
		"{\"mounts\":[],\"process\":{\"env\":[]}} x",
		"{\"mounts\":[],\"mounts\":[],\"process\":{\"env\":[]}}",
		"{\"\\u006dounts\":[],\"process\":{\"env\":[]}}", /* it is one, and not found by its letters */
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		_buf_ struct buf out = BUF_INIT(4096);

		assert_int_equal(add(texts[i], &out), -EINVAL);
	}
}

static void test_annotations(void **state)
{
	static const char text[] =
		"{\"mounts\":[],\"process\":{\"env\":[]},\"annotations\":{\"netpawl.dev/session\":\"alice/demo\"}}";
	struct annotations wish;
	const char *problem = NULL;

	(void)state;
	assert_int_equal(oci_config_read(text, strlen(text), &wish, &problem), 0);
	assert_string_equal(wish.session.text, "alice/demo");
	assert_int_equal(oci_config_read("{\"id\":\"a\",\"pid\":1}", 18, &wish, &problem), -EINVAL);
	assert_non_null(strstr(problem, "precreate")); /* the state, which the other stages get */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_is_added_and_what_stays),
		cmocka_unit_test(test_what_is_said_already_wins),
		cmocka_unit_test(test_nested_ones_are_others),
		cmocka_unit_test(test_mistakes),
		cmocka_unit_test(test_annotations),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
