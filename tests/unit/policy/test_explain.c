/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants the four above first */
#include <cmocka.h>

#include <arpa/nameser.h>

#include "policy/explain.c"
#include "policy/outcome.h"

#include "make.h"
#include "reference.h"

/* What the trace of a decision says of a rule that was passed over, or decided; and the slow way agrees. */
static enum misfit rule_misfit(const struct policy *policy, const struct rule *rule, const struct facts *facts)
{
	uint8_t trace[16] = { 0 };
	enum misfit misfit;

	assert_true(policy->n_rules <= sizeof(trace));
	policy_trace(policy, facts, trace);
	misfit = trace_misfit(trace, rule, facts);
	assert_int_equal(misfit, reference_misfit(policy, rule, facts));
	return misfit;
}

static void test_misfits(void **state)
{
	_policy_ struct policy *policy = policy_of("rules:\n"
						   "- allow: a.example\n"
						   "  for: CONFIDENTIAL\n"
						   "  methods: GET\n"
						   "  paths: /x\n"
						   "  headers: h\n"
						   "- deny: a.example\n"
						   "  methods: PUT\n");
	_policy_ struct policy *denies = policy_of("rules:\n"
						   "- deny: a.example\n"
						   "  methods: PUT\n"
						   "- allow: a.example\n");
	static const char *const headers[] = { "h", NULL };
	const struct {
		struct facts facts;
		enum misfit misfit;
	} rows[] = {
		{ with_headers(request("GET", "a.example", "/x"), headers), MISFIT_NONE },
		{ at(NP_PROXIED, LEVEL_SECRET, request("GET", "b.example", "/x")), MISFIT_LEVEL },
		{ request("GET", "b.example", "/x"), MISFIT_DESTINATION },
		{ to_name("a.example", 22), MISFIT_PORT },
		{ over_udp(to_name("a.example", 443)), MISFIT_PORT },
		{ request("POST", "a.example", "/y"), MISFIT_METHOD },
		{ request("GET", "a.example", "/y"), MISFIT_PATH },
		{ request("GET", "a.example", "//"), MISFIT_PATH },
		{ request("GET", "a.example", "/x"), MISFIT_HEADER },
		{ to_name("a.example", 443), MISFIT_NONE },
	};
	struct facts connection = to_name("a.example", 443);

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		assert_int_equal(rule_misfit(policy, &policy->rules[0], &rows[i].facts), rows[i].misfit);
	assert_int_equal(rule_misfit(denies, &denies->rules[0], &connection), MISFIT_REQUEST);
	assert_string_equal(misfit_sentence(MISFIT_NONE), "");
	for (int i = MISFIT_LEVEL; i <= MISFIT_QUERY; i++)
		assert_true(strlen(misfit_sentence((enum misfit)i)) > 10);
}

static void assert_text(const struct policy *policy, struct facts facts, const char *expected)
{
	struct verdict verdict = policy_outcome(policy, &facts);
	char text[VERDICT_TEXT_SIZE];

	verdict_text(policy, &facts, &verdict, text);
	assert_string_equal(text, expected);
}

static void test_texts(void **state)
{
	_policy_ struct policy *policy = policy_of("deciders: {guard: {socket: /run/guard}}\n"
						   "rules:\n"
						   "- allow: a.example\n"
						   "- deny: b.example\n"
						   "- ask: c.example\n"
						   "- decide: d.example\n"
						   "  by: guard\n"
						   "- allow: e.example\n"
						   "  paths: /x\n"
						   "- allow: [u.example:123/udp, 192.0.2.7:123/udp]\n");
	_policy_ struct policy *asks = policy_of("default: ask\n");
	_policy_ struct policy *denies = policy_of("default: deny\n");

	(void)state;
	assert_text(policy, to_name("a.example", 443), "allowed by p.yaml:4 (allow: a.example)");
	assert_text(policy, to_name("b.example", 443), "denied by p.yaml:5 (deny: b.example)");
	assert_text(policy, to_name("c.example", 443), "a person is asked, by p.yaml:6 (ask: c.example)");
	assert_text(policy, to_name("d.example", 443),
		    "the decider \"guard\" is asked, by p.yaml:7 (decide: d.example)");
	assert_text(policy, to_name("e.example", 443),
		    "allowed by p.yaml:9 (allow: e.example); each request is judged by itself");
	assert_text(
		policy, request("GET", "e.example", "//"),
		"denied by p.yaml:9 (allow: e.example): the path can be read in two ways, so no rule with paths can be "
		"trusted to judge it");
	assert_text(policy, over_udp(to_name("u.example", 123)),
		    "denied: UDP is allowed by address only, and the rule is about a name, by p.yaml:11 (allow: "
		    "u.example:123/udp (and 1 more))");
	assert_text(policy, over_udp(to_addr("192.0.2.7", 123)),
		    "allowed by p.yaml:11 (allow: u.example:123/udp (and 1 more))");
	assert_text(policy, to_name("f.example", 443), "denied: no rule allows it (default)");
	assert_text(denies, to_name("f.example", 443), "denied: no rule allows it (default: p.yaml:2)");
	assert_text(asks, to_name("f.example", 443), "a person is asked: no rule decides it (default: p.yaml:2)");
	assert_text(policy, to_addr("169.254.169.254", 80),
		    "denied: cloud metadata and link-local addresses are refused in every mode");
	assert_text(policy, at(NP_FULL, LEVEL_PUBLIC, to_name("a.example", 80)), "allowed: the sandbox's mode is FULL");
	assert_text(policy, at(NP_NONE, LEVEL_SECRET, to_name("a.example", 80)),
		    "denied: the sandbox's mode is NONE: its network is closed");
}

/* A head that is too long for the sentence is cut between two characters. */
static void test_long_texts(void **state)
{
	struct policy policy = { .files = (const char *[]){ "p.yaml" } };
	struct rule rule = { .text = "" };
	struct verdict verdict = { .action = ACTION_DENY, .reason = NP_R_BODY_TOO_LARGE, .rule = &rule };
	struct facts facts = to_name("a", 1);
	char head[4001], text[VERDICT_TEXT_SIZE];

	(void)state;
	for (int start = 0; start < 2; start++) {
		for (size_t i = 0; i < sizeof(head) - 1; i++)
			head[i] = (i + (size_t)start) % 2 ? '\xbc' : '\xc3';
		head[0] = start ? 'x' : '\xc3';
		head[sizeof(head) - 1] = '\0';
		rule.text = head;
		rule.at.line = 3;
		verdict_text(&policy, &facts, &verdict, text);
		assert_non_null(
			strstr(text, "\xc3\xbc...): the rule that allows this request bounds its body (max_body)"));
	}
}

static struct facts looks_up(const char *name, uint16_t type)
{
	struct facts facts = to_name(name, 0);

	facts.query = type;
	return facts;
}

static void test_lookups(void **state)
{
	_policy_ struct policy *policy = policy_of("rules:\n"
						   "- allow: '**.example'\n"
						   "- deny: a.example:443\n"
						   "- deny: a.example\n"
						   "  methods: PUT\n"
						   "- deny: b.example\n"
						   "- allow: [a.example, b.example]\n"
						   "  dns: MX\n"
						   "  for: CONFIDENTIAL\n"
						   "default: ask\n");
	static const enum misfit expected[] = { MISFIT_QUERY, MISFIT_PORT, MISFIT_REQUEST, MISFIT_DESTINATION,
						MISFIT_NONE };
	struct facts facts = looks_up("a.example", ns_t_mx);

	(void)state;
	for (size_t i = 0; i < 5; i++)
		assert_int_equal(rule_misfit(policy, &policy->rules[i], &facts), expected[i]);
	assert_text(policy, facts, "allowed by p.yaml:8 (allow: a.example (and 1 more))");
	assert_text(policy, looks_up("b.example", ns_t_mx), "denied by p.yaml:7 (deny: b.example)");
	assert_text(policy, looks_up("a.example", ns_t_txt), "denied: no rule allows it (default: p.yaml:11)");
	assert_text(policy, looks_up("x.a.example", ns_t_mx), "denied: no rule allows it (default: p.yaml:11)");
	assert_text(policy, looks_up("192.0.2.7", ns_t_mx), "denied: no rule allows it (default: p.yaml:11)");
	assert_int_equal(policy_decide(policy, &facts).action, ACTION_ALLOW);
	facts.rung.level = LEVEL_SECRET;
	assert_int_equal(policy_decide(policy, &facts).action, ACTION_DENY);
	facts.rung.mode = NP_NONE;
	assert_int_equal(policy_decide(policy, &facts).reason, NP_R_MODE_NONE);
	facts.rung.mode = NP_FULL;
	assert_int_equal(policy_decide(policy, &facts).reason, NP_R_OPEN_MODE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_misfits),
		cmocka_unit_test(test_texts),
		cmocka_unit_test(test_long_texts),
		cmocka_unit_test(test_lookups),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
