/* SPDX-License-Identifier: MIT */
#include "policy/decide.h"

#include <string.h>

#include "addr.h"
#include "policy/name_reachable.h"
#include "policy/grant.h"
#include "policy/name_table.h"
#include "policy/nets.h"
#include "wire/dns.h"
#include "wire/url_path.h"
#include "vocab/limits.h"

/* For the first rule that matches. */
struct search {
	const struct policy *policy;
	const struct facts *facts;
	const struct rule *rules;
	uint8_t levels; /* one bit; all of them in FULL, whose rules hold at every level */
	bool inspected; /* TCP to one of inspect_ports */
	bool alias;	/* not the name is looked for, but one that it stands for: for denies */
	bool two;	/* an address has a say beside the name: what is granted is granted to the name alone */
	bool dns;	/* port 53 in PROXIED, which only denies speak of: the rest is the DNS gate's */

	char *path; /* normalised, once a rule asks for it */
	enum { PATH_RAW, PATH_NORMAL, PATH_BAD } path_state;

	struct target best; /* rule UINT32_MAX: none yet */
	bool bad_path;	    /* best met one */
	uint8_t *trace;	    /* see policy_trace(); NULL: nobody wants to know */
	uint32_t passed;    /* the first deny that was passed over for want of a request; UINT32_MAX: none */
};

enum fit { FIT_NO, FIT_YES, FIT_BAD_PATH };

static void trace_note(const struct search *s, uint32_t rule, enum misfit misfit)
{
	if (s->trace && s->trace[rule] < misfit) /* of several patterns the one that came furthest counts */
		s->trace[rule] = (uint8_t)misfit;
}

static enum fit fit_not(const struct search *s, uint32_t rule, enum misfit misfit)
{
	trace_note(s, rule, misfit);
	return FIT_NO;
}

bool list_has(const char *const *list, const char *word)
{
	for (; list && *list; list++)
		if (strcmp(*list, word) == 0)
			return true;
	return false;
}

bool policy_inspects(const struct policy *policy, uint16_t port)
{
	for (size_t i = 0; i < policy->n_inspect_ports; i++)
		if (policy->inspect_ports[i] == port)
			return true;
	return false;
}

bool sessions_match(const char *const *globs, const char *session)
{
	for (; *globs; globs++)
		if (path_matches(*globs, session))
			return true;
	return false;
}

bool rule_is_for(const struct rule *rule, const char *session)
{
	if (!rule->sessions)
		return true;
	if (!session)
		return rule->action == ACTION_DENY;
	return sessions_match(rule->sessions, session);
}

static enum fit paths_fit(struct search *s, const struct rule *rule)
{
	const char *target = s->facts->path;

	if (s->path_state == PATH_RAW)
		s->path_state = target && path_normalise(target, strlen(target), s->path) == 0 ? PATH_NORMAL : PATH_BAD;
	if (s->path_state == PATH_BAD)
		return FIT_BAD_PATH;
	for (const char *const *glob = rule->paths; *glob; glob++)
		if (path_matches(*glob, s->path))
			return FIT_YES;
	return fit_not(s, rule->number, MISFIT_PATH);
}

static bool headers_fit(const struct rule *rule, const struct facts *facts)
{
	for (const char *const *header = rule->headers; header && *header; header++)
		if (!list_has(facts->headers, *header))
			return false;
	return true;
}

static enum fit request_fits(struct search *s, const struct rule *rule)
{
	const struct facts *facts = s->facts;

	/* Where nobody sees requests an allow of some of them is of no use, and a deny of some has to refuse them all. */
	if (!s->inspected)
		return rule->action == ACTION_DENY ? FIT_YES : fit_not(s, rule->number, MISFIT_PORT);
	if (!facts->method) {
		if (rule->action != ACTION_DENY)
			return FIT_YES;
		if (rule->number < s->passed)
			s->passed = rule->number;
		return fit_not(s, rule->number, MISFIT_REQUEST);
	}
	if (rule->methods && !list_has(rule->methods, facts->method))
		return fit_not(s, rule->number, MISFIT_METHOD);
	if (!headers_fit(rule, facts)) {
		bool path = !s->trace || !rule->paths || paths_fit(s, rule) == FIT_YES;

		return fit_not(s, rule->number, path ? MISFIT_HEADER : MISFIT_PATH);
	}
	return rule->paths ? paths_fit(s, rule) : FIT_YES;
}

static enum fit target_fits(struct search *s, const struct target *target)
{
	const struct facts *facts = s->facts;

	if (!(target->levels & s->levels))
		return fit_not(s, target->rule, MISFIT_LEVEL);
	if (target->flags & TARGET_SESSIONS && !rule_is_for(&s->rules[target->rule], facts->session))
		return fit_not(s, target->rule, MISFIT_SESSION);
	if (!(target->protocols & facts->protocol) || (s->dns && target->action != ACTION_DENY) ||
	    (target->flags & TARGET_INSPECTED ? !s->inspected
					      : facts->port < target->first_port || facts->port > target->last_port))
		return fit_not(s, target->rule, MISFIT_PORT);
	return target->flags & TARGET_REQUEST ? request_fits(s, &s->rules[target->rule]) : FIT_YES;
}

static void target_consider(struct search *s, const struct target *target)
{
	enum fit fit = target_fits(s, target);

	if (fit == FIT_NO)
		return;
	trace_note(s, target->rule, fit == FIT_YES ? MISFIT_NONE : MISFIT_PATH);
	s->best = *target;
	s->bad_path = fit == FIT_BAD_PATH;
}

static bool names_consider(void *ctx, const struct target *targets, size_t n)
{
	struct search *s = ctx;

	for (size_t i = 0; i < n && targets[i].rule < s->best.rule; i++)
		if (!s->alias || targets[i].action == ACTION_DENY)
			target_consider(s, &targets[i]);
	return s->best.rule != 0;
}

/* From the narrowest range outwards. In a metadata range only denies come in from outside. */
static void nets_consider(struct search *s, const struct net_node *from, bool denies_only)
{
	const struct policy *policy = s->policy;

	for (const struct net_node *node = from; node; node = node->up)
		for (uint32_t i = 0; i < node->n_patterns; i++) {
			uint32_t index = node->patterns[i];
			const struct rule *rule = &s->rules[policy->patterns[index].rule];
			struct target target;

			if (rule->number >= s->best.rule)
				break;
			if (rule->action != ACTION_DENY && denies_only)
				continue;
			if (rule->action != ACTION_DENY && from->metadata && !node->metadata) {
				trace_note(s, rule->number, MISFIT_METADATA);
				continue;
			}
			target = target_make(policy, rule, index);
			target_consider(s, &target);
		}
}

/* -- from the rule to the verdict ----------------------------------------------- */

static struct verdict verdict_deny(enum np_reason reason, const struct rule *rule)
{
	return (struct verdict){ .action = ACTION_DENY, .reason = reason, .rule = rule };
}

static struct verdict verdict_default(const struct search *s)
{
	enum action action = s->policy->fallback[s->facts->rung.level].action;
	bool by_name = s->facts->name && s->facts->protocol == PATTERN_TCP && !s->dns;

	/* Past the inspector the kernel decides, by rules alone. */
	if (action == ACTION_DENY || !(s->inspected || by_name) ||
	    (s->facts->name && !policy_default_knows(s->policy, &s->facts->rung, s->facts->session, s->facts->name)))
		return verdict_deny(NP_R_NOT_IN_POLICY, NULL);
	return (struct verdict){
		.action = action,
		.reason = action == ACTION_ASK ? NP_R_NEEDS_APPROVAL : NP_R_DEFAULT_ALLOWS,
		.inspect = s->inspected,
		.websocket = true,
		.max_body = UINT64_MAX,
	};
}

static struct verdict verdict_open(const struct rule *rule)
{
	return (struct verdict){
		.action = ACTION_ALLOW,
		.reason = rule ? NP_R_RULE_ALLOWS : NP_R_OPEN_MODE,
		.rule = rule,
		.websocket = true,
		.max_body = UINT64_MAX,
	};
}

static struct verdict verdict_of_best(const struct search *s)
{
	const struct target *best = &s->best;
	const struct rule *rule = &s->rules[best->rule];
	struct verdict verdict = verdict_open(rule);

	if (s->bad_path)
		return verdict_deny(NP_R_BAD_PATH, rule);
	if (best->action == ACTION_DENY)
		return verdict_deny(NP_R_RULE_DENIES, rule);
	/* A deny above that looks at requests holds for this connection too: inspect: false must not hide them from it. */
	if (s->inspected && (best->flags & TARGET_INSPECT || s->passed < best->rule)) {
		verdict.inspect = true;
		verdict.websocket = best->flags & TARGET_WEBSOCKET;
		if (best->flags & TARGET_BOUNDED)
			verdict.max_body = rule->max_body;
		if (best->flags & TARGET_MORE) {
			verdict.capture = rule->capture;
			verdict.timeouts = rule->timeouts;
		}
	}
	if (verdict.inspect && !(best->flags & TARGET_INSPECT))
		verdict.looks = &s->rules[s->passed];
	if (s->facts->method && s->facts->websocket && !verdict.websocket)
		return verdict_deny(NP_R_NO_UPGRADE, rule);
	if (s->facts->method && s->facts->body > verdict.max_body)
		return verdict_deny(NP_R_BODY_TOO_LARGE, rule);
	/* Whom to ask about a request is known once there is one. */
	if (best->action == ACTION_ALLOW || (best->flags & TARGET_REQUEST && !s->facts->method))
		return verdict;
	verdict.action = (enum action)best->action;
	verdict.reason = best->action == ACTION_ASK ? NP_R_NEEDS_APPROVAL : NP_R_NEEDS_DECIDER;
	return verdict;
}

/* -- lookups ---------------------------------------------------------------------- */

static enum misfit query_misfit(const struct search *s, const struct target *t)
{
	if (!(t->levels & s->levels))
		return MISFIT_LEVEL;
	if (!rule_is_for(&s->rules[t->rule], s->facts->session))
		return MISFIT_SESSION;
	if (t->action == ACTION_DENY)
		return target_is_all(t) ? MISFIT_NONE : t->flags & TARGET_REQUEST ? MISFIT_REQUEST : MISFIT_PORT;
	return t->flags & TARGET_DNS && s->rules[t->rule].dns & dns_record_bit(s->facts->query) ? MISFIT_NONE
												: MISFIT_QUERY;
}

static bool queries_consider(void *ctx, const struct target *targets, size_t n)
{
	struct search *s = ctx;

	for (size_t i = 0; i < n && targets[i].rule < s->best.rule; i++) {
		enum misfit misfit = query_misfit(s, &targets[i]);

		trace_note(s, targets[i].rule, misfit);
		if (misfit == MISFIT_NONE)
			s->best = targets[i];
	}
	return s->best.rule != 0;
}

static struct verdict decide_query(struct search *s)
{
	if (s->facts->name)
		name_table_visit(s->policy->names, s->facts->name, queries_consider, s);
	if (s->best.rule == UINT32_MAX)
		return verdict_deny(NP_R_NOT_IN_POLICY, NULL);
	return s->best.action == ACTION_DENY ? verdict_deny(NP_R_RULE_DENIES, &s->rules[s->best.rule])
					     : verdict_open(&s->rules[s->best.rule]);
}

/* -- modes ---------------------------------------------------------------------- */

static void search_restart(struct search *s)
{
	s->best.rule = s->passed = UINT32_MAX;
	s->bad_path = false;
}

static const struct net_node *nets_find(const struct net_table *nets, const struct facts *facts)
{
	struct np_addr addr;

	if (!facts->has_addr)
		return NULL;
	addr = np_addr_carried(&facts->addr);
	return net_table_find(nets, &addr);
}

static struct verdict judge_address(struct search *s, const struct net_node *node)
{
	nets_consider(s, node, false);
	if (s->best.rule != UINT32_MAX)
		return verdict_of_best(s);
	return node && node->metadata ? verdict_deny(NP_R_METADATA, NULL) : verdict_default(s);
}

static struct verdict decide_full(struct search *s)
{
	const struct net_node *node = nets_find(s->policy->full_nets, s->facts);

	if (s->facts->query)
		return verdict_open(NULL);
	s->rules = s->policy->full;
	s->levels = UINT8_MAX;
	nets_consider(s, node, false);
	if (s->best.rule == UINT32_MAX)
		return node && node->metadata ? verdict_deny(NP_R_METADATA, NULL) : verdict_open(NULL);
	if (s->best.action == ACTION_DENY)
		return verdict_deny(NP_R_RULE_DENIES, &s->rules[s->best.rule]);
	return verdict_open(&s->rules[s->best.rule]);
}

static struct verdict decide_proxied(struct search *s)
{
	const struct facts *facts = s->facts;
	const struct net_node *node = nets_find(s->policy->nets, facts);
	struct verdict metadata = { .action = ACTION_ALLOW }, verdict;

	s->rules = s->policy->rules;
	s->levels = (uint8_t)(1u << facts->rung.level);
	if (facts->query)
		return decide_query(s);
	s->dns = facts->port == 53;
	if (!facts->name)
		return judge_address(s, node);
	/* A name that leads to a metadata address: both must be allowed. Who was asked about the name was not asked about that. */
	if (node && node->metadata) {
		metadata = judge_address(s, node);
		if (metadata.action == ACTION_DENY)
			return metadata;
		s->two = true;
		search_restart(s);
	}
	name_table_visit(s->policy->names, facts->name, names_consider, s);
	s->alias = true;
	for (const char *alias = facts->aliases; alias && *alias; alias += strlen(alias) + 1)
		name_table_visit(s->policy->names, alias, names_consider, s);
	nets_consider(s, node, true);
	verdict = s->best.rule != UINT32_MAX ? verdict_of_best(s) : verdict_default(s);
	return verdict.action != ACTION_DENY && metadata.action != ACTION_ALLOW ? metadata : verdict;
}

/* -- runs that may only read ------------------------------------------------------ */

/* A name that leads there does not count, for nobody knows that but whoever resolves it. */
static bool read_only_lists(const struct policy *policy, const struct facts *facts)
{
	struct search s = { .policy = policy, .facts = facts, .rules = &policy->read_only, .levels = UINT8_MAX };

	s.dns = facts->port == 53;
	search_restart(&s);
	if (!facts->name)
		nets_consider(&s, nets_find(policy->read_nets, facts), false);
	return s.best.rule != UINT32_MAX;
}

static void verdict_narrow(const struct search *s, struct verdict *verdict)
{
	const struct facts *facts = s->facts;

	/* A lookup is of a name that stands in the policy, and so it says nothing. */
	if (verdict->action == ACTION_DENY || facts->query || (!verdict->inspect && read_only_lists(s->policy, facts)))
		return;
	verdict->inspect = true;
	if (facts->method ? !facts_read(facts) : !s->inspected)
		*verdict = verdict_deny(NP_R_READ_ONLY, verdict->rule);
}

enum np_mode facts_mode(const struct policy *policy, const struct facts *facts)
{
	enum np_mode mode = policy->modes.of[facts->rung.level];

	return facts->rung.flags & NP_READ_ONLY && mode == NP_FULL ? NP_PROXIED : mode;
}

struct verdict policy_decide(const struct policy *policy, const struct facts *facts)
{
	return policy_trace(policy, facts, NULL);
}

struct verdict policy_trace(const struct policy *policy, const struct facts *facts, uint8_t *trace)
{
	char path[NP_PATH_MAX + 1];
	struct search s = { .policy = policy, .facts = facts, .path = path, .trace = trace };
	struct verdict verdict = verdict_deny(NP_R_MODE_NONE, NULL);
	const struct grant *grant;
	struct facts unseen;

	s.inspected = facts->protocol == PATTERN_TCP && policy_inspects(policy, facts->port);
	if (!s.inspected) { /* whatever the request is, it makes no difference there */
		unseen = *facts;
		unseen.method = NULL;
		s.facts = &unseen;
	}
	search_restart(&s);
	if (facts->rung.mode == NP_FULL && !(facts->rung.flags & NP_READ_ONLY))
		verdict = decide_full(&s);
	else if (facts->rung.mode == NP_FULL || facts->rung.mode == NP_PROXIED)
		verdict = decide_proxied(&s);
	if (facts->rung.flags & NP_READ_ONLY)
		verdict_narrow(&s, &verdict);
	if (verdict.rule && verdict.rule - s.rules == s.best.rule) /* its number, without a look at it: see target.h */
		verdict.pattern = &policy->patterns[s.best.pattern];
	grant = verdict.action == ACTION_ASK && !s.two ? grant_find(policy, s.facts, &verdict) : NULL;
	if (grant) {
		verdict.action = ACTION_ALLOW;
		verdict.reason = NP_R_APPROVED;
		verdict.rule = &grant->rule;
	}
	return verdict;
}
