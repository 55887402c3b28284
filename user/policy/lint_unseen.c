/* SPDX-License-Identifier: MIT */
/* Grants of what nobody can look at, or would not, below a deny that looks at requests: for those who write both. decide.h
 * says what becomes of them. A warning, so it may miss some: work is bounded. */
#include <string.h>

#include "policy/compile.h"
#include "policy/net.h"
#include "vocab/limits.h"

struct pair {
	const struct policy *policy;
	const struct rule *deny, *grant;
	const struct pattern *denied, *granted;
};

/* The last of the first len bytes' labels, and how many bytes stand in front of it. */
static const char *label_last(const char *name, size_t len, size_t *ret_len, size_t *ret_rest)
{
	const char *dot = memrchr(name, '.', len), *label = dot ? dot + 1 : name;

	*ret_len = (size_t)(name + len - label);
	*ret_rest = dot ? (size_t)(dot - name) : 0;
	return label;
}

/* Is there a name that both patterns match? */
static bool names_meet(const char *a, const char *b)
{
	size_t a_len = strlen(a), b_len = strlen(b);

	while (a_len && b_len) {
		size_t x_len, y_len;
		const char *x = label_last(a, a_len, &x_len, &a_len), *y = label_last(b, b_len, &y_len, &b_len);

		if ((x_len == 2 && !memcmp(x, "**", 2)) || (y_len == 2 && !memcmp(y, "**", 2)))
			return true;
		if (*x != '*' && *y != '*' && (x_len != y_len || memcmp(x, y, x_len) != 0))
			return false;
	}
	/* A dot in front leaves open what stands there, and whether anything does. */
	return (!a_len && *a == '.') || (!b_len && *b == '.') || (!a_len && !b_len);
}

/* A name may lead to any address. */
static bool destinations_meet(const struct pattern *denied, const struct pattern *granted)
{
	uint8_t bits = denied->bits < granted->bits ? denied->bits : granted->bits;

	if (granted->kind == PATTERN_NAME)
		return denied->kind == PATTERN_NET || names_meet(denied->name, granted->name);
	return denied->kind == PATTERN_NET && denied->v4 == granted->v4 &&
	       net_holds(&denied->addr, bits, &granted->addr);
}

/* Do both speak of a port where requests are seen (or where they are not)? */
static bool ports_meet(const struct pair *p, bool seen)
{
	uint16_t first = p->denied->first_port, last = p->denied->last_port;
	size_t ports, inspected = 0;

	if (p->granted->inspected)
		return seen;
	if (!seen && p->denied->protocols & p->granted->protocols & PATTERN_UDP && p->granted->kind == PATTERN_NET)
		return first <= p->granted->last_port && last >= p->granted->first_port;
	if (!(p->denied->protocols & p->granted->protocols & PATTERN_TCP))
		return false;
	first = first > p->granted->first_port ? first : p->granted->first_port;
	last = last < p->granted->last_port ? last : p->granted->last_port;
	if (first > last)
		return false;
	ports = (size_t)last - first + 1;
	for (size_t i = 0; i < p->policy->n_inspect_ports; i++)
		inspected += p->policy->inspect_ports[i] >= first && p->policy->inspect_ports[i] <= last;
	return seen ? inspected > 0 : ports > inspected + (first <= 53 && last >= 53); /* the DNS gate's */
}

static bool pair_warns(const struct pair *p, struct problems *problems)
{
	const bool refused = ports_meet(p, false);
	const struct rule *rule = p->grant;
	char place[PLACE_TEXT_SIZE];

	if (!refused && (rule->inspect || !ports_meet(p, true)))
		return false;
	place_format(p->policy, &p->deny->at, place);
	problem_point(problem_add(problems, true, p->policy->files[rule->at.file], rule->at.line, rule->at.column,
				  refused ? "connections that %s (%.120s) could match are refused, for that deny "
					    "depends on requests, and nobody sees them on these ports; give the deny "
					    "inspected ports only, or put this rule above it"
					  : "connections that %s (%.120s) could match are inspected in spite of "
					    "\"inspect: false\", for that deny depends on requests; narrow the deny, "
					    "or put this rule above it",
				  place, p->deny->text),
		      p->policy->files[p->deny->at.file], p->deny->at.line);
	return true;
}

/* True when there was something to warn of. */
static bool rules_compare(struct pair *p, size_t *work, struct problems *problems)
{
	const struct pattern *patterns = p->policy->patterns;

	if (!(p->deny->levels & p->grant->levels))
		return false;
	for (uint32_t i = 0; i < p->deny->n_patterns; i++)
		for (uint32_t k = 0; k < p->grant->n_patterns && *work; k++, --*work) {
			p->denied = &patterns[p->deny->pattern + i];
			p->granted = &patterns[p->grant->pattern + k];
			if (destinations_meet(p->denied, p->granted) && pair_warns(p, problems))
				return true;
		}
	return false;
}

void policy_check_unseen(const struct policy *policy, struct problems *problems)
{
	size_t work = NP_COVER_WORK;

	for (size_t g = 1; g < policy->n_rules; g++) {
		struct pair p = { .policy = policy, .grant = &policy->rules[g] };

		if (p.grant->action == ACTION_DENY)
			continue;
		for (size_t d = 0; d < g && work; d++, work--) {
			p.deny = &policy->rules[d];
			if (p.deny->action == ACTION_DENY && rule_asks_request(p.deny) &&
			    rules_compare(&p, &work, problems))
				break;
		}
	}
}
