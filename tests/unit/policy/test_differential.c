/* SPDX-License-Identifier: MIT */
/*
 * Random policies, written as YAML and judged twice: by policy_decide(), and here, by the words of decide.h and
 * nothing else. This file has its own globs, its own comparison of addresses and its own idea of what a rule is.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants the four above first */
#include <cmocka.h>

#include "drafts.h"
#include "policy/name_reachable.h"

#define POLICIES 500
#define ATTEMPTS 60

struct outcome {
	enum action action;
	int rule;
};

/* -- judged by the words ------------------------------------------------------------ */

static bool bits_equal(const uint8_t *a, const uint8_t *b, int bits)
{
	for (int i = 0; i < bits; i++)
		if (bit_of(a, i) != bit_of(b, i))
			return false;
	return true;
}

/* All 2^(128 - bits) addresses of it. */
static bool in_metadata(const uint8_t addr[16], int bits)
{
	static const struct {
		const char *text;
		int bits;
	} ranges[] = { { "::ffff:169.254.0.0", 112 },
		       { "::ffff:100.100.100.200", 128 },
		       { "::ffff:168.63.129.16", 128 },
		       { "::ffff:192.0.0.192", 128 },
		       { "fe80::", 10 },
		       { "fd00:ec2::", 32 },
		       { "fd20:ce::254", 128 },
		       { "fd00:42::42", 128 } };
	uint8_t range[16];

	for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++) {
		inet_pton(AF_INET6, ranges[i].text, range);
		if (bits >= ranges[i].bits && bits_equal(range, addr, ranges[i].bits))
			return true;
	}
	return false;
}

static bool is_web(const struct attempt *a)
{
	return a->facts.protocol == PATTERN_TCP && (a->facts.port == 80 || a->facts.port == 443);
}

static bool port_fits(const struct draft *r, const struct dest *d, const struct attempt *a, bool full)
{
	bool deny = !strcmp(r->action, "deny"), tcp = a->facts.protocol == PATTERN_TCP;

	if (!full && !deny && a->facts.port == 53)
		return false;
	if (!d->first)
		return deny || full || is_web(a);
	if (a->facts.port < d->first || a->facts.port > d->last)
		return false;
	if (!*d->protocol)
		return deny || full || tcp;
	return !strcmp(d->protocol, tcp ? "/tcp" : "/udp");
}

/* The address as it goes on the wire. */
static void real_addr(const struct attempt *a, uint8_t addr[16])
{
	static const uint8_t nat64[12] = { 0, 0x64, 0xff, 0x9b }, v4[12] = { [10] = 0xff, [11] = 0xff };

	memcpy(addr, a->facts.addr.b, 16);
	if (!memcmp(addr, nat64, 12))
		memcpy(addr, v4, 12);
}

static bool dest_fits(const struct draft *r, const struct dest *d, const struct attempt *a, const char *name, bool full)
{
	bool deny = !strcmp(r->action, "deny");
	uint8_t addr[16];

	if (*d->name)
		return name && name_fits(d->name, name) && port_fits(r, d, a, full);
	if (!a->facts.has_addr || (name && !deny))
		return false;
	real_addr(a, addr);
	if (d->v4 != is_v4(addr) || !bits_equal(d->addr, addr, d->bits) || !port_fits(r, d, a, full))
		return false;
	return deny || !in_metadata(addr, 128) || in_metadata(d->addr, d->bits);
}

enum { NO, YES, BAD };

static int rule_fits(const struct draft *r, const struct attempt *a, const char *name, bool full)
{
	const struct facts *f = &a->facts;
	bool there = false, header = !r->header;

	for (int i = 0; i < r->n_dests; i++)
		there |= dest_fits(r, &r->dests[i], a, name, full);
	if (!there || (!full && !r->levels[f->rung.level]) || (r->session && !glob_fits(r->session, f->session)))
		return NO;
	if (!r->asks)
		return YES;
	if (!f->method || !is_web(a))
		return (strcmp(r->action, "deny") != 0) == is_web(a) ? YES : NO;
	for (int i = 0; f->headers && f->headers[i]; i++)
		header |= r->header && !strcmp(f->headers[i], r->header);
	if ((r->method && strcmp(r->method, f->method)) || !header)
		return NO;
	if (!r->glob)
		return YES;
	return !a->normal_path ? BAD : glob_fits(r->glob, a->normal_path) ? YES : NO;
}

static struct outcome rule_says(const struct draft *r, int i, const struct attempt *a, int fit, bool full)
{
	const struct facts *f = &a->facts;

	if (fit == BAD || !strcmp(r->action, "deny"))
		return (struct outcome){ ACTION_DENY, i };
	if (f->method && is_web(a) && !r->pinned && !full) {
		if (f->websocket && !r->websocket)
			return (struct outcome){ ACTION_DENY, i };
		if (r->max_body && f->body > (uint64_t)r->max_body)
			return (struct outcome){ ACTION_DENY, i };
	}
	if (!strcmp(r->action, "allow") || (r->asks && !f->method))
		return (struct outcome){ ACTION_ALLOW, i };
	return (struct outcome){ !strcmp(r->action, "ask") ? ACTION_ASK : ACTION_DECIDE, i };
}

static struct outcome judge_rules(const struct drafts *d, const struct attempt *a, const char *name)
{
	uint8_t addr[16];

	for (int i = 0; i < d->n_rules; i++) {
		int fit = rule_fits(&d->rules[i], a, name, false);

		if (fit != NO)
			return rule_says(&d->rules[i], i, a, fit, false);
	}
	real_addr(a, addr);
	if (!name && a->facts.has_addr && in_metadata(addr, 128))
		return (struct outcome){ ACTION_DENY, -1 };
	if (!d->default_ask || !(is_web(a) || (name && a->facts.protocol == PATTERN_TCP && a->facts.port != 53)) ||
	    (name && a->unmeant))
		return (struct outcome){ ACTION_DENY, -1 };
	return (struct outcome){ ACTION_ASK, -1 };
}

static struct outcome judge(const struct drafts *d, const struct attempt *a)
{
	struct outcome by_addr = { ACTION_ALLOW, -1 }, by_name;
	bool metadata;
	uint8_t addr[16];

	real_addr(a, addr);
	metadata = a->facts.has_addr && in_metadata(addr, 128);
	if (a->facts.rung.mode == NP_NONE)
		return (struct outcome){ ACTION_DENY, -1 };
	if (a->facts.rung.mode == NP_FULL) {
		for (int i = 0; i < d->n_full; i++)
			if (rule_fits(&d->full[i], a, NULL, true))
				return rule_says(&d->full[i], i, a, YES, true);
		return (struct outcome){ metadata ? ACTION_DENY : ACTION_ALLOW, -1 };
	}
	if (!a->facts.name)
		return judge_rules(d, a, NULL);
	if (metadata)
		by_addr = judge_rules(d, a, NULL);
	by_name = judge_rules(d, a, a->facts.name);
	if (by_addr.action == ACTION_DENY || (by_addr.action != ACTION_ALLOW && by_name.action != ACTION_DENY))
		return by_addr;
	return by_name;
}

/* -- both --------------------------------------------------------------------------- */

struct seen {
	unsigned actions[ACTION_DECIDE + 1], by_rule, metadata, bad_path;
};

static void compare(const struct policy *policy, const struct drafts *drafts, const char *yaml, struct seen *seen)
{
	struct attempt a;
	struct outcome expected;
	struct verdict verdict;
	const struct rule *rules;
	int rule;

	random_attempt(&a);
	a.unmeant = a.facts.name && !policy_default_knows(policy, &a.facts.rung, a.facts.session, a.facts.name);
	expected = judge(drafts, &a);
	verdict = policy_decide(policy, &a.facts);
	rules = a.facts.rung.mode == NP_FULL ? policy->full : policy->rules;
	rule = verdict.rule ? (int)(verdict.rule - rules) : -1;
	if (verdict.action != expected.action || rule != expected.rule)
		fail_msg("%s by %d, not %s by %d, for %s %s%s %u mode %d level %d %s %s in:\n%s",
			 action_name(verdict.action), rule, action_name(expected.action), expected.rule,
			 a.facts.name ? a.facts.name : "-", a.facts.has_addr ? "and an address" : "",
			 a.facts.protocol == PATTERN_UDP ? " udp" : "", a.facts.port, a.facts.rung.mode,
			 a.facts.rung.level, a.facts.method ? a.facts.method : "-", a.facts.path ? a.facts.path : "-",
			 yaml);
	seen->actions[verdict.action]++;
	seen->by_rule += verdict.rule != NULL;
	seen->metadata += verdict.reason == NP_R_METADATA;
	seen->bad_path += verdict.reason == NP_R_BAD_PATH;
}

static void test_random_policies(void **state)
{
	static char yaml[RULES_MAX * 1024];
	struct drafts drafts;
	struct seen seen = { 0 };

	(void)state;
	for (int i = 0; i < POLICIES; i++) {
		_policy_ struct policy *policy = NULL;

		chance_state = (uint32_t)i;
		random_drafts(&drafts);
		write_policy(yaml, &drafts);
		policy = policy_of(yaml);
		assert_int_equal(policy->n_rules, drafts.n_rules);
		for (int k = 0; k < ATTEMPTS; k++)
			compare(policy, &drafts, yaml, &seen);
	}
	/* Enough of each kind, or it proves nothing. */
	assert_true(seen.by_rule > POLICIES * ATTEMPTS / 4);
	assert_true(seen.actions[ACTION_ALLOW] > 2000 && seen.actions[ACTION_DENY] > 2000);
	assert_true(seen.actions[ACTION_ASK] > 500 && seen.actions[ACTION_DECIDE] > 200);
	assert_true(seen.metadata > 500 && seen.bad_path > 50);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_random_policies),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
