/* SPDX-License-Identifier: MIT */
#include "policy/outcome.h"

#include <stdio.h>
#include <string.h>

#include "addr.h"
#include "vocab/words.h"
#include "synth.h"
#include "wire/hostname.h"

#define DNS_PORT 53

/* -- by which way ------------------------------------------------------------------- */

/* Of attempts that come to the inspector: the others pass the gate, and go as they are addressed. */
static const struct upstream_proxy *facts_proxy(const struct policy *policy, const struct facts *facts)
{
	struct host host = { .is_addr = !facts->name, .addr = facts->addr };

	if (facts->query || facts->protocol != PATTERN_TCP ||
	    (facts->rung.mode == NP_FULL && !(facts->rung.flags & NP_READ_ONLY)) ||
	    (!facts->name && !policy_inspects(policy, facts->port)))
		return NULL;
	if (facts->name)
		snprintf(host.name, sizeof(host.name), "%s", facts->name);
	return policy_proxy(policy, &host, facts->port);
}

const char *outcome_proxy(const struct policy *policy, const struct facts *facts, const struct verdict *verdict)
{
	const struct upstream_proxy *proxy = verdict->action == ACTION_ALLOW ? facts_proxy(policy, facts) : NULL;

	return proxy ? proxy->url : NULL;
}

/* -- what is decided beside the rules --------------------------------------------- */

static struct verdict outcome_refuse(enum np_reason reason, const struct rule *rule)
{
	return (struct verdict){ .action = ACTION_DENY, .reason = reason, .rule = rule };
}

/* It stays on this host. */
static bool goes_here(const struct facts *facts, const struct np_addr *addr)
{
	return facts->local || np_addr_is_loopback(addr) || np_addr_is_any(addr);
}

static struct verdict outcome_here(const struct policy *policy, const struct facts *facts)
{
	bool listed = facts->rung.mode == NP_FULL && facts->port == DNS_PORT;

	for (size_t i = 0; i < policy->n_host_loopback; i++)
		listed |= policy->host_loopback[i] == facts->port;
	/* Nobody would see what a run that may only read writes there. */
	if (!listed || facts->rung.flags & NP_READ_ONLY || facts->rung.mode == NP_NONE)
		return outcome_refuse(facts->rung.mode == NP_NONE ? NP_R_MODE_NONE : NP_R_HOST_LOOPBACK, NULL);
	return (struct verdict){ .action = ACTION_ALLOW, .reason = NP_R_HOST_PORT, .max_body = UINT64_MAX };
}

/* The inspector does not dial it for a name, wherever that comes from. */
static bool leads_nowhere(const struct facts *facts, const struct np_addr *addr)
{
	return goes_here(facts, addr) || np_addr_is_many(addr) || np_addr_is_synthetic(&facts->addr) ||
	       (np_addr_is_v4(addr) && !addr->b[12]);
}

/* Does anybody see requests there? */
static bool facts_seen(const struct policy *policy, const struct facts *facts)
{
	return facts->protocol == PATTERN_TCP && policy_inspects(policy, facts->port);
}

/* Who could hold a connection to an address, and have somebody asked, meets it on inspected ports alone: the kernel refuses the others at once. */
static struct verdict outcome_of_address(const struct policy *policy, const struct facts *facts, struct verdict verdict)
{
	if (facts->has_addr && np_addr_is_synthetic(&facts->addr))
		return outcome_refuse(NP_R_NAME_FORGOTTEN, NULL);
	if ((verdict.action == ACTION_ASK || verdict.action == ACTION_DECIDE) && !facts_seen(policy, facts))
		verdict.action = ACTION_DENY;
	return verdict;
}

static struct verdict outcome_proxied(const struct policy *policy, const struct facts *facts,
				      const struct np_addr *addr, struct verdict verdict)
{
	if (verdict.action == ACTION_DENY)
		return verdict;
	if (facts->port == DNS_PORT)
		return outcome_refuse(NP_R_NOT_IN_POLICY, NULL);
	if (!facts->name)
		return outcome_of_address(policy, facts, verdict);
	if (facts->protocol == PATTERN_UDP)
		return outcome_refuse(NP_R_NOT_IN_POLICY, verdict.rule);
	if (name_is_proxys_own(facts->name) && facts_proxy(policy, facts))
		return outcome_refuse(NP_R_ADDRESS_REFUSED, NULL);
	return facts->has_addr && leads_nowhere(facts, addr) ? outcome_refuse(NP_R_ADDRESS_REFUSED, NULL) : verdict;
}

/* Where a name leads is known to the proxy alone, and so does not count. */
static struct facts facts_met(const struct policy *policy, const struct facts *facts)
{
	struct facts met = *facts;

	if (facts->name && facts_proxy(policy, facts)) {
		met.has_addr = met.local = false;
		met.aliases = NULL;
	}
	return met;
}

struct verdict policy_outcome(const struct policy *policy, const struct facts *known)
{
	const struct facts here = facts_met(policy, known), *facts = &here;
	struct verdict verdict = policy_decide(policy, facts);
	struct np_addr addr = np_addr_carried(&facts->addr);
	/* An address is met as such. So is what a name leads to, where the sandbox itself resolves it. */
	bool met = facts->has_addr && (!facts->name || facts->rung.mode == NP_FULL);

	if (facts->query || verdict.reason == NP_R_METADATA)
		return verdict;
	if (met && np_addr_is_many(&addr))
		return outcome_refuse(NP_R_MULTICAST, NULL);
	if (facts->name ? name_is_localhost(facts->name) || (met && goes_here(facts, &addr)) : goes_here(facts, &addr))
		return outcome_here(policy, facts);
	return facts->rung.mode == NP_PROXIED ? outcome_proxied(policy, facts, &addr, verdict) : verdict;
}

/* -- the verdict in words ------------------------------------------------------- */

/* "by coding-agent.yaml:14 (allow: api.github.com)"; a long head is cut, between characters. */
#define BY_SIZE	     (PLACE_TEXT_SIZE + 256)
#define HEAD_MAX_LEN 200
static void by_format(const struct policy *policy, const struct rule *rule, char text[static BY_SIZE])
{
	char place[PLACE_TEXT_SIZE];
	size_t len = strlen(rule->text), max = len;

	if (len > HEAD_MAX_LEN)
		for (max = HEAD_MAX_LEN; max && (rule->text[max] & 0xc0) == 0x80;)
			max--;
	place_format(policy, &rule->at, place);
	snprintf(text, BY_SIZE, "by %s (%.*s%s)", place, (int)max, rule->text, max < len ? "..." : "");
}

static void default_text(const struct policy *policy, const struct facts *facts, const struct verdict *verdict,
			 char *text)
{
	const char *what = verdict->action == ACTION_ASK     ? "a person is asked: no rule decides it"
			   : verdict->action == ACTION_ALLOW ? "allowed: no rule speaks of it"
							     : "denied: no rule allows it";
	const struct place *at = &policy->fallback[facts->rung.level].at;
	char place[PLACE_TEXT_SIZE];

	place_format(policy, at, place);
	snprintf(text, VERDICT_TEXT_SIZE, "%s (%s%s)", what, at->line ? "default: " : "", at->line ? place : "default");
}

static void allowed_text(const struct policy *policy, const struct facts *facts, const struct verdict *verdict,
			 const char *by, char *text)
{
	char looks[BY_SIZE];

	if (verdict->looks)
		by_format(policy, verdict->looks, looks);
	if (verdict->looks)
		snprintf(text, VERDICT_TEXT_SIZE, "allowed %s, but inspected: requests may be denied %s", by, looks);
	else
		snprintf(text, VERDICT_TEXT_SIZE, "allowed %s%s", by,
			 rule_asks_request(verdict->rule) && !facts->method && !facts->query
				 ? "; each request is judged by itself"
				 : "");
}

static void rule_text(const struct policy *policy, const struct facts *facts, const struct verdict *verdict, char *text)
{
	const struct rule *rule = verdict->rule;
	char by[BY_SIZE];

	by_format(policy, rule, by);
	if (verdict->action == ACTION_DENY &&
	    (verdict->reason == NP_R_NEEDS_APPROVAL || verdict->reason == NP_R_NEEDS_DECIDER)) {
		snprintf(text, VERDICT_TEXT_SIZE,
			 "denied: nobody can be asked about an address on a port that is not inspected, %s", by);
		return;
	}
	switch (verdict->reason) {
	case NP_R_RULE_ALLOWS:
		allowed_text(policy, facts, verdict, by, text);
		return;
	case NP_R_RULE_DENIES:
		snprintf(text, VERDICT_TEXT_SIZE, "denied %s%s", by,
			 rule_asks_request(rule) && !facts_seen(policy, facts)
				 ? ": it looks at requests, and nobody sees them on this port"
				 : "");
		return;
	case NP_R_APPROVED:
		snprintf(text, VERDICT_TEXT_SIZE, "allowed %s: a person has answered always where a rule asks", by);
		return;
	case NP_R_NEEDS_APPROVAL:
		snprintf(text, VERDICT_TEXT_SIZE, "a person is asked, %s", by);
		return;
	case NP_R_NEEDS_DECIDER:
		snprintf(text, VERDICT_TEXT_SIZE, "the decider \"%s\" is asked, %s", rule->by ? rule->by : "?", by);
		return;
	case NP_R_NOT_IN_POLICY:
		snprintf(text, VERDICT_TEXT_SIZE,
			 "denied: UDP is allowed by address only, and the rule is about a name, %s", by);
		return;
	default:
		snprintf(text, VERDICT_TEXT_SIZE, "denied %s: %s", by, reason_sentence(verdict->reason));
		return;
	}
}

void verdict_text(const struct policy *policy, const struct facts *facts, const struct verdict *verdict,
		  char text[static VERDICT_TEXT_SIZE])
{
	if (verdict->rule)
		rule_text(policy, facts, verdict, text);
	else if (verdict->reason == NP_R_HOST_LOOPBACK)
		snprintf(text, VERDICT_TEXT_SIZE,
			 "denied: it is on this host, where a sandbox reaches its own listeners%s",
			 facts->rung.flags & NP_READ_ONLY ? "" : " and ports that host_loopback lists");
	else if (verdict->reason == NP_R_NOT_IN_POLICY && facts->port == DNS_PORT && !facts->query)
		snprintf(text, VERDICT_TEXT_SIZE, "denied: port 53 is the DNS gate's, whatever server is named");
	else if (verdict->reason == NP_R_NOT_IN_POLICY && !facts->query && !facts->name &&
		 policy->fallback[facts->rung.level].action != ACTION_DENY)
		snprintf(text, VERDICT_TEXT_SIZE,
			 "denied: no rule allows it, and the default is for names and inspected ports");
	else if (verdict->reason == NP_R_NOT_IN_POLICY || verdict->reason == NP_R_NEEDS_APPROVAL ||
		 verdict->reason == NP_R_DEFAULT_ALLOWS)
		default_text(policy, facts, verdict, text);
	else
		snprintf(text, VERDICT_TEXT_SIZE, "%s: %s", verdict->action == ACTION_ALLOW ? "allowed" : "denied",
			 reason_sentence(verdict->reason));
}
