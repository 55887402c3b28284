/* SPDX-License-Identifier: MIT */
#include "inspect/refuse.c"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>
#include <jansson.h>

/* Its text is a stranger's, in part: whatever the bytes, the body is JSON, and characters stay what they are. */
static void any_detail_is_valid_json(void **state)
{
	static const struct {
		const char *detail, *in_message;
	} cases[] = {
		{ "plain", ": plain." },
		{ "caf\xc3\xa9 \xe2\x82\xac", ": caf\xc3\xa9 \xe2\x82\xac." },
		{ "a \"quote\" and a \\", ": a \"quote\" and a \\." },
		{ "line\nline\x01", ": line\nline\x01." },
		{ "\xff\xfe", ": \xc3\xbf\xc3\xbe." },
	};
	struct worker *worker = calloc(1, sizeof(*worker));
	struct sandbox sandbox = { .rung = { .mode = NP_PROXIED, .level = 2 } };
	struct client client = { .worker = worker, .sandbox = &sandbox };

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		_buf_ struct buf body = BUF_INIT(1 << 16);
		struct head head;
		const char *message;
		json_t *json;

		head_init(&head);
		assert_int_equal(
			refusal_make(&client, NP_R_BAD_HTTP, NULL, NULL, NULL, 0, cases[i].detail, &head, &body), 0);
		json = json_loadb(body.data, body.len, 0, NULL);
		assert_non_null(json);
		message = json_string_value(json_object_get(json, "message"));
		if (!strstr(message, cases[i].in_message))
			fail_msg("%s", message);
		assert_string_equal(json_string_value(json_object_get(json, "reason")), "bad_http");
		assert_true(json_is_null(json_object_get(json, "rule")));
		json_decref(json);
		head_free(&head);
	}
	free(worker);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(any_detail_is_valid_json) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
