/* SPDX-License-Identifier: MIT */
/* Rules that can never match, for those who write them. A warning, so it may miss some: work is bounded. */
#include <stdio.h>
#include <string.h>

#include "policy/compile.h"
#include "policy/decide.h"
#include "policy/metadata.h"
#include "policy/name_table.h"
#include "policy/net.h"
#include "policy/nets.h"
#include "wire/hostname.h"
#include "vocab/limits.h"

#define RUNS_MAX    64 /* looked at for one pattern */
#define TARGETS_MAX 64 /* in one run */
#define NONE	    UINT32_MAX

/* Looks for the first rule above that takes all that one pattern of a rule could match. */
struct cover {
	const struct policy *policy;
	const struct rule *rules;
	const struct rule *rule;
	const struct pattern *pattern;
	uint32_t found; /* its number, or NONE */
	unsigned runs;	/* looked at */
	size_t *work;	/* left for the whole policy */
};

/* Is each of these among those? */
static bool words_include(const char *const *those, const char *const *these)
{
	for (; these && *these; these++)
		if (!list_has(those, *these))
			return false;
	return true;
}

/* Does a glob match whatever the other one matches? As far as is easily seen. */
static bool glob_includes(const char *wide, const char *glob)
{
	size_t prefix = strcspn(wide, "*");

	return strcmp(wide, glob) == 0 || (strcmp(wide + prefix, "**") == 0 && strncmp(wide, glob, prefix) == 0);
}

static bool paths_include(const char *const *wide, const char *const *paths)
{
	for (; *paths; paths++) {
		const char *const *w = wide;

		while (*w && !glob_includes(*w, *paths))
			w++;
		if (!*w)
			return false;
	}
	return true;
}

static bool ports_include(const struct policy *policy, const struct pattern *wide, const struct pattern *pattern)
{
	if (pattern->protocols & ~wide->protocols)
		return false;
	if (pattern->inspected && wide->inspected)
		return true;
	if (pattern->inspected) {
		for (size_t i = 0; i < policy->n_inspect_ports; i++)
			if (policy->inspect_ports[i] < wide->first_port || policy->inspect_ports[i] > wide->last_port)
				return false;
		return true;
	}
	if (!wide->inspected)
		return wide->first_port <= pattern->first_port && wide->last_port >= pattern->last_port;
	for (unsigned port = pattern->first_port; port <= pattern->last_port; port++)
		if (!policy_inspects(policy, (uint16_t)port))
			return false;
	return true;
}

/* Where an allow says less than its words: see decide.h. */
static bool reaches_all(const struct cover *c, const struct rule *wide, const struct pattern *by)
{
	const struct pattern *p = c->pattern;
	bool is_full = c->rules == c->policy->full;

	if (wide->action == ACTION_DENY)
		return true;
	/* Port 53 is the DNS gate's, but may be denied. */
	if (!is_full && c->rule->action == ACTION_DENY && !p->inspected && p->first_port <= 53 && p->last_port >= 53)
		return false;
	if (p->kind != PATTERN_NET)
		return true;
	/* A deny by address holds for names that lead there, too. */
	if (!is_full && c->rule->action == ACTION_DENY)
		return false;
	return !metadata_holds(&p->addr, p->bits, p->v4) || metadata_holds(&by->addr, by->bits, by->v4);
}

/* The lookups that the rule allows are decided by the other one, too: see decide.h. */
static bool queries_include(const struct rule *wide, const struct pattern *by, const struct rule *rule)
{
	if (!rule->dns || wide->action != ACTION_DENY)
		return !(rule->dns & ~wide->dns);
	return by->protocols == (PATTERN_TCP | PATTERN_UDP) && by->first_port <= 1 && by->last_port == UINT16_MAX;
}

static bool rule_includes(const struct cover *c, const struct rule *wide, const struct pattern *by)
{
	const struct rule *rule = c->rule;

	if (rule->levels & ~wide->levels || !ports_include(c->policy, by, c->pattern) || !reaches_all(c, wide, by))
		return false;
	if (!queries_include(wide, by, rule))
		return false;
	if (wide->sessions && (!rule->sessions || !words_include(wide->sessions, rule->sessions)))
		return false;
	if (wide->methods && (!rule->methods || !words_include(wide->methods, rule->methods)))
		return false;
	if (wide->paths && (!rule->paths || !paths_include(wide->paths, rule->paths)))
		return false;
	return !wide->headers || (rule->headers && words_include(rule->headers, wide->headers));
}

static size_t words_count(const char *const *words)
{
	size_t n = 0;

	while (words && words[n])
		n++;
	return n;
}

/* What comparing two rules costs at most. */
static void work_spend(struct cover *c, const struct rule *other)
{
	size_t cost = 1 + words_count(c->rule->methods) * words_count(other->methods) +
		      words_count(c->rule->paths) * words_count(other->paths) +
		      words_count(c->rule->headers) * words_count(other->headers);

	*c->work = *c->work > cost ? *c->work - cost : 0;
}

/* false once there is no need to look at patterns of later rules. */
static bool cover_consider(struct cover *c, uint32_t number, uint32_t pattern)
{
	if (number >= c->rule->number || number >= c->found || !*c->work)
		return false;
	work_spend(c, &c->rules[number]);
	if (!rule_includes(c, &c->rules[number], &c->policy->patterns[pattern]))
		return true;
	c->found = number;
	return false;
}

static bool names_consider(void *ctx, const struct target *targets, size_t n)
{
	struct cover *c = ctx;

	for (size_t i = 0; i < n && i < TARGETS_MAX; i++)
		if (!cover_consider(c, targets[i].rule, targets[i].pattern))
			break;
	return ++c->runs < RUNS_MAX;
}

static void nets_consider(struct cover *c, const struct net_table *nets)
{
	const struct pattern *p = c->pattern;
	const struct net_node *node = net_table_find(nets, &p->addr);

	while (node && node->bits > p->bits)
		node = node->up;
	for (; node && c->runs < RUNS_MAX; node = node->up, c->runs++)
		for (uint32_t i = 0; i < node->n_patterns && i < TARGETS_MAX; i++)
			if (!cover_consider(c, c->policy->patterns[node->patterns[i]].rule, node->patterns[i]))
				break;
}

/* ".example.org": the domain itself, and what is below it. Of two rules the later one is told: up to there both are gone. */
static uint32_t domain_cover(struct cover *c)
{
	char below[2 + NAME_SIZE];
	uint32_t itself;

	name_table_visit(c->policy->names, c->pattern->name + 1, names_consider, c);
	itself = c->found;
	c->found = NONE;
	c->runs = 0;
	snprintf(below, sizeof(below), "**%s", c->pattern->name);
	name_table_visit(c->policy->names, below, names_consider, c);
	return itself == NONE || c->found == NONE ? NONE : itself > c->found ? itself : c->found;
}

static uint32_t pattern_cover(const struct policy *policy, const struct rule *rules, const struct rule *rule,
			      const struct pattern *pattern, size_t *work)
{
	struct cover c = {
		.policy = policy, .rules = rules, .rule = rule, .pattern = pattern, .found = NONE, .work = work
	};
	struct pattern inspected = *pattern;

	if (rules == policy->rules && rule->action == ACTION_DENY && pattern->kind == PATTERN_NAME &&
	    pattern->protocols & PATTERN_TCP) {
		/* No name is reached over UDP, so there is nothing to deny there. */
		inspected.protocols = PATTERN_TCP;
		/* A deny without a port is for every port, but it is requests that its author thinks of. */
		if (pattern->first_port <= 1 && pattern->last_port == UINT16_MAX && !pattern->inspected) {
			inspected.inspected = true;
			inspected.first_port = inspected.last_port = 0;
		}
		c.pattern = &inspected;
	}

	if (pattern->kind == PATTERN_NET) {
		nets_consider(&c, rules == policy->full ? policy->full_nets : policy->nets);
		return c.found;
	}
	if (pattern->name[0] != '.') {
		name_table_visit(policy->names, pattern->name, names_consider, &c);
		return c.found;
	}
	return domain_cover(&c);
}

static void cover_warn(const struct policy *policy, const struct rule *rule, const struct rule *first, bool others,
		       struct problems *problems)
{
	char place[PLACE_TEXT_SIZE];

	place_format(policy, &first->at, place);
	problem_point(problem_add(problems, true, policy->files[rule->at.file], rule->at.line, rule->at.column,
				  others ? "never used: %s (%.120s) and others decide first"
					 : "never used: %s (%.120s) decides first",
				  place, first->text),
		      policy->files[first->at.file], first->at.line);
}

static void rules_check(const struct policy *policy, const struct rule *rules, size_t n_rules,
			struct problems *problems, size_t *work)
{
	for (size_t r = 1; r < n_rules; r++) {
		const struct rule *rule = &rules[r];
		uint32_t first = NONE;
		bool others = false;

		for (uint32_t i = 0; i < rule->n_patterns; i++) {
			uint32_t by = pattern_cover(policy, rules, rule, &policy->patterns[rule->pattern + i], work);

			others |= i && by != first;
			if (by == NONE || !i)
				first = by;
			if (by == NONE)
				break;
		}
		if (first != NONE)
			cover_warn(policy, rule, &rules[first], others, problems);
	}
}

/* Do rules say of some address and port of the pattern that it may be reached past the inspector? */
static bool goes_past(const struct policy *policy, const struct pattern *pattern, const struct pattern *read)
{
	const struct rule *rule = &policy->rules[pattern->rule];
	uint16_t first = pattern->inspected ? 1 : pattern->first_port;
	uint16_t last = pattern->inspected ? UINT16_MAX : pattern->last_port;

	if (rule->action == ACTION_DENY || (pattern->inspected && rule->inspect))
		return false;
	return pattern->protocols & read->protocols && first <= read->last_port && last >= read->first_port;
}

static bool read_is_of_use(const struct policy *policy, const struct pattern *read, size_t *work)
{
	for (size_t n = 0; n < policy->nets->n && *work; n++) {
		const struct net_node *node = &policy->nets->nodes[n];
		uint8_t bits = node->bits < read->bits ? node->bits : read->bits;

		--*work;
		if (node->v4 != read->v4 || !net_holds(&node->addr, bits, &read->addr))
			continue;
		for (uint32_t i = 0; i < node->n_patterns && *work; i++, --*work)
			if (goes_past(policy, &policy->patterns[node->patterns[i]], read))
				return true;
	}
	return !*work;
}

/* The list opens nothing by itself. */
static void read_only_check(const struct policy *policy, struct problems *problems, size_t *work)
{
	for (uint32_t i = 0; i < policy->read_only.n_patterns; i++) {
		const struct pattern *read = &policy->patterns[policy->read_only.pattern + i];

		if (!read_is_of_use(policy, read, work))
			problem_add(problems, true, policy->files[read->at.file], read->at.line, read->at.column,
				    "never used: no rule allows such an address and port past the inspector");
	}
}

void policy_check_cover(const struct policy *policy, struct problems *problems)
{
	size_t work = NP_COVER_WORK;

	rules_check(policy, policy->rules, policy->n_rules, problems, &work);
	rules_check(policy, policy->full, policy->n_full, problems, &work);
	read_only_check(policy, problems, &work);
}
