/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>
#include <jansson.h>

#include "events/event.c"

#include <string.h>

#include "vocab/limits.h"

static struct buf out = { .max = 1 << 20 };

static const char *written(const struct event *event)
{
	buf_clear(&out);
	event_to_json(event, &out);
	assert_int_equal(buf_error(&out), 0);
	return out.data;
}

/* Parses what was written; it must be one line. */
static json_t *parsed(const struct event *event)
{
	const char *text = written(event);
	json_error_t error;
	json_t *json;

	assert_ptr_equal(strchr(text, '\n'), text + out.len - 1);
	json = json_loads(text, JSON_REJECT_DUPLICATES, &error);
	if (!json)
		fail_msg("%s in %s", error.text, text);
	return json;
}

static void test_every_member(void **state)
{
	const struct event event = {
		.seq = 18446744073709551615u,
		.wall_us = 1767225600000001,
		.reason = NP_R_MODE_NONE,
		.session = "alice/demo",
		.sandbox = "alice.demo.1",
		.rung = { .mode = NP_NONE, .level = NP_LEVELS - 1, .generation = 4294967295u },
		.hook = NP_HOOK_CONNECT,
		.protocol = 6,
		.address = "192.0.2.1",
		.port = 443,
		.pid = 12,
		.uid = 1000,
		.comm = "curl",
		.suppressed = 3,
		.dataset = "customers.csv",
		.text = "why",
		.who = "uid 0 pid 1",
		.cut = 0,
		.has_cut = 1,
		.applied_us = 42,
	};

	(void)state;
	assert_string_equal(written(&event),
			    "{\"seq\":18446744073709551615,\"time\":\"2026-01-01T00:00:00.000001Z\","
			    "\"kind\":\"refuse\",\"reason\":\"mode_none\","
			    "\"message\":\"the sandbox's mode is NONE: its network is closed\","
			    "\"session\":\"alice/demo\",\"sandbox\":\"alice.demo.1\",\"mode\":\"NONE\","
			    "\"level\":\"SECRET\",\"generation\":4294967295,\"hook\":\"connect\","
			    "\"protocol\":\"tcp\",\"address\":\"192.0.2.1\",\"port\":443,\"pid\":12,\"uid\":1000,"
			    "\"comm\":\"curl\",\"suppressed\":3,\"dataset\":\"customers.csv\",\"text\":\"why\","
			    "\"who\":\"uid 0 pid 1\",\"cut\":0,\"applied_us\":42}\n");
}

static void test_absent_members(void **state)
{
	const struct event event = { .reason = NP_R_DAEMON_READY };

	(void)state;
	assert_string_equal(written(&event), "{\"kind\":\"change\",\"reason\":\"daemon_ready\","
					     "\"message\":\"netpawld is ready\"}\n");
}

static void test_root_has_a_uid(void **state)
{
	struct event event = { .reason = NP_R_MODE_NONE, .hook = NP_HOOK_CONNECT, .pid = 7 };

	(void)state;
	assert_non_null(strstr(written(&event), ",\"pid\":7,\"uid\":0}"));
	event.hook = 0; /* of an inspector: whose process it is, it does not know */
	assert_non_null(strstr(written(&event), ",\"pid\":7}"));
}

static void test_kinds(void **state)
{
	(void)state;
	assert_string_equal(event_kind(0), "allow");
	assert_string_equal(event_kind(31), "allow");
	assert_string_equal(event_kind(32), "refuse");
	assert_string_equal(event_kind(127), "refuse");
	assert_string_equal(event_kind(128), "change");
	assert_string_equal(event_kind(191), "change");
	assert_string_equal(event_kind(192), "error");
	assert_string_equal(event_kind(255), "error");
}

static void test_unknown_codes(void **state)
{
	const struct event event = { .reason = 120, .protocol = 253, .hook = 99 };

	(void)state;
	assert_non_null(strstr(written(&event), "\"reason\":\"unknown\""));
	assert_non_null(strstr(out.data, "\"protocol\":\"253\""));
	assert_non_null(strstr(out.data, "\"hook\":\"unknown\""));
}

static void test_times(void **state)
{
	static const struct {
		uint64_t wall_us;
		const char *text;
	} cases[] = {
		{ 0, "1970-01-01T00:00:00.000000Z" },
		{ 999999, "1970-01-01T00:00:00.999999Z" },
		{ 951782400000000, "2000-02-29T00:00:00.000000Z" },
		{ 4107542399123456, "2100-02-28T23:59:59.123456Z" },
		{ 4107542400000000, "2100-03-01T00:00:00.000000Z" },
		{ UINT64_MAX, "9999-12-31T23:59:59.999999Z" },
	};
	char text[TIME_TEXT_SIZE];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		time_format(cases[i].wall_us, text);
		assert_string_equal(text, cases[i].text);
	}
}

static void test_hostile_strings(void **state)
{
	static const struct {
		const char *in, *out;
	} cases[] = {
		{ "", "" },
		{ "a\"b\\c/d", "a\\\"b\\\\c/d" },
		{ "a\nb\tc\rd", "a\\nb\\tc\\u000dd" },
		{ "\x1b[31m\x7f", "\\u001b[31m\\u007f" },
		{ "gr\xc3\xbc\xc3\x9f", "gr\xc3\xbc\xc3\x9f" },
		{ "\xe2\x82\xac\xf0\x9f\x90\xbe", "\xe2\x82\xac\xf0\x9f\x90\xbe" },
		{ "\xc2\x85\xc2\x9b\xc2\xa0", "\\u0085\\u009b\xc2\xa0" }, /* C1 controls */
		{ "\xe2\x80\xa8\xe2\x80\xa9", "\\u2028\\u2029" },
		{ "\xe2\x80\xaeipa\xe2\x80\xac", "\\u202eipa\\u202c" },		     /* bidi override */
		{ "\xe2\x81\xa6\xe2\x81\xa9\xd8\x9c", "\\u2066\\u2069\\u061c" },     /* isolates, letter mark */
		{ "\xe2\x80\x8b\xe2\x80\x8f\xef\xbb\xbf", "\\u200b\\u200f\\ufeff" }, /* no width */
		{ "\xf3\xa0\x81\x81", "\\udb40\\udc41" },			     /* a tag character: two units */
		{ "\xf4\x8f\xbf\xbf", "\xf4\x8f\xbf\xbf" },			     /* the last character */
		{ "\xff\xfe\x80", "\\u00ff\\u00fe\\u0080" },			     /* no UTF-8 at all */
		{ "\xc0\xaf\xc1\xbf", "\\u00c0\\u00af\\u00c1\\u00bf" },		     /* overlong, two bytes */
		{ "\xe0\x80\xaf", "\\u00e0\\u0080\\u00af" },			     /* overlong, three */
		{ "\xf0\x80\x80\xaf", "\\u00f0\\u0080\\u0080\\u00af" },		     /* overlong, four */
		{ "\xed\xa0\x80", "\\u00ed\\u00a0\\u0080" },			     /* a surrogate */
		{ "\xf4\x90\x80\x80", "\\u00f4\\u0090\\u0080\\u0080" },		     /* above U+10FFFF */
		{ "\xe2\x82", "\\u00e2\\u0082" },				     /* ends in a character */
		{ "\xe2\"", "\\u00e2\\\"" },					     /* a quote in a character */
		{ "\xc3\xc3\xbc", "\\u00c3\xc3\xbc" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		buf_clear(&out);
		json_quote(&out, cases[i].in, NP_EVENT_STRING_MAX);
		assert_int_equal(out.data[0], '"');
		assert_int_equal(out.data[out.len - 1], '"');
		out.data[out.len - 1] = '\0';
		assert_string_equal(out.data + 1, cases[i].out);
	}
}

/* All strings of up to three bytes, some of each kind: they parse, and say the same again when they are UTF-8. */
static void test_short_strings(void **state)
{
	static const unsigned char third[] = { 0, 'a', '"', 0x80, 0xa8, 0xbf, 0xc3, 0xff };
	char in[4] = { 0 };

	(void)state;
	for (unsigned first = 1; first < 256; first++)
		for (unsigned second = 0; second < 256; second++)
			for (size_t i = 0; i < (second ? sizeof(third) : 1); i++) {
				struct event event = { .reason = NP_R_CUT, .address = in };
				json_t *json, *value;

				in[0] = (char)first;
				in[1] = (char)second;
				in[2] = second ? (char)third[i] : 0;
				json = parsed(&event);
				value = json_string(in); /* NULL when it is not UTF-8 */
				if (value)
					assert_true(json_equal(value, json_object_get(json, "address")));
				json_decref(value);
				json_decref(json);
			}
}

static void test_long_strings_are_cut(void **state)
{
	char in[NP_EVENT_STRING_MAX + 8];

	(void)state;
	memset(in, 'a', sizeof(in));
	in[NP_EVENT_STRING_MAX] = '\0';
	buf_clear(&out);
	json_quote(&out, in, NP_EVENT_STRING_MAX);
	assert_int_equal(out.len, NP_EVENT_STRING_MAX + 2);

	strcpy(in + NP_EVENT_STRING_MAX, "b");
	buf_clear(&out);
	json_quote(&out, in, NP_EVENT_STRING_MAX);
	assert_int_equal(out.len, NP_EVENT_STRING_MAX + 5);
	assert_string_equal(out.data + out.len - 5, "a...\"");

	strcpy(in + NP_EVENT_STRING_MAX - 1, "\xc3\xbc"); /* the bound is inside a character */
	buf_clear(&out);
	json_quote(&out, in, NP_EVENT_STRING_MAX);
	assert_int_equal(out.len, NP_EVENT_STRING_MAX - 1 + 5);
	assert_string_equal(out.data + out.len - 5, "a...\"");
}

static void test_longest_line(void **state)
{
	char in[2 * NP_EVENT_STRING_MAX];
	struct event event = {
		.seq = UINT64_MAX,
		.wall_us = UINT64_MAX,
		.reason = NP_R_HELD_SOCKETS,
		.session = in,
		.sandbox = in,
		.rung = { .mode = NP_PROXIED, .level = NP_LEVELS - 2, .generation = UINT32_MAX, .flags = NP_READ_ONLY },
		.hook = NP_HOOK_UNIX_CONNECT,
		.protocol = UINT32_MAX,
		.address = in,
		.port = UINT32_MAX,
		.pid = UINT32_MAX,
		.uid = UINT32_MAX,
		.comm = in,
		.rule = in,
		.suppressed = UINT32_MAX,
		.dataset = in,
		.text = in,
		.who = in,
		.cut = UINT32_MAX,
		.has_cut = 1,
		.applied_us = UINT64_MAX,
	};

	(void)state;
	memset(in, 1, sizeof(in));
	in[sizeof(in) - 1] = '\0';
	written(&event);
	assert_true(out.len > 8 * 6 * NP_EVENT_STRING_MAX);
	assert_true(out.len <= NP_EVENT_LINE_MAX);
	event.seq = 1; /* jansson takes no more than 63 bits */
	event.applied_us = 1;
	json_decref(parsed(&event));
}

static void test_a_full_buffer_says_so(void **state)
{
	const struct event event = { .reason = NP_R_CUT, .text = "long enough" };
	struct buf small = BUF_INIT(0);

	(void)state;
	for (small.max = 0; small.max < 100; small.max++) {
		event_to_json(&event, &small);
		assert_int_equal(buf_error(&small), -E2BIG);
		buf_clear(&small);
	}
	buf_free(&small);
}

static int release(void **state)
{
	(void)state;
	buf_free(&out);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_member),	      cmocka_unit_test(test_absent_members),
		cmocka_unit_test(test_root_has_a_uid),	      cmocka_unit_test(test_kinds),
		cmocka_unit_test(test_unknown_codes),	      cmocka_unit_test(test_times),
		cmocka_unit_test(test_hostile_strings),	      cmocka_unit_test(test_short_strings),
		cmocka_unit_test(test_long_strings_are_cut),  cmocka_unit_test(test_longest_line),
		cmocka_unit_test(test_a_full_buffer_says_so),
	};

	return cmocka_run_group_tests(tests, NULL, release);
}
