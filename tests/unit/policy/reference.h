/* SPDX-License-Identifier: MIT */
/* Which rule matches, one at a time, the slow and plain way: none of it is shared with policy/decide.c, which is checked
 * against it. */
#pragma once

#include <string.h>

#include "addr.h"
#include "policy/decide.h"
#include "policy/net.h"
#include "vocab/limits.h"
#include "wire/dns.h"
#include "wire/url_path.h"

/* USER/SESSION: "*" is any run without a slash. */
static bool reference_session_matches(const char *glob, const char *session)
{
	if (*glob == '*')
		return reference_session_matches(glob + 1, session) ||
		       (*session && *session != '/' && reference_session_matches(glob, session + 1));
	return *glob == *session && (!*glob || reference_session_matches(glob + 1, session + 1));
}

static bool reference_session_fits(const struct rule *rule, const struct facts *facts)
{
	if (!rule->sessions)
		return true;
	if (!facts->session)
		return rule->action == ACTION_DENY;
	for (const char *const *glob = rule->sessions; *glob; glob++)
		if (reference_session_matches(*glob, facts->session))
			return true;
	return false;
}

/* Labels from the right: "*" is one, "**" all that are left, and at least one. */
static bool reference_name_matches(const char *pattern, size_t p, const char *name, size_t n)
{
	if (*pattern == '.') /* the name itself, or what ends in it, dot and all */
		return (n + 1 == p && memcmp(pattern + 1, name, n) == 0) ||
		       (n > p && memcmp(pattern, name + n - p, p) == 0);
	while (p && n) {
		const char *p_dot = memrchr(pattern, '.', p), *n_dot = memrchr(name, '.', n);
		const char *p_label = p_dot ? p_dot + 1 : pattern, *n_label = n_dot ? n_dot + 1 : name;
		size_t p_len = (size_t)(pattern + p - p_label), n_len = (size_t)(name + n - n_label);

		if (p_len == 2 && memcmp(p_label, "**", 2) == 0)
			return true;
		if (!(p_len == 1 && p_label[0] == '*') && (p_len != n_len || memcmp(p_label, n_label, n_len) != 0))
			return false;
		p = p_dot ? (size_t)(p_dot - pattern) : 0;
		n = n_dot ? (size_t)(n_dot - name) : 0;
	}
	return !p && !n;
}

static bool reference_goes_there(const struct pattern *pattern, const struct rule *rule, const struct facts *facts)
{
	struct np_addr addr;

	if (pattern->kind == PATTERN_NAME && (facts->rung.mode == NP_FULL || !facts->name))
		return false;
	if (pattern->kind == PATTERN_NAME) {
		const char *alias = rule->action == ACTION_DENY && !facts->query ? facts->aliases : NULL;

		if (reference_name_matches(pattern->name, strlen(pattern->name), facts->name, strlen(facts->name)))
			return true;
		for (; alias && *alias; alias += strlen(alias) + 1)
			if (reference_name_matches(pattern->name, strlen(pattern->name), alias, strlen(alias)))
				return true;
		return false;
	}
	if (!facts->has_addr || (facts->name && facts->rung.mode != NP_FULL && rule->action != ACTION_DENY))
		return false;
	addr = np_addr_carried(&facts->addr);
	return pattern->v4 == np_addr_is_v4(&addr) && net_holds(&pattern->addr, pattern->bits, &addr);
}

/* Does anybody see requests there? */
static bool reference_is_inspected(const struct policy *policy, const struct facts *facts)
{
	for (size_t i = 0; facts->protocol == PATTERN_TCP && i < policy->n_inspect_ports; i++)
		if (policy->inspect_ports[i] == facts->port)
			return true;
	return false;
}

static bool reference_port_fits(const struct policy *policy, const struct pattern *pattern, const struct rule *rule,
				const struct facts *facts)
{
	if (!(pattern->protocols & facts->protocol))
		return false;
	if (facts->port == 53 && facts->rung.mode != NP_FULL && rule->action != ACTION_DENY)
		return false; /* the DNS gate's */
	if (!pattern->inspected)
		return facts->port >= pattern->first_port && facts->port <= pattern->last_port;
	return reference_is_inspected(policy, facts);
}

static enum misfit reference_destination_misfit(const struct policy *policy, const struct rule *rule,
						const struct facts *facts)
{
	enum misfit misfit = MISFIT_DESTINATION;

	for (uint32_t i = 0; i < rule->n_patterns; i++) {
		const struct pattern *pattern = &policy->patterns[rule->pattern + i];

		if (!reference_goes_there(pattern, rule, facts))
			continue;
		if (reference_port_fits(policy, pattern, rule, facts))
			return MISFIT_NONE;
		misfit = MISFIT_PORT;
	}
	return misfit;
}

static bool reference_is_among(const char *word, const char *const *words)
{
	while (words && *words && strcmp(*words, word) != 0)
		words++;
	return words && *words;
}

static bool reference_path_fits(const struct rule *rule, const char *target)
{
	char path[NP_PATH_MAX + 1];

	if (!target || path_normalise(target, strlen(target), path) < 0)
		return false;
	for (const char *const *glob = rule->paths; *glob; glob++)
		if (path_matches(*glob, path))
			return true;
	return false;
}

/* Of a rule that is about the name: does it decide a lookup? */
static enum misfit reference_query_misfit(const struct rule *rule, const struct pattern *pattern, uint16_t type)
{
	if (rule->action != ACTION_DENY)
		return rule->dns & dns_record_bit(type) ? MISFIT_NONE : MISFIT_QUERY;
	if (rule_asks_request(rule))
		return MISFIT_REQUEST;
	return pattern->protocols == (PATTERN_TCP | PATTERN_UDP) && pattern->first_port == 1 &&
			       pattern->last_port == 65535
		       ? MISFIT_NONE
		       : MISFIT_PORT;
}

static enum misfit reference_query_misfits(const struct policy *policy, const struct rule *rule,
					   const struct facts *facts)
{
	enum misfit misfit = MISFIT_DESTINATION;

	for (uint32_t i = 0; misfit != MISFIT_NONE && i < rule->n_patterns; i++) {
		const struct pattern *pattern = &policy->patterns[rule->pattern + i];

		if (pattern->kind == PATTERN_NAME && reference_goes_there(pattern, rule, facts))
			misfit = reference_query_misfit(rule, pattern, facts->query);
	}
	return misfit;
}

static enum misfit reference_misfit(const struct policy *policy, const struct rule *rule, const struct facts *facts)
{
	enum misfit misfit;

	if (facts->rung.mode != NP_FULL && !(rule->levels & 1u << facts->rung.level))
		return MISFIT_LEVEL;
	misfit = facts->query ? reference_query_misfits(policy, rule, facts)
			      : reference_destination_misfit(policy, rule, facts);
	if (misfit != MISFIT_DESTINATION && !reference_session_fits(rule, facts))
		return MISFIT_SESSION;
	if (facts->query)
		return misfit;
	if (misfit != MISFIT_NONE || !rule_asks_request(rule))
		return misfit;
	if (!reference_is_inspected(policy, facts))
		return rule->action == ACTION_DENY ? MISFIT_NONE : MISFIT_PORT;
	if (!facts->method)
		return rule->action == ACTION_DENY ? MISFIT_REQUEST : MISFIT_NONE;
	if (rule->methods && !reference_is_among(facts->method, rule->methods))
		return MISFIT_METHOD;
	if (rule->paths && !reference_path_fits(rule, facts->path))
		return MISFIT_PATH;
	for (const char *const *header = rule->headers; header && *header; header++)
		if (!reference_is_among(*header, facts->headers))
			return MISFIT_HEADER;
	return MISFIT_NONE;
}

/* Of the rules that were passed over, the trace of a decision says the same. */
static inline bool reference_agrees(const struct policy *policy, const struct facts *facts,
				    const struct verdict *verdict, const uint8_t *trace)
{
	const struct rule *rules = facts->rung.mode == NP_FULL ? policy->full : policy->rules;
	size_t n = verdict->rule		 ? verdict->rule->number
		   : facts->rung.mode == NP_FULL ? policy->n_full
						 : policy->n_rules;

	for (size_t i = 0; i < n; i++)
		if (trace_misfit(trace, &rules[i], facts) != reference_misfit(policy, &rules[i], facts))
			return false;
	return true;
}
