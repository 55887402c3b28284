/* SPDX-License-Identifier: MIT */
#include "policy/near_miss.h"

#include <stdio.h>
#include <string.h>

#include "policy/name_table.h"
#include "policy/suggest.h"
#include "wire/hostname.h"

struct looking {
	const struct policy *policy;
	const struct facts *facts;
	const char *wanted; /* the pattern, as it is written */
	enum near_kind kind;
	struct near_miss *list;
	size_t n;
};

static bool rule_counts(const struct looking *l, const struct rule *rule)
{
	return rule->action != ACTION_DENY && rule->levels & 1u << l->facts->rung.level &&
	       rule_is_for(rule, l->facts->session);
}

static void near_put(struct looking *l, const struct rule *rule, const struct pattern *pattern)
{
	for (size_t i = 0; i < l->n; i++)
		if (!strcmp(l->list[i].pattern->name, pattern->name))
			return;
	if (l->n < NEAR_MISSES_MAX)
		l->list[l->n++] = (struct near_miss){ rule, pattern, l->kind };
}

static bool near_visit(void *ctx, const struct target *targets, size_t n)
{
	struct looking *l = ctx;

	for (size_t i = 0; i < n && l->n < NEAR_MISSES_MAX; i++) {
		const struct rule *rule = &l->policy->rules[targets[i].rule];
		const struct pattern *pattern = &l->policy->patterns[targets[i].pattern];

		if (rule_counts(l, rule) && !strcmp(pattern->name, l->wanted))
			near_put(l, rule, pattern);
	}
	return l->n < NEAR_MISSES_MAX;
}

static void near_look(struct looking *l, enum near_kind kind, const char *stars, const char *domain)
{
	char wanted[NAME_SIZE + 4];

	snprintf(wanted, sizeof(wanted), "%s%s", stars, domain);
	l->kind = kind;
	l->wanted = wanted;
	name_table_visit(l->policy->names, wanted, near_visit, l);
}

static void words_look(struct looking *l)
{
	l->kind = NEAR_WORD;
	for (size_t i = 0; i < l->policy->n_rules; i++) {
		const struct rule *rule = &l->policy->rules[i];

		for (uint32_t k = 0; rule_counts(l, rule) && k < rule->n_patterns; k++) {
			const struct pattern *pattern = &l->policy->patterns[rule->pattern + k];
			struct suggestion suggestion = { .text = l->facts->name };

			if (pattern->kind != PATTERN_NAME || pattern_is_wide(pattern) ||
			    !strcmp(pattern->name, l->facts->name))
				continue;
			suggestion_offer(&suggestion, pattern->name);
			if (suggestion.best)
				near_put(l, rule, pattern);
		}
	}
}

size_t policy_near_misses(const struct policy *policy, const struct facts *facts, bool words,
			  struct near_miss ret[static NEAR_MISSES_MAX])
{
	struct looking l = { .policy = policy, .facts = facts, .list = ret };
	const char *domain = facts->name;

	if (!domain || facts->rung.mode != NP_PROXIED || policy_decide(policy, facts).reason != NP_R_NOT_IN_POLICY)
		return 0;
	near_look(&l, NEAR_DOMAIN, "*.", domain);
	near_look(&l, NEAR_DOMAIN, "**.", domain);
	/* Of top-level domains nobody means all that is below. */
	for (unsigned above = 1; (domain = strchr(domain, '.')) && strchr(++domain, '.'); above++) {
		near_look(&l, NEAR_BELOW, "", domain);
		if (above > 1)
			near_look(&l, NEAR_DEEPER, "*.", domain);
	}
	if (words && !l.n)
		words_look(&l);
	return l.n;
}

void near_miss_text(const struct near_miss *near, const char *name, char text[static NEAR_TEXT_SIZE])
{
	const char *pattern = near->pattern->name, *domain = pattern + strspn(pattern, "*.");

	switch (near->kind) {
	case NEAR_DOMAIN:
		snprintf(text, NEAR_TEXT_SIZE, "\"%s\" does not cover \"%s\" itself; \".%s\" does", pattern, name,
			 domain);
		return;
	case NEAR_BELOW:
		snprintf(text, NEAR_TEXT_SIZE, "it is for \"%s\" alone; \".%s\" covers what is below it, too", pattern,
			 domain);
		return;
	case NEAR_DEEPER:
		snprintf(text, NEAR_TEXT_SIZE, "\"*\" stands for one label; \".%s\" covers everything below", domain);
		return;
	case NEAR_WORD:
		snprintf(text, NEAR_TEXT_SIZE, "\"%s\" is written almost like \"%s\"", pattern, name);
		return;
	}
}
