/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants the four above first */
#include <cmocka.h>

#include "policy/name_reachable.c"

#include "drafts.h"

#define POLICIES 400
#define NAMES	 12
#define ATTEMPTS 150
#define SESSION	 "a/x"

static unsigned may_at(const struct policy *policy, enum np_mode mode, enum level level, const char *name)
{
	const struct np_rung rung = { .mode = mode, .level = (uint8_t)level };

	return policy_may_name(policy, &rung, SESSION, name);
}

static unsigned may(const struct policy *policy, const char *name)
{
	return may_at(policy, NP_PROXIED, LEVEL_CONFIDENTIAL, name);
}

static void test_modes(void **state)
{
	_policy_ struct policy *policy = policy_of("rules:\n- allow: a.example\n");

	(void)state;
	assert_int_equal(may(policy, "a.example"), MAY_HTTP);
	assert_int_equal(may(policy, "b.example"), 0);
	assert_int_equal(may(policy, "example"), 0);
	assert_int_equal(may(policy, "x.a.example"), 0);
	assert_int_equal(may(policy, ""), 0);
	assert_int_equal(may_at(policy, NP_NONE, LEVEL_SECRET, "a.example"), 0);
	assert_int_equal(may_at(policy, (enum np_mode)0, LEVEL_SECRET, "a.example"), 0);
	assert_int_equal(may_at(policy, NP_FULL, LEVEL_PUBLIC, "b.example"), MAY_ALL);
}

/* A grant for others opens nothing; a deny for others takes nothing. Of a session that is not known both is feared. */
static void test_sessions(void **state)
{
	const struct np_rung rung = { .mode = NP_PROXIED, .level = LEVEL_CONFIDENTIAL };
	_policy_ struct policy *policy = policy_of("rules:\n"
						   "- {deny: a.example, sessions: 'b/*'}\n"
						   "- {allow: b.example, sessions: 'b/*'}\n"
						   "- allow: a.example\n");

	(void)state;
	assert_int_equal(policy_may_name(policy, &rung, "a/x", "a.example"), MAY_HTTP);
	assert_int_equal(policy_may_name(policy, &rung, "b/x", "a.example"), 0);
	assert_int_equal(policy_may_name(policy, &rung, NULL, "a.example"), 0);
	assert_int_equal(policy_may_name(policy, &rung, "a/x", "b.example"), 0);
	assert_int_equal(policy_may_name(policy, &rung, "b/x", "b.example"), MAY_HTTP);
	assert_int_equal(policy_may_name(policy, &rung, NULL, "b.example"), 0);
	assert_null(policy_denies_name(policy, &rung, "a/x", "a.example"));
	assert_ptr_equal(policy_denies_name(policy, &rung, "b/x", "a.example"), &policy->patterns[0]);
}

static void test_ways(void **state)
{
	_policy_ struct policy *policy = policy_of("deciders: {guard: {socket: /run/guard}}\n"
						   "rules:\n"
						   "- allow: web.example\n"
						   "  methods: GET\n"
						   "  paths: /a\n"
						   "- ask: ask.example\n"
						   "- decide: '*.decide.example'\n"
						   "  by: guard\n"
						   "- allow: db.example:5432/tcp\n"
						   "- allow: any.example:*\n"
						   "- allow: udp.example:443/udp\n"
						   "- allow: tls.example:443\n"
						   "- allow: dns.example:50-60/udp\n"
						   "- allow: '**.deep.example:80-443'\n"
						   "- allow: 192.0.2.0/24\n");

	(void)state;
	assert_int_equal(may(policy, "web.example"), MAY_HTTP);
	assert_int_equal(may(policy, "ask.example"), MAY_HTTP);
	assert_int_equal(may(policy, "x.decide.example"), MAY_HTTP);
	assert_int_equal(may(policy, "decide.example"), 0);
	assert_int_equal(may(policy, "x.y.decide.example"), 0);
	assert_int_equal(may(policy, "db.example"), MAY_TCP);
	assert_int_equal(may(policy, "any.example"), MAY_HTTP | MAY_TCP);
	assert_int_equal(may(policy, "udp.example"), MAY_UDP);
	assert_int_equal(may(policy, "tls.example"), MAY_HTTP);
	assert_int_equal(may(policy, "dns.example"), MAY_UDP);
	assert_int_equal(may(policy, "a.b.deep.example"), MAY_HTTP | MAY_TCP);
	assert_int_equal(may(policy, "deep.example"), 0);
}

static void test_denies(void **state)
{
	_policy_ struct policy *policy = policy_of("rules:\n"
						   "- deny: gone.example\n"
						   "- deny: '**.bad.example'\n"
						   "- deny: port.example:443\n"
						   "- deny: web.example:1-1000/tcp\n"
						   "- deny: tcp.example:*/tcp\n"
						   "- deny: some.example\n"
						   "  methods: POST\n"
						   "- allow: late.example\n"
						   "- deny: late.example\n"
						   "- allow: ['**:*', '**:*/udp']\n"
						   "- allow: gone.example\n");

	(void)state;
	assert_int_equal(may(policy, "gone.example"), 0);
	assert_int_equal(may(policy, "a.bad.example"), 0);
	assert_int_equal(may(policy, "bad.example"), MAY_ALL);
	assert_int_equal(may(policy, "port.example"), MAY_ALL); /* 80 is left */
	assert_int_equal(may(policy, "web.example"), MAY_TCP | MAY_UDP);
	assert_int_equal(may(policy, "tcp.example"), MAY_UDP);
	assert_int_equal(may(policy, "some.example"), MAY_HTTP); /* elsewhere nobody sees what is a POST */
	assert_int_equal(may(policy, "late.example"), MAY_HTTP);
}

static void test_levels(void **state)
{
	_policy_ struct policy *policy = policy_of("rules:\n"
						   "- deny: a.example\n"
						   "  for: INTERNAL\n"
						   "- allow: a.example\n"
						   "  for: [PUBLIC, INTERNAL]\n");

	(void)state;
	assert_int_equal(may_at(policy, NP_PROXIED, LEVEL_PUBLIC, "a.example"), MAY_HTTP);
	assert_int_equal(may_at(policy, NP_PROXIED, LEVEL_INTERNAL, "a.example"), 0);
	assert_int_equal(may_at(policy, NP_PROXIED, LEVEL_CONFIDENTIAL, "a.example"), 0);
}

static void test_defaults(void **state)
{
	_policy_ struct policy *policy = policy_of("default: ask\n"
						   "rules:\n"
						   "- deny: a.example\n"
						   "- deny: b.example:*/udp\n"
						   "- deny: c.example:443\n");

	(void)state;
	assert_int_equal(may(policy, "a.example"), 0);
	assert_int_equal(may(policy, "b.example"), MAY_HTTP | MAY_TCP);
	assert_int_equal(may(policy, "c.example"), MAY_HTTP | MAY_TCP);
	assert_int_equal(may(policy, "d.example"), MAY_HTTP | MAY_TCP);
	assert_int_equal(may(policy, ""), 0);
}

/* A person is not asked about names that nobody meant. */
static void test_default_knows(void **state)
{
	_policy_ struct policy *policy = policy_of("default: {CONFIDENTIAL: ask}\n"
						   "rules:\n"
						   "- allow: [api.example, box, printer.local]\n"
						   "- allow: \"*.corp\"\n"
						   "- deny: no.example\n");
	_policy_ struct policy *wide = policy_of("default: allow\nrules:\n- allow: \"**\"\n  methods: GET\n");
	static const char *const unknown[] = { "intranet",
					       "scanner.local",
					       "x.invalid",
					       "y.onion",
					       "7.in-addr.arpa",
					       "api.example.corp.example",
					       "api.example.a.b.c.d.e.f",
					       "box.example",
					       "db.corp.example" };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(unknown); i++)
		assert_int_equal(may(policy, unknown[i]), 0);
	assert_int_equal(may(policy, "other.example"), MAY_HTTP | MAY_TCP);
	assert_int_equal(may(policy, "box"), MAY_HTTP | MAY_TCP);
	assert_int_equal(may(policy, "printer.local"), MAY_HTTP | MAY_TCP);
	assert_int_equal(may(policy, "no.example.corp.example"), MAY_HTTP | MAY_TCP);
	assert_int_equal(may_at(policy, NP_PROXIED, LEVEL_SECRET, "other.example"), 0);
	assert_int_equal(may_at(policy, NP_PROXIED, LEVEL_PUBLIC, "other.example"), MAY_HTTP | MAY_TCP);
	/* What a rule speaks of in some way is meant. */
	assert_int_equal(may(wide, "db.corp.example"), MAY_HTTP | MAY_TCP);
}

/* A rule for each of so many names, some wildcards and a last deny: what is asked for is found among them. */
static void test_many_rules(void **state)
{
	const unsigned n = 100000;
	char *yaml = malloc(n * 40 + 100), *at = yaml, name[40];
	_policy_ struct policy *policy = NULL;

	(void)state;
	assert_non_null(yaml);
	at += sprintf(at, "rules:\n");
	for (unsigned i = 0; i < n; i++)
		at += sprintf(at, "- %s: '%sn%u.example'\n", i % 3 ? "allow" : "deny", i % 5 ? "" : "**.", i);
	sprintf(at, "- allow: n0.example\n- deny: '**'\n");
	policy = policy_of(yaml);
	free(yaml);
	for (unsigned i = 1; i < n; i += 7) {
		sprintf(name, "%sn%u.example", i % 5 ? "" : "a.b.", i);
		assert_int_equal(may(policy, name), i % 3 ? MAY_HTTP : 0);
	}
	assert_int_equal(may(policy, "n0.example"), MAY_HTTP);
	assert_int_equal(may(policy, "m.example"), 0);
}

/* -- random policies ------------------------------------------------------------- */

static unsigned way_of(const struct facts *facts)
{
	if (facts->protocol == PATTERN_UDP)
		return MAY_UDP;
	return facts->port == 80 || facts->port == 443 ? MAY_HTTP : MAY_TCP;
}

/* By the words of name_reachable.h: the ways that one destination of a rule speaks of, wholly or in part. */
static unsigned dest_ways(const struct draft *r, const struct dest *d, bool wholly)
{
	bool deny = !strcmp(r->action, "deny"), tcp, udp;
	unsigned ways = 0;

	tcp = *d->protocol ? !strcmp(d->protocol, "/tcp") : true;
	udp = *d->protocol ? !strcmp(d->protocol, "/udp") : deny;
	if (!d->first)
		return deny ? (tcp ? MAY_HTTP | MAY_TCP : 0) | (udp ? MAY_UDP : 0) : MAY_HTTP;
	if (wholly) {
		bool all = d->first == 1 && d->last == 65535;

		if (tcp && d->first <= 80 && d->last >= 443)
			ways |= MAY_HTTP;
		return ways | (tcp && all ? MAY_TCP : 0) | (udp && all ? MAY_UDP : 0);
	}
	for (int port = d->first; port <= d->last; port++) {
		bool web = port == 80 || port == 443;

		if (port == 53)
			continue;
		ways |= (tcp ? web ? MAY_HTTP : MAY_TCP : 0) | (udp ? MAY_UDP : 0);
	}
	return ways;
}

static unsigned rules_ways(const struct drafts *drafts, enum level level, const char *name, unsigned *ret_denied)
{
	unsigned denied = 0, ways = 0;

	for (int i = 0; i < drafts->n_rules; i++) {
		const struct draft *r = &drafts->rules[i];
		bool deny = !strcmp(r->action, "deny");

		if (!r->levels[level] || (r->session && !glob_fits(r->session, SESSION)))
			continue;
		for (int k = 0; k < r->n_dests; k++) {
			const struct dest *d = &r->dests[k];

			if (!*d->name || !name_fits(d->name, name))
				continue;
			if (deny)
				denied |= dest_ways(r, d, true) & (r->asks ? MAY_TCP | MAY_UDP : MAY_ALL);
			else
				ways |= dest_ways(r, d, false) & ~denied;
		}
	}
	*ret_denied = denied;
	return ways;
}

static unsigned expected_ways(const struct drafts *drafts, enum level level, const char *name)
{
	unsigned denied, other, ways = rules_ways(drafts, level, name, &denied);
	char prefix[300];

	if (!drafts->default_ask || (!ways && !strchr(name, '.')))
		return ways;
	for (size_t i = strlen(name); !ways && i; i--) {
		snprintf(prefix, sizeof(prefix), "%.*s", (int)i, name);
		if (name[i] == '.' && rules_ways(drafts, level, prefix, &other))
			return 0;
	}
	return ways | ((MAY_HTTP | MAY_TCP) & ~denied);
}

struct seen {
	unsigned ways[MAY_ALL + 1], granted, needless;
};

static void compare(const struct policy *policy, const struct drafts *drafts, const char *yaml, struct seen *seen)
{
	enum level level = (enum level)chance(4);
	unsigned ways, granted = 0;
	char name[40];

	random_name(name, false);
	ways = may_at(policy, NP_PROXIED, level, name);
	if (ways != expected_ways(drafts, level, name))
		fail_msg("%s at %d may %u, not %u, in:\n%s", name, level, ways, expected_ways(drafts, level, name),
			 yaml);
	for (int i = 0; i < ATTEMPTS; i++) {
		struct attempt a;
		struct verdict verdict;

		random_attempt(&a);
		a.facts.rung.mode = NP_PROXIED;
		a.facts.rung.level = level;
		a.facts.name = name;
		a.facts.session = SESSION;
		verdict = policy_decide(policy, &a.facts);
		if (verdict.action == ACTION_DENY)
			continue;
		granted |= way_of(&a.facts);
		if (!(ways & way_of(&a.facts)))
			fail_msg("%s by rule %d, but %s may %u only, in:\n%s", action_name(verdict.action),
				 verdict.rule ? (int)verdict.rule->number : -1, name, ways, yaml);
	}
	seen->ways[ways]++;
	seen->granted += granted != 0;
	seen->needless += ways && !granted;
}

static void test_random_policies(void **state)
{
	static char yaml[RULES_MAX * 1024];
	struct seen seen = { 0 };
	struct drafts drafts;

	(void)state;
	for (int i = 0; i < POLICIES; i++) {
		_policy_ struct policy *policy = NULL;

		chance_state = (uint32_t)i;
		random_drafts(&drafts);
		write_policy(yaml, &drafts);
		policy = policy_of(yaml);
		for (int k = 0; k < NAMES; k++)
			compare(policy, &drafts, yaml, &seen);
	}
	/* Enough of each kind, or it proves nothing; and few of those that may are never granted anything. */
	for (unsigned ways = 0; ways <= MAY_ALL; ways++)
		assert_true(seen.ways[ways] > 0);
	assert_true(seen.ways[0] > POLICIES * NAMES / 10);
	assert_true(seen.granted > POLICIES * NAMES / 4);
	assert_true(seen.needless < seen.granted / 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_modes),		cmocka_unit_test(test_ways),
		cmocka_unit_test(test_sessions),	cmocka_unit_test(test_denies),
		cmocka_unit_test(test_levels),		cmocka_unit_test(test_defaults),
		cmocka_unit_test(test_default_knows),	cmocka_unit_test(test_many_rules),
		cmocka_unit_test(test_random_policies),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
