/* SPDX-License-Identifier: MIT */
/*
 * Bytes as a policy and as attempts: the tables of policy_decide() find the rule that a plain look at one rule after
 * the other finds. Few words, so that rules and attempts meet.
 */
#include "policy/decide.c"
#include "policy/name_table.c"
#include "policy/name_table_make.c"
#include "policy/nets.c"

#include <arpa/nameser.h>
#include <stdio.h>

#include "policy/compile.h"
#include "../unit/policy/reference.h"
#include "vocab/limits.h"
#include "check.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define RULES_MAX    16
#define PATTERNS_MAX 64

struct input {
	const uint8_t *data;
	size_t size;
};

/* 0 to n - 1; 0 at the end. */
static unsigned take(struct input *in, unsigned n)
{
	if (!in->size)
		return 0;
	in->size--;
	return *in->data++ % n;
}

static const char *take_word(struct input *in, const char *const *words, size_t n)
{
	return words[take(in, (unsigned)n)];
}
#define TAKE_WORD(in, ...)                                  \
	take_word(in, (const char *const[]){ __VA_ARGS__ }, \
		  sizeof((const char *const[]){ __VA_ARGS__ }) / sizeof(char *))

/* A word, alone in a list; NULL for none. Static: there are but a few. */
static const char *const *take_list(struct input *in, const char *const lists[][2], unsigned n)
{
	unsigned i = take(in, n + 2);

	return i < n ? lists[i] : NULL;
}

static void take_name(struct input *in, char name[static 128], bool pattern)
{
	unsigned labels = take(in, 4);

	name[0] = '\0';
	if (pattern && take(in, 5) == 0) {
		strcat(name, labels ? "." : ".b");
		pattern = false; /* no stars behind it */
	} else if (pattern && take(in, 4) == 0) {
		strcat(name, labels ? "**." : "**");
	}
	for (unsigned i = 0; i < labels; i++) {
		strcat(name,
		       pattern && take(in, 4) == 0 ? "*" : TAKE_WORD(in, "a", "b", "a-rather-long-label-of-a-name"));
		if (i + 1 < labels)
			strcat(name, ".");
	}
	if (!name[0])
		strcat(name, "a");
}

static struct np_addr take_addr(struct input *in)
{
	static const uint8_t starts[][16] = {
		{ [10] = 0xff, [11] = 0xff, [12] = 10 },
		{ [10] = 0xff, [11] = 0xff, [12] = 169, [13] = 254 },
		{ 0x20, 0x01, 0x0d, 0xb8 },
		{ 0xfe, 0x80 },
		{ 0x00, 0x64, 0xff, 0x9b, [12] = 10 },
	};
	struct np_addr addr;

	memcpy(addr.b, starts[take(in, 5)], 16);
	addr.b[14] |= (uint8_t)take(in, 4);
	addr.b[15] |= (uint8_t)take(in, 4);
	return addr;
}

struct built {
	struct policy policy;
	struct rule rules[RULES_MAX];
	struct pattern patterns[PATTERNS_MAX];
	char names[PATTERNS_MAX][128];
};

static void take_pattern(struct input *in, struct built *b, struct rule *rule, bool full)
{
	uint32_t index = (uint32_t)b->policy.n_patterns++;
	struct pattern *p = &b->patterns[index];

	*p = (struct pattern){ .kind = full || take(in, 3) == 0 ? PATTERN_NET : PATTERN_NAME, .rule = rule->number };
	if (p->kind == PATTERN_NAME) {
		take_name(in, b->names[index], true);
		p->name = b->names[index];
	} else {
		struct np_addr addr = take_addr(in);

		p->addr = np_addr_carried(&addr);
		p->v4 = np_addr_is_v4(&p->addr);
		p->bits = (uint8_t)(p->v4 ? 96 + take(in, 33) : take(in, 129));
		for (unsigned bit = p->bits; bit < 128; bit++)
			p->addr.b[bit / 8] &= (uint8_t) ~(0x80 >> bit % 8);
	}
	p->inspected = take(in, 2);
	p->protocols = (uint8_t)(p->inspected ? PATTERN_TCP : 1 + take(in, 3));
	if (!p->inspected) {
		p->first_port = (uint16_t)(1 + take(in, 4) * 52);
		p->last_port = (uint16_t)(p->first_port + take(in, 4) * 60);
		if (take(in, 4) == 0) {
			p->first_port = 1;
			p->last_port = UINT16_MAX;
		}
	}
}

static void take_rule(struct input *in, struct built *b, uint32_t number, uint32_t index, bool full)
{
	static const char *const methods[][2] = { { "GET" }, { "PUT" } }, *const headers[][2] = { { "x" }, { "y" } },
				 *const paths[][2] = { { "/a" }, { "/a/**" }, { "/*" } },
				 *const sessions[][2] = { { "a/x" }, { "a/*" }, { "*/x" } };
	struct rule *rule = &b->rules[index];
	unsigned n = 1 + take(in, 3);

	*rule = (struct rule){ .number = number, .action = (enum action)(1 + take(in, full ? 2 : 4)), .text = "rule" };
	rule->pattern = (uint32_t)b->policy.n_patterns;
	for (unsigned i = 0; i < n; i++, rule->n_patterns++)
		take_pattern(in, b, rule, full);
	rule->levels = full ? 15 : (uint8_t)(15 ^ take(in, 15));
	rule->max_body = take(in, 2) ? UINT64_MAX : 7;
	if (full)
		return;
	rule->inspect = take(in, 2);
	rule->websocket = take(in, 2);
	rule->methods = take_list(in, methods, 2);
	rule->paths = take_list(in, paths, 3);
	rule->headers = take_list(in, headers, 2);
	rule->sessions = take(in, 3) ? NULL : take_list(in, sessions, 3);
	for (uint32_t i = 0; i < rule->n_patterns; i++)
		if (b->patterns[rule->pattern + i].kind == PATTERN_NET) /* the reader refuses it */
			rule->sessions = NULL;
	rule->dns = (uint8_t)(take(in, 3) ? 0 : take(in, 8));
}

static void take_policy(struct input *in, struct built *b)
{
	uint32_t n_rules = take(in, RULES_MAX - 3), n_full = take(in, 4);

	*b = (struct built){ .policy = { .rules = b->rules,
					 .n_rules = n_rules,
					 .full = b->rules + n_rules,
					 .n_full = n_full,
					 .patterns = b->patterns,
					 .inspect_ports = { 80, 105 },
					 .n_inspect_ports = 2 } };
	for (unsigned level = 0; level < LEVEL_COUNT; level++)
		b->policy.fallback[level].action = ACTION_ALLOW + take(in, 3);
	for (uint32_t i = 0; i < n_rules; i++)
		take_rule(in, b, i, i, false);
	for (uint32_t i = 0; i < n_full; i++)
		take_rule(in, b, i, n_rules + i, true);
	check(arena_new(NP_POLICY_MEMORY, &b->policy.arena) == 0);
	check(policy_compile(&b->policy) == 0);
}

/* -- the property ------------------------------------------------------------------ */

static const struct rule *first_match(const struct policy *policy, const struct facts *facts)
{
	const struct rule *rules = facts->rung.mode == NP_FULL ? policy->full : policy->rules;
	size_t n = facts->rung.mode == NP_FULL ? policy->n_full : policy->n_rules;

	for (size_t i = 0; i < n; i++)
		if (reference_misfit(policy, &rules[i], facts) == MISFIT_NONE)
			return &rules[i];
	return NULL;
}

/* A metadata address is open only if a rule inside of its range says so. */
static void check_metadata(const struct policy *policy, const struct facts *facts, const struct verdict *verdict)
{
	const struct rule *rules = facts->rung.mode == NP_FULL ? policy->full : policy->rules;
	size_t n = facts->rung.mode == NP_FULL ? policy->n_full : policy->n_rules;
	struct np_addr addr = np_addr_carried(&facts->addr);

	if (verdict->action == ACTION_DENY)
		return;
	for (size_t i = 0; i < n; i++)
		for (uint32_t k = 0; k < rules[i].n_patterns; k++) {
			const struct pattern *p = &policy->patterns[rules[i].pattern + k];

			if (p->kind == PATTERN_NET && rules[i].action != ACTION_DENY && p->v4 == np_addr_is_v4(&addr) &&
			    metadata_holds(&p->addr, p->bits, p->v4) && net_holds(&p->addr, p->bits, &addr))
				return;
		}
	abort();
}

static void decision_check(const struct policy *policy, const struct facts *facts)
{
	struct verdict verdict = policy_decide(policy, facts), again = policy_decide(policy, facts);
	const struct rule *expected = first_match(policy, facts);
	uint8_t trace[RULES_MAX] = { 0 };
	char path[NP_PATH_MAX + 1];

	check(verdict.action == again.action && verdict.rule == again.rule && verdict.reason == again.reason);
	check(NP_REASON_ALLOWS(verdict.reason) == (verdict.action == ACTION_ALLOW));
	if (facts->rung.mode == NP_NONE) {
		check(verdict.action == ACTION_DENY && !verdict.rule);
		return;
	}
	if (!facts->query && facts->has_addr && np_addr_is_metadata(&facts->addr)) {
		check_metadata(policy, facts, &verdict);
		return;
	}
	again = policy_trace(policy, facts, trace);
	check(verdict.action == again.action && verdict.rule == again.rule && verdict.reason == again.reason);
	check(reference_agrees(policy, facts, &verdict, trace));
	if (verdict.reason == NP_R_BAD_PATH) {
		check(path_normalise(facts->path, strlen(facts->path), path) < 0);
		check(reference_misfit(policy, verdict.rule, facts) == MISFIT_PATH);
		check(!expected || verdict.rule < expected);
		return;
	}
	check(verdict.rule == expected);
	if (verdict.rule && verdict.rule->action == ACTION_DENY)
		check(verdict.reason == NP_R_RULE_DENIES);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const headers[][2] = { { "x" }, { "y" } };
	struct input in = { data, size };
	struct built b;
	char name[128];

	take_policy(&in, &b);
	for (int i = 0; i < 16 && in.size; i++) {
		struct facts facts = {
			.rung = { .mode = (enum np_mode)(NP_FULL + take(&in, 3)), .level = (uint8_t)take(&in, 4) },
			.protocol = (uint8_t)(1 + take(&in, 2)),
			.port = (uint16_t)(1 + take(&in, 255)),
			.has_addr = take(&in, 2),
			.websocket = take(&in, 2),
			.body = take(&in, 16),
			.query = take(&in, 3) ? 0 : (uint16_t[]){ ns_t_mx, ns_t_srv, ns_t_txt, ns_t_a }[take(&in, 4)],
		};

		take_name(&in, name, false);
		facts.name = take(&in, 3) ? name : NULL;
		facts.addr = take_addr(&in);
		if (take(&in, 2))
			facts.port = take(&in, 2) ? 80 : 53;
		facts.method = TAKE_WORD(&in, NULL, "GET", "PUT");
		facts.path = TAKE_WORD(&in, "/", "/a", "/a/b", "/a/../b", "//", "/%2f");
		facts.headers = take_list(&in, headers, 2);
		facts.session = TAKE_WORD(&in, NULL, "a/x", "b/x", "a/y");
		decision_check(&b.policy, &facts);
	}
	arena_free(b.policy.arena);
	return 0;
}
