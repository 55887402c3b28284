/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "api_client/har_entry.c"

static struct buf out = { .max = 1 << 20 };
static json_t *entry;

/* The entry of an event, parsed. */
static json_t *made(const char *event)
{
	_json_ json_t *json = json_loads(event, 0, NULL);
	json_error_t error;

	assert_non_null(json);
	assert_true(har_is_entry(json));
	buf_clear(&out);
	har_entry_put(json, &out);
	assert_int_equal(buf_error(&out), 0);
	json_decref(entry);
	entry = json_loads(out.data, JSON_REJECT_DUPLICATES, &error);
	if (!entry)
		fail_msg("%s in %s", error.text, out.data);
	return entry;
}

static const char *text(const char *of, const char *name)
{
	return json_string_value(json_object_get(json_object_get(entry, of), name));
}

static void test_what_is_an_entry(void **state)
{
	static const char *const none[] = {
		"{\"kind\":\"change\",\"reason\":\"question_asked\",\"url\":\"https://x.test/\"}",
		"{\"kind\":\"refuse\",\"lookup\":\"x.test\"}",
		"{\"kind\":\"refuse\",\"hook\":\"connect\",\"url\":\"x\"}", "{\"kind\":\"error\"}"
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(none); i++) {
		_json_ json_t *event = json_loads(none[i], 0, NULL);

		assert_false(har_is_entry(event));
	}
}

static void test_times(void **state)
{
	const json_t *timings;

	(void)state;
	made("{\"kind\":\"allow\",\"url\":\"https://x.test/"
	     "\",\"method\":\"GET\",\"time\":\"2026-01-01T00:00:01.000000Z\","
	     "\"dns_us\":1000,\"connect_us\":2000,\"tls_us\":3000,\"wait_us\":500000,\"receive_us\":1}");
	assert_string_equal(json_string_value(json_object_get(entry, "startedDateTime")),
			    "2026-01-01T00:00:00.493999Z");
	assert_true(json_real_value(json_object_get(entry, "time")) == 506.001);
	timings = json_object_get(entry, "timings");
	assert_true(json_real_value(json_object_get(timings, "connect")) == 5.0);
	assert_true(json_real_value(json_object_get(timings, "ssl")) == 3.0);
	made("{\"kind\":\"allow\",\"url\":\"https://x.test/\",\"method\":\"GET\",\"wait_us\":7}"); /* a kept connection, no time */
	timings = json_object_get(entry, "timings");
	assert_int_equal(json_integer_value(json_object_get(timings, "connect")), -1);
	assert_int_equal(json_integer_value(json_object_get(timings, "dns")), -1);
}

static void test_a_refusal_is_a_403_unless_it_was_answered_otherwise(void **state)
{
	(void)state;
	made("{\"kind\":\"refuse\",\"reason\":\"not_in_policy\",\"url\":\"x.test:443\"}");
	assert_int_equal(json_integer_value(json_object_get(json_object_get(entry, "response"), "status")), 403);
	assert_string_equal(text("request", "url"), "tcp://x.test:443");
	assert_string_equal(text("request", "method"), "CONNECT");
	assert_string_equal(text("response", "statusText"), "not_in_policy");
	made("{\"kind\":\"refuse\",\"status\":429,\"url\":\"http://x.test/\",\"method\":\"GET\"}");
	assert_int_equal(json_integer_value(json_object_get(json_object_get(entry, "response"), "status")), 429);
	made("{\"kind\":\"allow\",\"url\":\"http://x.test/\",\"method\":\"GET\"}");
	assert_int_equal(json_integer_value(json_object_get(json_object_get(entry, "response"), "status")), 0);
}

static void test_urls_are_uris(void **state)
{
	(void)state;
	made("{\"kind\":\"allow\",\"method\":\"GET\",\"url\":\"https://[2001:db8::1]:8443/a[b]\\u00e9\\u202e "
	     "<x>\\\"%zz%41%4?q=[1]\"}");
	assert_string_equal(text("request", "url"),
			    "https://[2001:db8::1]:8443/a%5Bb%5D%C3%A9%E2%80%AE%20%3Cx%3E%22%25zz%41%254?q=%5B1%5D");
	made("{\"kind\":\"allow\",\"method\":\"CONNECT\",\"url\":\"[2001:db8::1]:22\"}");
	assert_string_equal(text("request", "url"), "tcp://[2001:db8::1]:22");
}

static void test_queries(void **state)
{
	const json_t *query;

	(void)state;
	made("{\"kind\":\"allow\",\"method\":\"GET\",\"url\":\"http://x.test/?a=1&b&=c&&d=%ff%2&e=f=g\"}");
	query = json_object_get(json_object_get(entry, "request"), "queryString");
	assert_int_equal(json_array_size(query), 5);
	assert_string_equal(json_string_value(json_object_get(json_array_get(query, 3), "value")), "\xef\xbf\xbd%2");
	assert_string_equal(json_string_value(json_object_get(json_array_get(query, 4), "value")), "f=g");
}

static void test_headers_and_bodies(void **state)
{
	const json_t *headers;

	(void)state;
	made("{\"kind\":\"allow\",\"method\":\"POST\",\"url\":\"http://x.test/\",\"request_headers\":"
	     "\"Content-Type: text/x\\r\\nno colon\\n: no name\\nempty:\\nlast: a: b\",\"request_base64\":\"AAA=\","
	     "\"response_base64\":\"BBB=\",\"sent\":2,\"received\":3}");
	headers = json_object_get(json_object_get(entry, "request"), "headers");
	assert_int_equal(json_array_size(headers), 3);
	assert_string_equal(json_string_value(json_object_get(json_array_get(headers, 0), "value")), "text/x");
	assert_string_equal(json_string_value(json_object_get(json_array_get(headers, 2), "value")), "a: b");
	headers = json_object_get(json_object_get(entry, "request"), "postData");
	assert_string_equal(json_string_value(json_object_get(headers, "mimeType")), "text/x");
	assert_string_equal(json_string_value(json_object_get(headers, "text")), "AAA=");
	headers = json_object_get(json_object_get(entry, "response"), "content");
	assert_string_equal(json_string_value(json_object_get(headers, "encoding")), "base64");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_is_an_entry),
		cmocka_unit_test(test_times),
		cmocka_unit_test(test_a_refusal_is_a_403_unless_it_was_answered_otherwise),
		cmocka_unit_test(test_urls_are_uris),
		cmocka_unit_test(test_queries),
		cmocka_unit_test(test_headers_and_bodies),
	};
	int failed = cmocka_run_group_tests(tests, NULL, NULL);

	json_decref(entry);
	buf_free(&out);
	return failed;
}
