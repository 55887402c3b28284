/* SPDX-License-Identifier: MIT */
#include "policy/read_proxy.c"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "base/cleanup.h"
#include "make.h"
#include "policy/outcome.h"

static const char *way_to(const struct policy *policy, const char *where, uint16_t port)
{
	struct host host;
	const struct upstream_proxy *proxy;

	assert_int_equal(host_parse(where, strlen(where), &host), 0);
	proxy = policy_proxy(policy, &host, port);
	return proxy ? proxy->url : "direct";
}

static void test_one_for_all(void **state)
{
	_policy_ struct policy *policy = policy_of("upstream_proxy: http://Proxy.Corp.example:3128/\n");
	_policy_ struct policy *none = policy_of("upstream_proxy: direct\n"), *without = policy_of("");
	_policy_ struct policy *six = policy_of("upstream_proxy: {url: \"http://[2001:db8::1]:3128\"}\n");

	(void)state;
	assert_string_equal(way_to(policy, "a.example", 443), "http://proxy.corp.example:3128");
	assert_string_equal(way_to(policy, "198.51.100.1", 5432), "http://proxy.corp.example:3128");
	assert_string_equal(way_to(six, "[2001:db8::2]", 80), "http://[2001:db8::1]:3128");
	assert_string_equal(way_to(none, "a.example", 443), "direct");
	assert_string_equal(way_to(without, "a.example", 443), "direct");
	assert_null(policy->proxies[0].credentials);
}

static void test_the_first_that_is_for_a_host(void **state)
{
	_policy_ struct policy *policy =
		policy_of("lists:\n  inner: [\".corp.example\", 10.0.0.0/8]\n"
			  "upstream_proxy:\n"
			  "  - {url: direct, hosts: \"@inner\", except: \"out.corp.example\"}\n"
			  "  - {url: \"http://a:1\", hosts: [\"*.a.example\", b.example:443]}\n"
			  "  - {url: \"http://c:3\", except: [\"**.d.example\", \"2001:db8::/32\"],"
			  " credentials: {file: /etc/c}}\n"
			  "rules:\n  - allow: \"**\"\n");
	static const struct {
		const char *host;
		uint16_t port;
		const char *way;
	} cases[] = {
		{ "corp.example", 443, "direct" },	 { "x.y.corp.example", 22, "direct" },
		{ "xcorp.example", 443, "http://c:3" },	 { "out.corp.example", 443, "http://c:3" },
		{ "10.1.2.3", 443, "direct" },		 { "11.1.2.3", 443, "http://c:3" },
		{ "[64:ff9b::a01:203]", 443, "direct" }, /* carries 10.1.2.3 */
		{ "x.a.example", 443, "http://a:1" },	 { "a.example", 443, "http://c:3" },
		{ "x.y.a.example", 443, "http://c:3" },	 { "b.example", 443, "http://a:1" },
		{ "b.example", 80, "http://c:3" },	 { "d.example", 80, "http://c:3" },
		{ "x.d.example", 80, "direct" },	 { "x.y.d.example", 80, "direct" },
		{ "[2001:db8::7]", 80, "direct" },	 { "[2001:db9::7]", 80, "http://c:3" },
	};
	struct host c = { .name = "c" };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		if (strcmp(way_to(policy, cases[i].host, cases[i].port), cases[i].way) != 0)
			fail_msg("%s:%u goes %s", cases[i].host, cases[i].port,
				 way_to(policy, cases[i].host, cases[i].port));
	assert_string_equal(policy->proxies[2].credentials, "/etc/c");
	assert_int_equal(policy->proxies[2].credentials_at.line, 7);
	assert_true(policy_is_proxy(policy, &c, 3));
	assert_false(policy_is_proxy(policy, &c, 4));
	/* They are no rules. */
	assert_int_equal(policy->n_rules, 1);
	assert_int_equal(policy->rules[0].n_patterns, 1);
}

/* What people are told is what the inspector does. */
static void test_what_a_sandbox_meets(void **state)
{
	_policy_ struct policy *policy = policy_of("upstream_proxy:\n  - {url: direct, hosts: d.example}\n"
						   "  - url: http://p:1\n"
						   "rules:\n  - deny: 10.0.0.0/8\n"
						   "  - allow: [\"**:*\", 198.51.100.0/24, \"198.51.100.0/24:22\"]\n");
	struct facts facts = resolving(to_name("a.example", 443), "10.1.2.3");
	struct verdict verdict = policy_outcome(policy, &facts);

	(void)state;
	assert_int_equal(verdict.action, ACTION_ALLOW); /* the proxy resolves it, and nobody sees where to */
	assert_string_equal(outcome_proxy(policy, &facts, &verdict), "http://p:1");
	facts.name = "d.example";
	verdict = policy_outcome(policy, &facts);
	assert_int_equal(verdict.action, ACTION_DENY);
	assert_null(outcome_proxy(policy, &facts, &verdict));
	facts = to_name("metadata.google.internal", 80);
	assert_int_equal(policy_outcome(policy, &facts).reason, NP_R_ADDRESS_REFUSED);
	facts = to_addr("198.51.100.7", 443);
	verdict = policy_outcome(policy, &facts);
	assert_string_equal(outcome_proxy(policy, &facts, &verdict), "http://p:1");
	facts.port = 22; /* passes the gate, and no inspector sees it */
	verdict = policy_outcome(policy, &facts);
	assert_int_equal(verdict.action, ACTION_ALLOW);
	assert_null(outcome_proxy(policy, &facts, &verdict));
	facts = at(NP_FULL, LEVEL_PUBLIC, to_name("a.example", 443));
	verdict = policy_outcome(policy, &facts);
	assert_null(outcome_proxy(policy, &facts, &verdict));
}

static void test_mistakes(void **state)
{
	static const struct {
		const char *yaml, *place, *words;
	} wrong[] = {
		{ "upstream_proxy: https://p:1", "p.yaml:2:17", "without TLS" },
		{ "upstream_proxy: socks5://p:1", "p.yaml:2:17", "without TLS" },
		{ "upstream_proxy: http://u:sesame@p:1", "p.yaml:2:17", "belong in a file" },
		{ "upstream_proxy: p:1", "p.yaml:2:17", "HOST:PORT" },
		{ "upstream_proxy: http://p", "p.yaml:2:17", "HOST:PORT" },
		{ "upstream_proxy: http://p:0", "p.yaml:2:17", "HOST:PORT" },
		{ "upstream_proxy: http://p:1/x", "p.yaml:2:17", "HOST:PORT" },
		{ "upstream_proxy: http://:1", "p.yaml:2:17", "HOST:PORT" },
		{ "upstream_proxy: []", "p.yaml:2:17", "empty" },
		{ "upstream_proxy: [[x]]", "p.yaml:2:18", "mapping" },
		{ "upstream_proxy: {}", "p.yaml:2:17", "needs \"url\"" },
		{ "upstream_proxy: {url: [a]}", "p.yaml:2:23", "one value" },
		{ "upstream_proxy: {url: direct, host: a}", "p.yaml:2:31", "did you mean \"hosts\"" },
		{ "upstream_proxy: {url: direct, hosts: []}", "p.yaml:2:38", "empty" },
		{ "upstream_proxy: {url: direct, hosts: \"a b\"}", "p.yaml:2:38", "" },
		{ "upstream_proxy: {url: direct, except: \"@none\"}", "p.yaml:2:39", "none" },
		{ "upstream_proxy: {url: direct, credentials: {file: /x}}", "p.yaml:2:31", "no proxy" },
		{ "upstream_proxy: {url: \"http://p:1\", credentials: /x}", "p.yaml:2:50", "mapping" },
		{ "upstream_proxy: {url: \"http://p:1\", credentials: {}}", "p.yaml:2:50", "needs \"file\"" },
		{ "upstream_proxy: {url: \"http://p:1\", credentials: {file: x}}", "p.yaml:2:57", "whole path" },
		{ "upstream_proxy: {url: \"http://p:1\", credentials: {file: [/x]}}", "p.yaml:2:57", "one value" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		_problems_ struct problems problems = { 0 };
		struct policy *policy = NULL;
		char text[256], line[PROBLEM_LINE_SIZE];

		snprintf(text, sizeof(text), "version: 1\n%s\n", wrong[i].yaml);
		if (policy_load_text("p.yaml", text, strlen(text), &policy, &problems) == 0)
			fail_msg("taken: %s", wrong[i].yaml);
		problems_first(&problems, line);
		if (strncmp(line, wrong[i].place, strlen(wrong[i].place)) != 0 || !strstr(line, wrong[i].words) ||
		    strstr(line, "sesame"))
			fail_msg("%s\nof: %s", line, wrong[i].yaml);
	}
}

static void test_bounds(void **state)
{
	_buf_ struct buf text = BUF_INIT(1u << 20);
	_problems_ struct problems problems = { 0 }, others = { 0 };
	struct policy *policy = NULL;

	(void)state;
	buf_puts(&text, "version: 1\nupstream_proxy:\n");
	for (unsigned i = 0; i <= NP_PROXIES_MAX; i++)
		buf_printf(&text, "  - {url: direct, hosts: h%u}\n", i);
	assert_true(policy_load_text("p.yaml", text.data, text.len, &policy, &problems) < 0);
	buf_clear(&text);
	buf_puts(&text, "version: 1\nupstream_proxy:\n  url: direct\n  hosts:\n");
	for (unsigned i = 0; i <= NP_PROXY_PATTERNS; i++)
		buf_printf(&text, "    - h%u\n", i);
	assert_true(policy_load_text("p.yaml", text.data, text.len, &policy, &others) < 0);
}

static void test_warnings(void **state)
{
	_problems_ struct problems problems = { 0 };
	_policy_ struct policy *policy =
		policy_warned("upstream_proxy: [{url: direct}, {url: \"http://p:1\"}]\n", &problems);

	(void)state;
	assert_non_null(policy);
	assert_int_equal(problems.warnings, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_for_all),
		cmocka_unit_test(test_the_first_that_is_for_a_host),
		cmocka_unit_test(test_what_a_sandbox_meets),
		cmocka_unit_test(test_mistakes),
		cmocka_unit_test(test_bounds),
		cmocka_unit_test(test_warnings),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
