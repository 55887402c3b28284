/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "cli/ocsf.c"

static struct buf out = { .max = 1 << 20 };

static json_t *mapped(const char *text)
{
	_json_ json_t *event = json_loads(text, 0, NULL);
	json_t *json;

	assert_non_null(event);
	buf_clear(&out);
	ocsf_put(event, "host.test", &out);
	assert_int_equal(buf_error(&out), 0);
	json = json_loads(out.data, JSON_REJECT_DUPLICATES, NULL);
	assert_non_null(json);
	return json;
}

static void maps_to(const char *event, int class, int activity, int severity)
{
	_json_ json_t *json = mapped(event);

	assert_int_equal(member_number(json, "class_uid"), class);
	assert_int_equal(member_number(json, "activity_id"), activity);
	assert_int_equal(member_number(json, "type_uid"), class * 100 + activity);
	assert_int_equal(member_number(json, "severity_id"), severity);
}

static void test_classes(void **state)
{
	(void)state;
	maps_to("{\"kind\":\"allow\",\"reason\":\"rule_allows\",\"method\":\"GET\",\"url\":\"https://x.test/\"}", 4002,
		3, 1);
	maps_to("{\"kind\":\"refuse\",\"reason\":\"not_in_policy\",\"method\":\"BREW\",\"url\":\"https://x.test/\"}",
		4002, 99, 2);
	maps_to("{\"kind\":\"allow\",\"reason\":\"rule_allows\",\"method\":\"CONNECT\",\"url\":\"x.test:22\"}", 4001, 1,
		1);
	maps_to("{\"kind\":\"refuse\",\"reason\":\"mode_none\",\"hook\":\"connect\",\"address\":\"192.0.2.1\",\"port\":"
		"80}",
		4001, 5, 2);
	maps_to("{\"kind\":\"refuse\",\"reason\":\"not_in_policy\",\"lookup\":\"x.test\"}", 4003, 1, 2);
	maps_to("{\"kind\":\"change\",\"reason\":\"raised\"}", 5019, 1, 1);
	maps_to("{\"kind\":\"change\",\"reason\":\"run_ended\"}", 6003, 99, 1);
	maps_to("{\"kind\":\"error\",\"reason\":\"failed\"}", 6003, 99, 3);
	maps_to("{\"kind\":\"change\",\"reason\":\"placed_sockets\"}", 2004, 1, 4);
	maps_to("{}", 6003, 99, 1);
}

static void test_what_was_captured_is_left_out(void **state)
{
	_json_ json_t *json = mapped(
		"{\"kind\":\"allow\",\"method\":\"GET\",\"url\":\"https://x.test/\",\"request_headers\":\"a: SECRET\","
		"\"request_body\":\"SECRET\",\"response_base64\":\"SECRET\",\"address\":\"/run/x.sock\"}");

	(void)state;
	assert_null(strstr(out.data, "SECRET"));
	assert_string_equal(member_text(json_object_get(json, "dst_endpoint"), "name"), "/run/x.sock");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_classes),
		cmocka_unit_test(test_what_was_captured_is_left_out),
	};
	int failed = cmocka_run_group_tests(tests, NULL, NULL);

	buf_free(&out);
	return failed;
}
