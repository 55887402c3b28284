/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "cli/top_model.c"

static struct top_model model;

static int start(void **state)
{
	(void)state;
	top_model_init(&model);
	return 0;
}

static int end(void **state)
{
	(void)state;
	top_model_free(&model);
	return 0;
}

#define GET "\"session\":\"a/b\",\"method\":\"GET\",\"url\":\"http://x.test/\",\"status\":200"

static void test_repeats_are_one_row(void **state)
{
	(void)state;
	top_take_event(&model, "{\"seq\":1,\"kind\":\"allow\",\"reason\":\"rule_allows\",\"sent\":10," GET "}");
	top_take_event(&model, "{\"seq\":2,\"kind\":\"refuse\",\"reason\":\"not_in_policy\",\"lookup\":\"y.test\"}");
	top_take_event(&model, "{\"seq\":3,\"kind\":\"allow\",\"reason\":\"rule_allows\",\"sent\":5," GET "}");
	assert_int_equal(top_visible_count(&model), 2);
	assert_int_equal(top_visible(&model, 1)->count, 2);
	assert_int_equal(top_visible(&model, 1)->sent, 15);
	assert_int_equal(member_number(top_visible(&model, 1)->event, "seq"), 3);
	assert_true(model.allowed == 2 && model.refused == 1 && model.sent == 15 && model.last == 3);
	/* Another end of the same attempt is another row. */
	top_take_event(&model, "{\"seq\":4,\"kind\":\"refuse\",\"reason\":\"rule_denies\"," GET "}");
	assert_int_equal(top_visible_count(&model), 3);
}

static void test_changes_are_each_their_own(void **state)
{
	(void)state;
	for (int i = 0; i < 3; i++)
		top_take_event(&model, "{\"kind\":\"change\",\"reason\":\"raised\",\"level\":\"SECRET\"}");
	assert_int_equal(top_visible_count(&model), 3);
}

static void test_it_is_bounded_and_the_newest_stay(void **state)
{
	char line[160];

	(void)state;
	for (int i = 1; i <= TOP_ROWS + 10; i++) {
		snprintf(line, sizeof(line), "{\"seq\":%d,\"kind\":\"allow\",\"url\":\"http://x.test/%d\"}", i, i);
		top_take_event(&model, line);
	}
	assert_int_equal(top_visible_count(&model), TOP_ROWS);
	assert_int_equal(member_number(top_visible(&model, 0)->event, "seq"), TOP_ROWS + 10);
	assert_int_equal(member_number(top_visible(&model, TOP_ROWS - 1)->event, "seq"), 11);
	assert_null(top_visible(&model, TOP_ROWS));
}

static void test_a_filter_shows_some(void **state)
{
	char problem[FILTER_PROBLEM_SIZE];

	(void)state;
	top_take_event(&model, "{\"kind\":\"allow\",\"url\":\"http://a.x.test/\",\"list\":\"@llm\"}");
	top_take_event(&model, "{\"kind\":\"refuse\",\"url\":\"http://b.x.test/\"}");
	assert_int_equal(event_filter_parse("host:x.test -llm", &model.filter, problem), 0);
	assert_int_equal(top_visible_count(&model), 1);
	assert_string_equal(member_text(top_visible(&model, 0)->event, "url"), "http://b.x.test/");
}

static void test_a_pause_keeps_what_is_shown_and_loses_nothing(void **state)
{
	(void)state;
	top_take_event(&model, "{\"kind\":\"allow\"," GET "}");
	top_pause(&model, true);
	top_take_event(&model, "{\"kind\":\"allow\"," GET "}");
	top_take_event(&model, "{\"kind\":\"allow\"," GET "}");
	assert_int_equal(top_visible_count(&model), 1);
	assert_int_equal(top_visible(&model, 0)->count, 1);
	top_pause(&model, false);
	assert_int_equal(top_visible_count(&model), 2);
	assert_int_equal(top_visible(&model, 0)->count, 2);
	assert_int_equal(model.allowed, 3);
}

static void test_nonsense_is_left_out(void **state)
{
	(void)state;
	top_take_event(&model, "[1]");
	top_take_event(&model, "{");
	top_take_event(&model, "");
	top_take_lists(&model, "{\"sessions\":7,\"questions\":null}");
	top_take_lists(&model, "no JSON");
	assert_true(top_visible_count(&model) == 0 && model.sessions == NULL && model.questions == NULL);
	top_take_lists(&model, "{\"sessions\":[{}]}");
	assert_int_equal(json_array_size(model.sessions), 1);
}

static void says(const char *event, const char *want)
{
	_json_ json_t *json = json_loads(event, 0, NULL);
	char what[128];

	assert_non_null(json);
	top_what(json, what, sizeof(what));
	assert_string_equal(what, want);
}

static void test_what_a_row_is_about(void **state)
{
	(void)state;
	says("{\"kind\":\"allow\"," GET "}", "GET http://x.test/ 200");
	says("{\"kind\":\"refuse\",\"lookup\":\"x.test\"}", "dns x.test");
	says("{\"kind\":\"refuse\",\"hook\":\"connect\",\"protocol\":\"tcp\",\"address\":\"192.0.2.1\",\"port\":80}",
	     "tcp 192.0.2.1:80");
	says("{\"kind\":\"refuse\",\"hook\":\"connect\",\"protocol\":\"tcp\",\"address\":\"2001:db8::1\",\"port\":80}",
	     "tcp [2001:db8::1]:80");
	says("{\"kind\":\"change\",\"reason\":\"raised\",\"level\":\"SECRET\",\"mode\":\"NONE\",\"dataset\":\"d\","
	     "\"cut\":2}",
	     "raised to SECRET, NONE: d, 2 cut");
	says("{\"kind\":\"change\",\"reason\":\"not_kept\",\"dropped\":12}", "--- a gap: 12 events ---");
	says("{\"kind\":\"refuse\",\"url\":\"http://x/\\u001b[2J\\u202e\\u00e9\"}", "connect http://x/?[2J??");
}

static void test_numbers_for_people(void **state)
{
	_json_ json_t *question = json_loads("{\"expires\":\"1970-01-01T00:01:00.000000Z\"}", 0, NULL);
	char text[16];

	(void)state;
	top_bytes(999, text);
	assert_string_equal(text, "999B");
	top_bytes(1536, text);
	assert_string_equal(text, "1.5K");
	top_bytes(UINT64_MAX, text);
	assert_non_null(strchr(text, 'T'));
	assert_int_equal(top_left(question, 15000000), 45);
	assert_int_equal(top_left(question, 99000000), 0);
	assert_int_equal(top_left(NULL, 0), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_repeats_are_one_row, start, end),
		cmocka_unit_test_setup_teardown(test_changes_are_each_their_own, start, end),
		cmocka_unit_test_setup_teardown(test_it_is_bounded_and_the_newest_stay, start, end),
		cmocka_unit_test_setup_teardown(test_a_filter_shows_some, start, end),
		cmocka_unit_test_setup_teardown(test_a_pause_keeps_what_is_shown_and_loses_nothing, start, end),
		cmocka_unit_test_setup_teardown(test_nonsense_is_left_out, start, end),
		cmocka_unit_test(test_what_a_row_is_about),
		cmocka_unit_test(test_numbers_for_people),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
