/* SPDX-License-Identifier: MIT */
/* Grants that open less than their author thinks: nothing at all, or everything below a domain but not the domain. */
#include <stdio.h>
#include <string.h>

#include "policy/compile.h"
#include "policy/name_table.h"
#include "wire/hostname.h"

static bool found_any(void *ctx, const struct target *targets, size_t n)
{
	(void)targets;
	*(bool *)ctx |= n > 0;
	return false;
}

/* Of "*.example.org" and "**.example.org", the domain that it is below; NULL for every other pattern, and for top-level
 * domains, which are no hosts. */
static const char *domain_below(const char *name)
{
	const char *domain = name + strspn(name, "*");

	if (domain == name || *domain != '.' || strchr(domain, '*') || !strchr(domain + 1, '.'))
		return NULL;
	return domain + 1;
}

/* "host_loopback: [11434]" for a pattern that is about one port, "host_loopback" for others. */
static void loopback_text(const struct pattern *pattern, char text[static 32])
{
	if (pattern->first_port && pattern->first_port == pattern->last_port)
		snprintf(text, 32, "host_loopback: [%u]", pattern->first_port);
	else
		snprintf(text, 32, "host_loopback");
}

/* A list that several rules use is reported once. */
static bool is_reported(const struct problems *problems, const char *file, const struct place *at)
{
	for (size_t i = 0; i < problems->count; i++)
		if (problems->items[i].warning && problems->items[i].line == at->line &&
		    problems->items[i].column == at->column && !strcmp(problems->items[i].file, file))
			return true;
	return false;
}

static void pattern_check(const struct policy *policy, const struct pattern *pattern, struct problems *problems)
{
	const char *file = policy->files[pattern->at.file], *domain;
	bool covered = false;
	char key[32];

	if (is_reported(problems, file, &pattern->at))
		return;
	if (pattern->inspected && !policy->n_inspect_ports) {
		problem_add(problems, true, file, pattern->at.line, pattern->at.column,
			    "it opens nothing: without a port it is about \"inspect_ports\", and there are none");
		return;
	}
	if (pattern->kind != PATTERN_NAME)
		return;
	if (name_is_localhost(pattern->name)) {
		loopback_text(pattern, key);
		problem_add(problems, true, file, pattern->at.line, pattern->at.column,
			    "\"%s\" opens nothing: rules do not reach services of this host; \"%s\" does",
			    pattern->name, key);
		return;
	}
	domain = domain_below(pattern->name);
	if (!domain)
		return;
	name_table_visit(policy->names, domain, found_any, &covered);
	if (!covered)
		problem_add(problems, true, file, pattern->at.line, pattern->at.column,
			    "\"%s\" does not cover \"%s\" itself, and no other rule speaks of that; \".%s\" is both",
			    pattern->name, domain, domain);
}

void policy_check_hosts(const struct policy *policy, struct problems *problems)
{
	for (size_t i = 0; i < policy->n_rules && problems->warnings < NP_POLICY_PROBLEMS; i++) {
		const struct rule *rule = &policy->rules[i];

		if (rule->action == ACTION_DENY)
			continue;
		for (uint32_t k = 0; k < rule->n_patterns && problems->warnings < NP_POLICY_PROBLEMS; k++)
			pattern_check(policy, &policy->patterns[rule->pattern + k], problems);
	}
}
