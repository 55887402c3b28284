/* SPDX-License-Identifier: MIT */
#include "vocab/words.c"
#include "vocab/run_options.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

#include "addr.h"

/* What a parser of the form bool (text, uint64_t *) makes of a text. */
struct number {
	const char *text;
	bool good;
	uint64_t value;
};

static void check(const struct number *cases, size_t count, bool (*parse)(const char *, uint64_t *))
{
	for (size_t i = 0; i < count; i++) {
		uint64_t value = 4711;
		bool good = parse(cases[i].text, &value);

		if (good != cases[i].good || (good && value != cases[i].value))
			fail_msg("\"%s\": %d, %llu", cases[i].text, good, (unsigned long long)value);
	}
}

static void sizes(void **state)
{
	static const struct number cases[] = {
		{ "0", true, 0 },
		{ "1", true, 1 },
		{ "007", true, 7 },
		{ "1B", true, 1 },
		{ "1k", true, 1000 },
		{ "500kB", true, 500000 },
		{ "2M", true, 2000000 },
		{ "3GB", true, 3000000000 },
		{ "1Ki", true, 1024 },
		{ "10MiB", true, 10485760 },
		{ "4GiB", true, 4294967296 },
		{ "18446744073709551614", true, UINT64_MAX - 1 },
		{ "17179869183Gi", true, 17179869183ull << 30 },
		{ "18446744073709551615", false, 0 }, /* UINT64_MAX stands for "no limit" in many places */
		{ "18446744073709551616", false, 0 },
		{ "99999999999999999999999", false, 0 },
		{ "17179869184Gi", false, 0 }, /* 2^64 */
		{ "18446744073709552k", false, 0 },
		{ "", false, 0 },
		{ "B", false, 0 },
		{ "k", false, 0 },
		{ "-1", false, 0 },
		{ "+1", false, 0 },
		{ " 1", false, 0 },
		{ "1 ", false, 0 },
		{ "1 k", false, 0 },
		{ "1K", false, 0 },
		{ "1m", false, 0 },
		{ "1ki", false, 0 },
		{ "1kiB", false, 0 },
		{ "1T", false, 0 },
		{ "1BB", false, 0 },
		{ "1Bk", false, 0 },
		{ "1.5M", false, 0 },
		{ "0x10", false, 0 },
		{ "1e3", false, 0 },
		{ "\xd9\xa1", false, 0 }, /* a digit of another script */
	};

	(void)state;
	check(cases, ARRAY_SIZE(cases), size_parse);
}

static void durations(void **state)
{
	static const struct number cases[] = {
		{ "1ms", true, 1 },
		{ "5s", true, 5000 },
		{ "90s", true, 90000 },
		{ "2m", true, 120000 },
		{ "1h", true, 3600000 },
		{ "0000001s", true, 1000 },
		{ "999999999h", true, 999999999ull * 3600000 },
		{ "1000000000ms", false, 0 }, /* ten digits */
		{ "0s", false, 0 },
		{ "000ms", false, 0 },
		{ "5", false, 0 },
		{ "s", false, 0 },
		{ "", false, 0 },
		{ "-5s", false, 0 },
		{ "5 s", false, 0 },
		{ "5s ", false, 0 },
		{ "5S", false, 0 },
		{ "5d", false, 0 },
		{ "1h30m", false, 0 },
		{ "1.5s", false, 0 },
		{ "5us", false, 0 },
	};

	(void)state;
	check(cases, ARRAY_SIZE(cases), duration_parse);
}

static bool count_to_1000(const char *text, uint64_t *ret)
{
	return count_parse(text, 1000, ret);
}

static void counts(void **state)
{
	static const struct number cases[] = {
		{ "1", true, 1 },     { "1000", true, 1000 },
		{ "0042", true, 42 }, { "0", false, 0 },
		{ "1001", false, 0 }, { "", false, 0 },
		{ "1k", false, 0 }, /* no units */
		{ "1B", false, 0 },   { "-1", false, 0 },
		{ "1 ", false, 0 },   { "18446744073709551617", false, 0 }, /* 1, where it would wrap around */
	};

	(void)state;
	check(cases, ARRAY_SIZE(cases), count_to_1000);
}

static bool milli_to_8(const char *text, uint64_t *ret)
{
	return milli_parse(text, 8, ret);
}

static void thousandths(void **state)
{
	static const struct number cases[] = {
		{ "1", true, 1000 },	{ "1.5", true, 1500 },	 { "0.5", true, 500 },
		{ "0.05", true, 50 },	{ "0.001", true, 1 },	 { "2.345", true, 2345 },
		{ "8", true, 8000 },	{ "8.000", true, 8000 }, { "8.001", false, 0 },
		{ "9", false, 0 },	{ "0", false, 0 },	 { "0.000", false, 0 },
		{ "0.0001", false, 0 }, { "1.", false, 0 },	 { ".5", false, 0 },
		{ ".", false, 0 },	{ "", false, 0 },	 { "1..5", false, 0 },
		{ "1.5.5", false, 0 },	{ "1,5", false, 0 },	 { "-1", false, 0 },
		{ "1.5 ", false, 0 },	{ "1.-5", false, 0 },	 { "4294967297", false, 0 }, /* ten digits */
	};

	(void)state;
	check(cases, ARRAY_SIZE(cases), milli_to_8);
}

static void limits(void **state)
{
	uint64_t value;

	(void)state;
	assert_null(limit_parse("cpus", "1.5", &value));
	assert_int_equal(value, 1500);
	assert_null(limit_parse("pids", "256", &value));
	assert_int_equal(value, 256);
	assert_null(limit_parse("timeout", "10m", &value));
	assert_int_equal(value, 600000);
	assert_null(limit_parse("memory", "1MiB", &value));
	assert_int_equal(value, 1 << 20);
	assert_null(limit_parse("disk", "2GiB", &value));
	assert_int_equal(value, 2ull << 30);
	assert_null(limit_parse("output_limit", "1", &value));
	assert_int_equal(value, 1);
	assert_null(limit_parse("memory", "9223372036854775807", &value));
	/* each says what it wants */
	assert_non_null(strstr(limit_parse("cpus", "0", &value), "1.5"));
	assert_non_null(strstr(limit_parse("cpus", "0.009", &value), "0.01 is the least"));
	assert_non_null(strstr(limit_parse("pids", "0", &value), "processes"));
	assert_non_null(strstr(limit_parse("timeout", "10", &value), "90s"));
	assert_non_null(strstr(limit_parse("memory", "lots", &value), "512MiB"));
	assert_non_null(strstr(limit_parse("memory", "9223372036854775808", &value), "512MiB")); /* INT64_MAX and one */
	assert_string_equal(limit_parse("memory", "1048575", &value), "less than 1MiB");
	assert_string_equal(limit_parse("disk", "0", &value), "less than 1MiB");
	assert_non_null(limit_parse("output_limit", "0", &value));
}

static void reasons(void **state)
{
	(void)state;
	for (unsigned i = 0; i < NP_REASON_COUNT; i++) {
		const char *token = reason_token(i);

		assert_non_null(reason_sentence(i));
		assert_true(strlen(reason_hint(i)) > 10);
		if (!reason_tokens[i])
			continue;
		assert_int_equal(reason_parse(token), i); /* so no two have one token */
		assert_int_equal(strspn(token, "abcdefghijklmnopqrstuvwxyz0123456789_"), strlen(token));
	}
	assert_string_equal(reason_token(NP_R_MODE_NONE), "mode_none");
	assert_string_equal(reason_token(NP_REASON_COUNT), "unknown");
	assert_string_equal(reason_token(UINT32_MAX), "unknown");
	assert_string_equal(reason_sentence(UINT32_MAX), "a reason that this version does not know");
	assert_non_null(reason_hint(UINT32_MAX));
	assert_int_equal(reason_parse("unknown"), -EINVAL);
	assert_int_equal(reason_parse(""), -EINVAL);
	assert_int_equal(reason_parse("MODE_NONE"), -EINVAL);
	assert_int_equal(reason_parse("mode_none "), -EINVAL);
}

static void modes_and_hooks(void **state)
{
	(void)state;
	assert_int_equal(mode_parse("FULL"), NP_FULL);
	assert_int_equal(mode_parse("proxied"), NP_PROXIED);
	assert_int_equal(mode_parse("None"), NP_NONE);
	assert_int_equal(mode_parse(""), 0);
	assert_int_equal(mode_parse("NON"), 0);
	assert_int_equal(mode_parse("FULL "), 0);
	assert_string_equal(mode_name(NP_PROXIED), "PROXIED");
	assert_string_equal(mode_name(0), "?");
	assert_string_equal(mode_name(NP_NONE + 1), "?");
	assert_string_equal(mode_name(UINT32_MAX), "?");
	assert_string_equal(hook_token(UINT32_MAX), "unknown");
	assert_string_not_equal(hook_token(NP_HOOK_CONNECT), "unknown");
}

static void protocols(void **state)
{
	(void)state;
	assert_string_equal(protocol_name(6), "tcp");
	assert_string_equal(protocol_name(17), "udp");
	assert_string_equal(protocol_name(58), "icmpv6");
	assert_string_equal(protocol_name(262), "mptcp");
	assert_null(protocol_name(0));
	assert_null(protocol_name(254));
	assert_null(protocol_name(UINT32_MAX));
}

static void addresses(void **state)
{
	static const char *const texts[] = {
		"192.0.2.1", "0.0.0.0",	    "255.255.255.255", "::",
		"::1",	     "2001:db8::1", "fe80::1",	       "2001:db8:1111:2222:3333:4444:5555:6666"
	};
	struct np_addr addr;
	char text[ADDR_TEXT_SIZE];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		struct in_addr v4;

		memset(&addr, 0, sizeof(addr));
		if (inet_pton(AF_INET, texts[i], &v4) == 1)
			addr = np_addr_v4(v4.s_addr);
		else
			assert_int_equal(inet_pton(AF_INET6, texts[i], addr.b), 1);
		addr_format(&addr, text);
		assert_string_equal(text, texts[i]);
	}
	/* one that only looks like a mapped one: its prefix is 64:ff9b:: */
	assert_int_equal(inet_pton(AF_INET6, "64:ff9b::c000:201", addr.b), 1);
	addr_format(&addr, text);
	assert_string_equal(text, "64:ff9b::c000:201");
}

static void times(void **state)
{
	static const struct {
		uint64_t us;
		const char *text;
	} cases[] = {
		{ 0, "1970-01-01T00:00:00.000000Z" },
		{ 1, "1970-01-01T00:00:00.000001Z" },
		{ 999999, "1970-01-01T00:00:00.999999Z" },
		{ 1767225600000000, "2026-01-01T00:00:00.000000Z" },
		{ 1709164799500000, "2024-02-28T23:59:59.500000Z" },
		{ 1709164800000000, "2024-02-29T00:00:00.000000Z" }, /* a leap year */
		{ 4294967296000000, "2106-02-07T06:28:16.000000Z" }, /* past 32 bits */
		{ 253402300799999999, "9999-12-31T23:59:59.999999Z" },
		{ 253402300800000000, "9999-12-31T23:59:59.999999Z" },
		{ UINT64_MAX, "9999-12-31T23:59:59.999999Z" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		char text[TIME_TEXT_SIZE];

		time_format(cases[i].us, text);
		assert_string_equal(text, cases[i].text);
		assert_int_equal(strlen(text) + 1, TIME_TEXT_SIZE);
	}
}

static void times_are_read(void **state)
{
	static const char *const wrong[] = { "",
					     "2026",
					     "2026-01",
					     "2026-01-31T",
					     "2026-01-31Z",
					     "2026-01-31T10:00",
					     "2026-13-01",
					     "2026-01-31T10:00:00",
					     "2026-01-31T10:00:00.5Z",
					     "2026-01-31 10:00:00Z",
					     "2026-01-31x",
					     "2026-02-30",
					     "2025-02-29T10:00:00Z",
					     "2026-04-31T10:00:00.000000Z",
					     "2026-01-00",
					     "2026-01-31T10:00:60Z" };
	uint64_t us = 7;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++)
		assert_false(time_parse(wrong[i], &us));
	assert_int_equal(us, 7);
	assert_true(time_parse("2024-02-28T23:59:59.500000Z", &us) && us == 1709164799500000);
	assert_true(time_parse("2024-02-29T00:00:00Z", &us) && us == 1709164800000000);
	assert_true(time_parse("2024-02-29", &us) && us == 1709164800000000); /* the day's beginning */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sizes),	   cmocka_unit_test(durations),	     cmocka_unit_test(counts),
		cmocka_unit_test(thousandths),	   cmocka_unit_test(limits),	     cmocka_unit_test(reasons),
		cmocka_unit_test(modes_and_hooks), cmocka_unit_test(protocols),	     cmocka_unit_test(addresses),
		cmocka_unit_test(times),	   cmocka_unit_test(times_are_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
