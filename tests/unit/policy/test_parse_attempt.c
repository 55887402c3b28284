/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants the four above first */
#include <cmocka.h>

#include "policy/parse_attempt.c"

#include "addr.h"
#include "vocab/words.h"
#include "vocab/limits.h"

static struct arena *arena;

static int setup(void **state)
{
	(void)state;
	return arena_new(1u << 20, &arena);
}

static int teardown(void **state)
{
	(void)state;
	arena_free(arena);
	return 0;
}

static void assert_addr(const struct facts *facts, const char *expected)
{
	char text[ADDR_TEXT_SIZE];

	assert_true(facts->has_addr);
	addr_format(&facts->addr, text);
	assert_string_equal(text, expected);
}

static void requests(void **state)
{
	char method[] = "POST", url[] = "https://API.Example.:8443/a/../b?q#";
	struct facts facts = { 0 };
	const char *problem;

	(void)state;
	assert_int_equal(attempt_request(arena, method, "https://API.Example.:8443/a/../b?q", &facts, &problem), 0);
	memset(method, 'x', 4);
	assert_string_equal(facts.method, "POST");
	assert_string_equal(facts.name, "api.example");
	assert_string_equal(facts.path, "/a/../b?q"); /* as sent: whoever judges it brings it into its form */
	assert_int_equal(facts.port, 8443);
	assert_int_equal(facts.protocol, PATTERN_TCP);
	assert_false(facts.has_addr);

	facts = (struct facts){ 0 };
	assert_int_equal(attempt_request(arena, "GET", "http://[2001:db8::7]", &facts, &problem), 0);
	assert_addr(&facts, "2001:db8::7");
	assert_null(facts.name);
	assert_int_equal(facts.port, 80);
	assert_string_equal(facts.path, "/");
	/* The URL may go once it was read. */
	facts = (struct facts){ 0 };
	strcpy(url, "https://h.example/keep");
	assert_int_equal(attempt_request(arena, "GET", url, &facts, &problem), 0);
	memset(url, 'x', sizeof(url) - 1);
	assert_string_equal(facts.path, "/keep");
}

static void wrong_requests(void **state)
{
	static const char *const urls[] = { "",
					    "h.example",
					    "wss://h.example/",
					    "https://",
					    "https://user@h.example/",
					    "https://h.example:0/",
					    "https://h.example:99999/",
					    "https://1.2.3/",
					    "https://a..b/" };
	static const char *const methods[] = { "", "G ET", "GET:", "G\x01", "M\xc3\xa9thode" };
	struct facts facts = { 0 };

	(void)state;
	for (size_t i = 0; i < sizeof(urls) / sizeof(urls[0]); i++) {
		const char *problem = NULL;

		assert_int_equal(attempt_request(arena, "GET", urls[i], &facts, &problem), -EINVAL);
		assert_non_null(strstr(problem, "URL"));
	}
	for (size_t i = 0; i < sizeof(methods) / sizeof(methods[0]); i++) {
		const char *problem = NULL;

		assert_int_equal(attempt_request(arena, methods[i], "https://h.example/", &facts, &problem), -EINVAL);
		assert_non_null(strstr(problem, "method"));
	}
}

static void connections(void **state)
{
	static const char *const bad[] = { "",
					   "h.example",
					   "h.example:",
					   ":5",
					   "h.example:0",
					   "h.example:65536",
					   "h.example:5/",
					   "h.example:5/sctp",
					   "h.example:5x",
					   "h.example:+5",
					   "h.example:080",
					   "2001:db8::1:5",
					   "a b:5",
					   "/udp",
					   "h.example/udp",
					   "192.0.2:5" };
	struct facts facts = { 0 };
	const char *problem;

	(void)state;
	assert_int_equal(attempt_connect(arena, "DB.example:5432", &facts, &problem), 0);
	assert_string_equal(facts.name, "db.example");
	assert_int_equal(facts.port, 5432);
	assert_int_equal(facts.protocol, PATTERN_TCP);
	assert_null(facts.method);
	facts = (struct facts){ 0 };
	assert_int_equal(attempt_connect(arena, "192.0.2.7:53/udp", &facts, &problem), 0);
	assert_addr(&facts, "192.0.2.7");
	assert_int_equal(facts.protocol, PATTERN_UDP);
	facts = (struct facts){ 0 };
	assert_int_equal(attempt_connect(arena, "[2001:db8::1]:65535/tcp", &facts, &problem), 0);
	assert_addr(&facts, "2001:db8::1");
	assert_int_equal(facts.port, 65535);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		problem = NULL;
		if (attempt_connect(arena, bad[i], &facts, &problem) != -EINVAL || !problem)
			fail_msg("accepted: %s", bad[i]);
	}
}

static void headers(void **state)
{
	static const char *const bad[] = { "", ",", "a,", ",a", "a,,b", "a b", "a: b", "\xc3\xa4" };
	struct facts facts = { .method = "GET" };
	char many[2 * NP_RULE_WORDS + 3];
	const char *problem;

	(void)state;
	assert_int_equal(attempt_headers(arena, " X-Api-Key ,accept", &facts, &problem), 0);
	assert_string_equal(facts.headers[0], "x-api-key");
	assert_string_equal(facts.headers[1], "accept");
	assert_null(facts.headers[2]);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		if (attempt_headers(arena, bad[i], &facts, &problem) != -EINVAL)
			fail_msg("accepted: %s", bad[i]);
	for (size_t i = 0; i < NP_RULE_WORDS + 1; i++)
		memcpy(many + 2 * i, "a,", 3);
	many[2 * NP_RULE_WORDS - 1] = '\0';
	assert_int_equal(attempt_headers(arena, many, &facts, &problem), 0);
	many[2 * NP_RULE_WORDS - 1] = ',';
	many[2 * NP_RULE_WORDS + 1] = '\0';
	assert_int_equal(attempt_headers(arena, many, &facts, &problem), -EINVAL);
	facts.method = NULL;
	assert_int_equal(attempt_headers(arena, "a", &facts, &problem), -EINVAL);
}

static void bodies(void **state)
{
	static const struct {
		const char *text;
		uint64_t bytes;
	} good[] = {
		{ "0", 0 },
		{ "1234", 1234 },
		{ "7B", 7 },
		{ "500kB", 500000 },
		{ "500k", 500000 },
		{ "20MiB", 20u << 20 },
		{ "20Mi", 20u << 20 },
		{ "3G", 3000000000u },
		{ "18446744073709551614", UINT64_MAX - 1 },
	};
	static const char *const bad[] = { "",
					   "B",
					   "k",
					   "-1",
					   "1 kB",
					   "1KB",
					   "1mb",
					   "1.5M",
					   "1TiB",
					   "1MiBB",
					   "0x10",
					   "18446744073709551616",
					   "18446744073709551615k",
					   "20GiBx" };
	struct facts facts = { .method = "PUT" };
	const char *problem;

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		assert_int_equal(attempt_body(good[i].text, &facts, &problem), 0);
		assert_true(facts.body == good[i].bytes);
	}
	facts.body = 77;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		if (attempt_body(bad[i], &facts, &problem) != -EINVAL)
			fail_msg("accepted: %s", bad[i]);
	assert_int_equal(facts.body, 77);
	facts.method = NULL;
	assert_int_equal(attempt_body("1", &facts, &problem), -EINVAL);
}

static void the_rest(void **state)
{
	struct facts facts = { .method = "GET", .name = "h.example" };
	const char *problem;

	(void)state;
	assert_int_equal(attempt_resolving("10.0.0.7", &facts, &problem), 0);
	assert_addr(&facts, "10.0.0.7");
	assert_int_equal(attempt_resolving("h.example", &facts, &problem), -EINVAL);
	assert_int_equal(attempt_resolving("", &facts, &problem), -EINVAL);
	assert_int_equal(attempt_websocket(&facts, &problem), 0);
	assert_true(facts.websocket);
	facts = (struct facts){ .has_addr = true };
	assert_int_equal(attempt_resolving("10.0.0.7", &facts, &problem), -EINVAL);
	assert_int_equal(attempt_websocket(&facts, &problem), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(requests, setup, teardown),
		cmocka_unit_test_setup_teardown(wrong_requests, setup, teardown),
		cmocka_unit_test_setup_teardown(connections, setup, teardown),
		cmocka_unit_test_setup_teardown(headers, setup, teardown),
		cmocka_unit_test_setup_teardown(bodies, setup, teardown),
		cmocka_unit_test(the_rest),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
