/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants the four above first */
#include <cmocka.h>

#include "policy/decide.c"

#include "make.h"
#include "reference.h"

#define NO_RULE (-1)

/* And the slow way agrees, where it is to. */
static void check_misfits(const struct policy *policy, const struct facts *facts, const struct verdict *verdict)
{
	const struct rule *rules = facts->rung.mode == NP_FULL ? policy->full : policy->rules;
	size_t n = facts->rung.mode == NP_FULL ? policy->n_full : policy->n_rules, i = 0;

	uint8_t trace[64] = { 0 };

	if (verdict->reason == NP_R_MODE_NONE)
		return;
	if (facts->has_addr && np_addr_is_metadata(&facts->addr))
		return;
	assert_true(n <= sizeof(trace));
	policy_trace(policy, facts, trace);
	assert_true(reference_agrees(policy, facts, verdict, trace));
	if (verdict->reason == NP_R_BAD_PATH)
		return;
	while (i < n && reference_misfit(policy, &rules[i], facts) != MISFIT_NONE)
		i++;
	assert_ptr_equal(verdict->rule, i < n ? &rules[i] : NULL);
}

static void assert_verdict(const struct policy *policy, struct facts facts, enum action action, enum np_reason reason,
			   int rule, int line)
{
	struct verdict v = policy_decide(policy, &facts);
	const struct rule *rules = facts.rung.mode == NP_FULL ? policy->full : policy->rules;

	_assert_int_equal(v.action, action, __FILE__, line);
	_assert_int_equal(v.reason, reason, __FILE__, line);
	_assert_int_equal(v.rule ? v.rule - rules : NO_RULE, rule, __FILE__, line);
	_assert_int_equal(NP_REASON_ALLOWS(v.reason), v.action == ACTION_ALLOW, __FILE__, line);
	check_misfits(policy, &facts, &v);
}
#define ASSERT_VERDICT(of, action, reason, rule) \
	assert_verdict(policy, of, ACTION_##action, NP_R_##reason, rule, __LINE__)
#define ALLOWED(of, rule) ASSERT_VERDICT(of, ALLOW, RULE_ALLOWS, rule)
#define DENIED(of, rule)  ASSERT_VERDICT(of, DENY, RULE_DENIES, rule)
#define NOT_IN_POLICY(of) ASSERT_VERDICT(of, DENY, NOT_IN_POLICY, NO_RULE)

static void test_modes(void **state)
{
	_policy_ struct policy *policy = policy_of("rules:\n- allow: example.com\n");

	(void)state;
	ALLOWED(to_name("example.com", 443), 0);
	ASSERT_VERDICT(at(NP_NONE, LEVEL_PUBLIC, to_name("example.com", 443)), DENY, MODE_NONE, NO_RULE);
	ASSERT_VERDICT(at(NP_FULL, LEVEL_PUBLIC, to_name("example.com", 443)), ALLOW, OPEN_MODE, NO_RULE);
	ASSERT_VERDICT(at(NP_FULL, LEVEL_PUBLIC, to_addr("192.0.2.1", 9)), ALLOW, OPEN_MODE, NO_RULE);
	/* A mode that there is not */
	ASSERT_VERDICT(at((enum np_mode)0, LEVEL_PUBLIC, to_name("example.com", 443)), DENY, MODE_NONE, NO_RULE);
	ASSERT_VERDICT(at((enum np_mode)7, LEVEL_PUBLIC, to_name("example.com", 443)), DENY, MODE_NONE, NO_RULE);
}

static void test_first_match_decides(void **state)
{
	_policy_ struct policy *policy = policy_of("rules:\n"
						   "- deny: bad.example.com\n"
						   "- allow: '**.example.com'\n"
						   "- deny: '*.example.com'\n"
						   "- deny: '**'\n"
						   "- allow: never.org\n");

	(void)state;
	DENIED(to_name("bad.example.com", 443), 0);
	ALLOWED(to_name("good.example.com", 443), 1);
	DENIED(to_name("good.example.com", 8443), 2);
	DENIED(to_name("a.b.example.com", 8443), 3);
	DENIED(to_name("example.com", 443), 3);
	DENIED(to_name("never.org", 443), 3);
	NOT_IN_POLICY(to_addr("192.0.2.1", 443));
}

static void test_ports_and_protocols(void **state)
{
	_policy_ struct policy *policy =
		policy_of("inspect_ports: [80, 443, 8080]\n"
			  "rules:\n"
			  "- allow: web.example\n"
			  "- allow: db.example:5432\n"
			  "- allow: ['range.example:100-200', 'dns.example:853/udp', 'any.example:*']\n"
			  "- deny: no.example\n"
			  "- deny: 'udp.example:1-65535/udp'\n"
			  "- deny: ns.example\n");

	(void)state;
	ALLOWED(to_name("web.example", 80), 0);
	ALLOWED(to_name("web.example", 8080), 0);
	NOT_IN_POLICY(to_name("web.example", 81));
	NOT_IN_POLICY(over_udp(to_name("web.example", 443)));
	ALLOWED(to_name("db.example", 5432), 1);
	NOT_IN_POLICY(over_udp(to_name("db.example", 5432)));
	NOT_IN_POLICY(to_name("db.example", 443));
	NOT_IN_POLICY(to_name("range.example", 99));
	ALLOWED(to_name("range.example", 100), 2);
	ALLOWED(to_name("range.example", 200), 2);
	NOT_IN_POLICY(to_name("range.example", 201));
	ALLOWED(over_udp(to_name("dns.example", 853)), 2);
	NOT_IN_POLICY(to_name("dns.example", 853));
	ALLOWED(to_name("any.example", 1), 2);
	ALLOWED(to_name("any.example", 65535), 2);
	/* Port 53 is the DNS gate's: no rule opens it, but one may close it. */
	NOT_IN_POLICY(to_name("any.example", 53));
	DENIED(to_name("ns.example", 53), 5);
	DENIED(to_name("no.example", 1), 3);
	DENIED(over_udp(to_name("no.example", 65535)), 3);
	DENIED(over_udp(to_name("udp.example", 443)), 4);
	NOT_IN_POLICY(to_name("udp.example", 443));
}

static void test_levels(void **state)
{
	_policy_ struct policy *policy = policy_of("rules:\n"
						   "- allow: example.com\n"
						   "  for: [PUBLIC, CONFIDENTIAL]\n"
						   "- deny: example.com\n");

	(void)state;
	ALLOWED(at(NP_PROXIED, LEVEL_PUBLIC, to_name("example.com", 443)), 0);
	DENIED(at(NP_PROXIED, LEVEL_INTERNAL, to_name("example.com", 443)), 1);
	ALLOWED(at(NP_PROXIED, LEVEL_CONFIDENTIAL, to_name("example.com", 443)), 0);
	DENIED(at(NP_PROXIED, LEVEL_SECRET, to_name("example.com", 443)), 1);
}

static void test_addresses(void **state)
{
	_policy_ struct policy *policy = policy_of("rules:\n"
						   "- allow: 10.1.0.0/16:22\n"
						   "- deny: 10.0.0.0/8\n"
						   "- allow: ['0.0.0.0/0:22', '[2001:db8::/32]:22', '10.2.3.4:22']\n"
						   "- allow: '**'\n");

	(void)state;
	ALLOWED(to_addr("10.1.2.3", 22), 0);
	DENIED(to_addr("10.1.2.3", 23), 1);
	DENIED(to_addr("10.2.3.4", 22), 1);
	ALLOWED(to_addr("192.0.2.1", 22), 2);
	ALLOWED(to_addr("2001:db8::1", 22), 2);
	NOT_IN_POLICY(to_addr("2001:db9::1", 22)); /* 0.0.0.0/0 is IPv4 */
	NOT_IN_POLICY(to_addr("192.0.2.1", 443));  /* a name pattern never matches an address */
	/* IPv4 inside of IPv6 is that IPv4 address. */
	DENIED(to_addr("::ffff:10.2.3.4", 22), 1);
	DENIED(to_addr("64:ff9b::10.2.3.4", 22), 1);
	DENIED(to_addr("2002:0a02:0304::1", 22), 1);
}

static void test_names_that_resolve(void **state)
{
	_policy_ struct policy *policy = policy_of("rules:\n"
						   "- allow: trusted.example\n"
						   "- deny: 10.0.0.0/8\n"
						   "- allow: 192.0.2.0/24\n"
						   "- allow: '**.example'\n"
						   "- deny: 198.51.100.0/24\n");

	(void)state;
	ALLOWED(to_name("a.example", 443), 3);
	ALLOWED(resolving(to_name("a.example", 443), "203.0.113.1"), 3);
	DENIED(resolving(to_name("a.example", 443), "10.9.9.9"), 1);
	ALLOWED(resolving(to_name("trusted.example", 443), "10.9.9.9"), 0); /* its rule comes first */
	ALLOWED(resolving(to_name("a.example", 443), "198.51.100.1"), 3);
	DENIED(resolving(to_name("a.org", 443), "198.51.100.1"), 4);
	/* An allow by address is not for names. */
	NOT_IN_POLICY(resolving(to_name("a.org", 443), "192.0.2.1"));
	ALLOWED(to_addr("192.0.2.1", 443), 2);
}

static void test_requests(void **state)
{
	static const char *const key[] = { "accept", "x-api-key", NULL }, *const both[] = { "x-b", "x-api-key", NULL };
	_policy_ struct policy *policy = policy_of("rules:\n"
						   "- allow: api.example\n"
						   "  methods: [GET, HEAD]\n"
						   "  paths: ['/repos/**', /health]\n"
						   "- deny: api.example\n"
						   "  methods: DELETE\n"
						   "- allow: api.example\n"
						   "  headers: [x-api-key, X-B]\n"
						   "- ask: api.example\n"
						   "  paths: /ask\n"
						   "- deny: api.example\n"
						   "  headers: x-api-key\n");

	(void)state;
	ALLOWED(request("GET", "api.example", "/repos/a/b?page=2"), 0);
	ALLOWED(request("HEAD", "api.example", "/%68ealth"), 0);
	ASSERT_VERDICT(request("HEAD", "api.example", "/x/../health"), DENY, BAD_PATH, 0);
	NOT_IN_POLICY(request("get", "api.example", "/repos/a"));
	NOT_IN_POLICY(request("POST", "api.example", "/repos/a"));
	NOT_IN_POLICY(request("GET", "api.example", "/repos"));
	DENIED(request("DELETE", "api.example", "/repos/a"), 1);
	DENIED(with_headers(request("POST", "api.example", "/"), key), 4);
	ALLOWED(with_headers(request("POST", "api.example", "/"), both), 2);
	ASSERT_VERDICT(request("PUT", "api.example", "/ask"), ASK, NEEDS_APPROVAL, 3);
}

static void test_paths_that_cannot_be_read(void **state)
{
	static const char *const key[] = { "x", NULL };
	_policy_ struct policy *policy = policy_of("rules:\n"
						   "- allow: api.example\n"
						   "  methods: GET\n"
						   "  headers: x\n"
						   "  paths: /a/**\n"
						   "- allow: api.example\n"
						   "- deny: deny.example\n"
						   "  paths: /secret/**\n"
						   "- allow: deny.example\n");

	(void)state;
	ASSERT_VERDICT(with_headers(request("GET", "api.example", "/a/%2e%2e%2fb"), key), DENY, BAD_PATH, 0);
	ASSERT_VERDICT(with_headers(request("GET", "api.example", "*"), key), DENY, BAD_PATH, 0);
	ASSERT_VERDICT(with_headers(request("GET", "api.example", NULL), key), DENY, BAD_PATH, 0);
	/* A rule that is for other requests does not meet the path. */
	ALLOWED(with_headers(request("POST", "api.example", "//"), key), 1);
	ALLOWED(request("GET", "api.example", "//"), 1);
	ASSERT_VERDICT(request("GET", "deny.example", "//"), DENY, BAD_PATH, 2);
	ALLOWED(request("GET", "deny.example", "/public"), 3);
	DENIED(request("GET", "deny.example", "/%73ecret/x"), 2);
	ASSERT_VERDICT(request("GET", "deny.example", "/public/%2e./secret/x"), DENY, BAD_PATH, 2);
}

static void test_bodies_and_websockets(void **state)
{
	_policy_ struct policy *policy = policy_of("rules:\n"
						   "- allow: [api.example, 192.0.2.1]\n"
						   "  max_body: 1000\n"
						   "  timeouts: {idle: 2s, connect: 3s}\n"
						   "- allow: ws.example\n"
						   "  websocket: true\n"
						   "- allow: pinned.example\n"
						   "  inspect: false\n"
						   "- ask: ask.example\n"
						   "  max_body: 10\n"
						   "- allow: plain.example:9000\n");
	struct facts facts = request("POST", "api.example", "/");
	struct verdict verdict;

	(void)state;
	facts.body = 1000;
	ALLOWED(facts, 0);
	verdict = policy_decide(policy, &facts);
	assert_true(verdict.inspect);
	assert_false(verdict.websocket);
	assert_int_equal(verdict.max_body, 1000);
	assert_int_equal(verdict.timeouts.idle, 2000);
	assert_int_equal(verdict.timeouts.first_byte, 0);
	assert_int_equal(verdict.timeouts.connect, 3000);
	facts.body = 1001;
	ASSERT_VERDICT(facts, DENY, BODY_TOO_LARGE, 0);
	facts.name = "ask.example";
	ASSERT_VERDICT(facts, DENY, BODY_TOO_LARGE, 3);
	facts.body = 5;
	ASSERT_VERDICT(facts, ASK, NEEDS_APPROVAL, 3);
	facts = request("GET", "api.example", "/");
	facts.websocket = true;
	ASSERT_VERDICT(facts, DENY, NO_UPGRADE, 0);
	facts.name = "ws.example";
	ALLOWED(facts, 1);
	verdict = policy_decide(policy, &facts);
	assert_true(verdict.websocket);
	assert_true(verdict.max_body == UINT64_MAX);
	/* What is not inspected is not bounded. */
	facts.name = "pinned.example";
	ALLOWED(facts, 2);
	verdict = policy_decide(policy, &facts);
	assert_false(verdict.inspect);
	facts = to_name("plain.example", 9000);
	ALLOWED(facts, 4);
	verdict = policy_decide(policy, &facts);
	assert_false(verdict.inspect);
	assert_true(verdict.websocket);
}

static void test_connections_without_a_request(void **state)
{
	_policy_ struct policy *policy = policy_of("deciders: {guard: {socket: /run/guard}}\n"
						   "rules:\n"
						   "- allow: a.example\n"
						   "  methods: GET\n"
						   "- deny: b.example\n"
						   "  methods: POST\n"
						   "- allow: b.example\n"
						   "  inspect: false\n"
						   "- ask: c.example\n"
						   "  methods: POST\n"
						   "- decide: c.example\n"
						   "  by: guard\n"
						   "- deny: d.example\n"
						   "  paths: /x\n"
						   "- allow: e.example\n"
						   "  inspect: false\n");
	struct verdict verdict;
	struct facts facts;

	(void)state;
	ALLOWED(to_name("a.example", 443), 0);
	NOT_IN_POLICY(request("POST", "a.example", "/"));
	NOT_IN_POLICY(to_name("d.example", 443));
	/* The deny needs the requests, whatever the allow behind it says. */
	facts = to_name("b.example", 443);
	ALLOWED(facts, 2);
	verdict = policy_decide(policy, &facts);
	assert_true(verdict.inspect);
	DENIED(request("POST", "b.example", "/"), 1);
	facts = to_name("e.example", 443);
	verdict = policy_decide(policy, &facts);
	assert_false(verdict.inspect);
	/* Nobody is asked before it is known about what. */
	ALLOWED(to_name("c.example", 443), 3);
	ASSERT_VERDICT(request("POST", "c.example", "/"), ASK, NEEDS_APPROVAL, 3);
	ASSERT_VERDICT(request("GET", "c.example", "/"), DECIDE, NEEDS_DECIDER, 4);
}

static void test_defaults(void **state)
{
	_policy_ struct policy *policy = policy_of("default: ask\nrules:\n- deny: a.example\n");

	(void)state;
	DENIED(to_name("a.example", 443), 0);
	ASSERT_VERDICT(to_name("b.example", 443), ASK, NEEDS_APPROVAL, NO_RULE);
	ASSERT_VERDICT(to_name("b.example", 5432), ASK, NEEDS_APPROVAL, NO_RULE);
	ASSERT_VERDICT(to_addr("192.0.2.1", 80), ASK, NEEDS_APPROVAL, NO_RULE);
	/* The kernel decides these, and nobody could hold them. */
	ASSERT_VERDICT(to_addr("192.0.2.1", 9), DENY, NOT_IN_POLICY, NO_RULE);
	ASSERT_VERDICT(to_name("b.example", 53), DENY, NOT_IN_POLICY, NO_RULE);
	ASSERT_VERDICT(to_name("printer.local", 80), DENY, NOT_IN_POLICY, NO_RULE);
	ASSERT_VERDICT(to_addr("169.254.169.254", 80), DENY, METADATA, NO_RULE);
	/* Neither a name nor an address: nothing to judge by. */
	ASSERT_VERDICT(to_name(NULL, 443), ASK, NEEDS_APPROVAL, NO_RULE);
}

static void test_metadata(void **state)
{
	_policy_ struct policy *policy = policy_of("rules:\n"
						   "- allow: ['0.0.0.0/0:80', '[::/0]:80', '169.254.0.0/16:81']\n"
						   "- allow: '169.254.169.254:80'\n"
						   "- deny: 169.254.169.0/24:82\n"
						   "- ask: ['0.0.0.0/0:82', '169.254.169.253:82', '169.254.1.1:82']\n"
						   "- allow: '**:80-90'\n");

	(void)state;
	ALLOWED(to_addr("169.254.169.254", 80), 1);
	ASSERT_VERDICT(to_addr("169.254.169.253", 80), DENY, METADATA, NO_RULE);
	ASSERT_VERDICT(to_addr("64:ff9b::169.254.169.253", 80), DENY, METADATA, NO_RULE);
	ASSERT_VERDICT(to_addr("fd00:ec2::254", 80), DENY, METADATA, NO_RULE);
	ASSERT_VERDICT(to_addr("100.100.100.200", 80), DENY, METADATA, NO_RULE);
	ALLOWED(to_addr("100.100.100.201", 80), 0);
	ALLOWED(to_addr("169.254.169.253", 81), 0);
	DENIED(to_addr("169.254.169.253", 82), 2);
	ASSERT_VERDICT(to_addr("169.254.1.1", 82), ASK, NEEDS_APPROVAL, 3);
	ASSERT_VERDICT(to_addr("169.254.1.2", 82), DENY, METADATA, NO_RULE);
	/* A name that leads there: its address must be open as well. */
	ALLOWED(resolving(to_name("a.example", 80), "192.0.2.1"), 4);
	ASSERT_VERDICT(resolving(to_name("a.example", 80), "169.254.169.253"), DENY, METADATA, NO_RULE);
	ALLOWED(resolving(to_name("a.example", 80), "169.254.169.254"), 4);
	DENIED(resolving(to_name("a.example", 82), "169.254.169.1"), 2);
	ASSERT_VERDICT(resolving(to_name("a.example", 82), "169.254.1.1"), ASK, NEEDS_APPROVAL, 3);
}

/* Who allowed a name was not asked about the metadata address that it leads to: the rule that asks is that address's. */
static void test_metadata_of_a_name_that_is_asked_about(void **state)
{
	_policy_ struct policy *policy = policy_of("rules:\n"
						   "- ask: '169.254.1.1:80'\n"
						   "- deny: bad.example\n"
						   "- ask: '**.example:80'\n");

	(void)state;
	ASSERT_VERDICT(to_name("a.example", 80), ASK, NEEDS_APPROVAL, 2);
	ASSERT_VERDICT(resolving(to_name("a.example", 80), "192.0.2.1"), ASK, NEEDS_APPROVAL, 2);
	ASSERT_VERDICT(resolving(to_name("a.example", 80), "169.254.1.1"), ASK, NEEDS_APPROVAL, 0);
	DENIED(resolving(to_name("bad.example", 80), "169.254.1.1"), 1);
}

static void test_metadata_behind_a_deny(void **state)
{
	_policy_ struct policy *policy = policy_of("rules:\n"
						   "- deny: 0.0.0.0/0:80\n"
						   "- allow: 169.254.169.254\n");

	(void)state;
	DENIED(to_addr("169.254.169.254", 80), 0);
	ALLOWED(to_addr("169.254.169.254", 443), 1);
	/* By address it is open; by name nothing is. */
	NOT_IN_POLICY(resolving(to_name("a.example", 443), "169.254.169.254"));
}

static void test_full(void **state)
{
	_policy_ struct policy *policy = policy_of("rules:\n- deny: '**'\n"
						   "full:\n"
						   "- allow: 10.1.0.0/16:22\n"
						   "- deny: [10.0.0.0/8, '2001:db8::/32']\n"
						   "- deny: 192.0.2.0/24:25/tcp\n"
						   "- allow: 0.0.0.0/0\n"
						   "- allow: 169.254.169.254:80\n");

	(void)state;
#define FULL(facts) at(NP_FULL, LEVEL_PUBLIC, facts)
	ALLOWED(FULL(to_addr("10.1.2.3", 22)), 0);
	DENIED(FULL(to_addr("10.1.2.3", 443)), 1);
	DENIED(FULL(over_udp(to_addr("10.2.2.3", 53))), 1);
	DENIED(FULL(to_addr("2001:db8::1", 22)), 1);
	DENIED(FULL(to_addr("192.0.2.1", 25)), 2);
	ALLOWED(FULL(over_udp(to_addr("192.0.2.1", 25))), 3);
	ALLOWED(FULL(to_addr("192.0.2.1", 53)), 3);
	ASSERT_VERDICT(FULL(to_addr("2001:db9::1", 22)), ALLOW, OPEN_MODE, NO_RULE);
	ALLOWED(FULL(to_addr("169.254.169.254", 80)), 4);
	ASSERT_VERDICT(FULL(to_addr("169.254.169.254", 81)), DENY, METADATA, NO_RULE);
	ASSERT_VERDICT(FULL(to_addr("fe80::1", 80)), DENY, METADATA, NO_RULE);
	/* A name is judged by where it leads, if that is known. */
	ASSERT_VERDICT(FULL(to_name("a.example", 443)), ALLOW, OPEN_MODE, NO_RULE);
	DENIED(FULL(resolving(to_name("a.example", 443), "10.2.2.2")), 1);
	ASSERT_VERDICT(FULL(resolving(to_name("a.example", 443), "169.254.0.1")), DENY, METADATA, NO_RULE);
	DENIED(at(NP_FULL, LEVEL_SECRET, to_addr("10.2.2.2", 443)), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_modes),
		cmocka_unit_test(test_first_match_decides),
		cmocka_unit_test(test_ports_and_protocols),
		cmocka_unit_test(test_levels),
		cmocka_unit_test(test_addresses),
		cmocka_unit_test(test_names_that_resolve),
		cmocka_unit_test(test_requests),
		cmocka_unit_test(test_paths_that_cannot_be_read),
		cmocka_unit_test(test_bodies_and_websockets),
		cmocka_unit_test(test_connections_without_a_request),
		cmocka_unit_test(test_defaults),
		cmocka_unit_test(test_metadata),
		cmocka_unit_test(test_metadata_of_a_name_that_is_asked_about),
		cmocka_unit_test(test_metadata_behind_a_deny),
		cmocka_unit_test(test_full),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
