/* SPDX-License-Identifier: MIT */
#include "policy/name_reachable.h"

#include <stdio.h>
#include <string.h>

#include "base/chars.h"
#include "base/cleanup.h"
#include "policy/decide.h"
#include "policy/name_table.h"
#include "wire/hostname.h"

#define DNS_PORT 53 /* no rule opens it: see decide.h */

struct may {
	const struct policy *policy;
	const char *session;
	uint8_t level;	     /* one bit */
	uint16_t low, high;  /* the outermost of inspect_ports */
	uint32_t denied[3];  /* the first rule that denies the whole of each way; UINT32_MAX: none */
	uint32_t all_denied; /* the last of these: nothing is granted behind it */
	unsigned ways;
};

enum { WAY_HTTP, WAY_TCP, WAY_UDP, WAY_COUNT };

static bool target_counts(const struct may *m, const struct target *t)
{
	return t->levels & m->level &&
	       (!(t->flags & TARGET_SESSIONS) || rule_is_for(&m->policy->rules[t->rule], m->session));
}

/* -- denies ------------------------------------------------------------------- */

static void way_deny(struct may *m, int way, uint32_t rule)
{
	if (rule < m->denied[way])
		m->denied[way] = rule;
}

static bool denies_visit(void *ctx, const struct target *targets, size_t n)
{
	struct may *m = ctx;

	for (size_t i = 0; i < n; i++) {
		const struct target *t = &targets[i];
		bool all = t->first_port <= 1 && t->last_port == UINT16_MAX;

		bool some = t->flags & TARGET_REQUEST;

		if (t->action != ACTION_DENY || !target_counts(m, t))
			continue;
		/* What only some requests meet takes nothing for certain where they are seen. */
		if (t->protocols & PATTERN_TCP && t->first_port <= m->low && t->last_port >= m->high && !some)
			way_deny(m, WAY_HTTP, t->rule);
		if (t->protocols & PATTERN_TCP && all)
			way_deny(m, WAY_TCP, t->rule);
		if (t->protocols & PATTERN_UDP && all)
			way_deny(m, WAY_UDP, t->rule);
		if (t->protocols == (PATTERN_TCP | PATTERN_UDP) && all && !some)
			break;
	}
	return true;
}

/* -- grants ------------------------------------------------------------------- */

static bool holds_inspected(const struct policy *policy, const struct target *t)
{
	if (t->flags & TARGET_INSPECTED)
		return policy->n_inspect_ports > 0;
	for (size_t i = 0; i < policy->n_inspect_ports; i++)
		if (policy->inspect_ports[i] >= t->first_port && policy->inspect_ports[i] <= t->last_port)
			return true;
	return false;
}

/* A port that is neither inspected nor the DNS gate's? */
static bool holds_others(const struct policy *policy, const struct target *t)
{
	if (t->flags & TARGET_INSPECTED)
		return false;
	for (unsigned port = t->first_port; port <= t->last_port; port++)
		if (port != DNS_PORT && !policy_inspects(policy, (uint16_t)port))
			return true;
	return false;
}

static bool grants_visit(void *ctx, const struct target *targets, size_t n)
{
	struct may *m = ctx;

	for (size_t i = 0; i < n && m->ways != MAY_ALL && targets[i].rule < m->all_denied; i++) {
		const struct target *t = &targets[i];

		if (t->action == ACTION_DENY || !target_counts(m, t))
			continue;
		if (t->protocols & PATTERN_TCP && t->rule < m->denied[WAY_HTTP] && holds_inspected(m->policy, t))
			m->ways |= MAY_HTTP;
		if (t->protocols & PATTERN_TCP && t->rule < m->denied[WAY_TCP] && holds_others(m->policy, t))
			m->ways |= MAY_TCP;
		if (t->protocols & PATTERN_UDP && t->rule < m->denied[WAY_UDP] &&
		    (t->first_port != DNS_PORT || t->last_port != DNS_PORT))
			m->ways |= MAY_UDP;
	}
	return m->ways != MAY_ALL;
}

/* -- the whole ------------------------------------------------------------------ */

static void may_init(struct may *m, const struct policy *policy, const struct np_rung *rung, const char *session)
{
	*m = (struct may){
		.policy = policy,
		.session = session,
		.level = (uint8_t)(1u << rung->level),
		.low = UINT16_MAX,
		.denied = { UINT32_MAX, UINT32_MAX, UINT32_MAX },
	};
	for (size_t i = 0; i < policy->n_inspect_ports; i++) {
		m->low = policy->inspect_ports[i] < m->low ? policy->inspect_ports[i] : m->low;
		m->high = policy->inspect_ports[i] > m->high ? policy->inspect_ports[i] : m->high;
	}
}

/* What rules grant; m has the denies afterwards. */
static unsigned rules_may(struct may *m, const char *name)
{
	name_table_visit(m->policy->names, name, denies_visit, m);
	for (int way = 0; way < WAY_COUNT; way++)
		m->all_denied = m->denied[way] > m->all_denied ? m->denied[way] : m->all_denied;
	name_table_visit(m->policy->names, name, grants_visit, m);
	return m->ways;
}

static bool rules_know(const struct policy *policy, const struct np_rung *rung, const char *session, const char *name)
{
	struct may m;

	may_init(&m, policy, rung, session);
	return rules_may(&m, name) != 0;
}

/* A single label, or what no resolver of the internet knows. */
static bool is_nowhere(const char *name)
{
	static const char *const nowhere[] = { "arpa", "invalid", "local", "onion" };
	const char *last = strrchr(name, '.');

	return !last || WORD_IS_ONE_OF(last + 1, nowhere);
}

#define SEARCH_LABELS 6 /* of a domain in a search list */
bool policy_default_knows(const struct policy *policy, const struct np_rung *rung, const char *session,
			  const char *name)
{
	char prefix[NAME_SIZE];
	char *dot;

	if (rules_know(policy, rung, session, name))
		return true;
	if (is_nowhere(name))
		return false;
	snprintf(prefix, sizeof(prefix), "%s", name);
	for (unsigned i = 0; i < SEARCH_LABELS && (dot = strrchr(prefix, '.')); i++) {
		*dot = '\0';
		if (rules_know(policy, rung, session, prefix))
			return false;
	}
	return true;
}

unsigned policy_may_name(const struct policy *policy, const struct np_rung *rung, const char *session, const char *name)
{
	struct may m;

	if (rung->mode == NP_FULL)
		return MAY_ALL;
	if (rung->mode != NP_PROXIED || !*name)
		return 0;
	may_init(&m, policy, rung, session);
	rules_may(&m, name);
	if (policy->fallback[rung->level].action != ACTION_DENY && policy_default_knows(policy, rung, session, name))
		for (int way = 0; way < WAY_UDP; way++)
			m.ways |= m.denied[way] == UINT32_MAX ? 1u << way : 0;
	return m.ways;
}

struct denying {
	uint32_t rule, pattern;
};

static bool denying_visit(void *ctx, const struct target *targets, size_t n)
{
	struct denying *d = ctx;

	for (size_t i = 0; i < n; i++)
		if (targets[i].rule == d->rule)
			d->pattern = targets[i].pattern;
	return d->pattern == UINT32_MAX;
}

const struct pattern *policy_denies_name(const struct policy *policy, const struct np_rung *rung, const char *session,
					 const char *name)
{
	struct denying d = { UINT32_MAX, UINT32_MAX };
	struct may m;

	may_init(&m, policy, rung, session);
	name_table_visit(policy->names, name, denies_visit, &m);
	for (int way = 0; way < WAY_COUNT; way++)
		d.rule = m.denied[way] < d.rule ? m.denied[way] : d.rule;
	if (d.rule < policy->n_rules)
		name_table_visit(policy->names, name, denying_visit, &d);
	return d.pattern != UINT32_MAX ? &policy->patterns[d.pattern] : NULL;
}
