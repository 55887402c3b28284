/* SPDX-License-Identifier: MIT */
#include "dns/judge.h"

#include <arpa/nameser.h>
#include <errno.h>
#include <string.h>

#include "policy/decide.h"
#include "policy/name_reachable.h"
#include "synth.h"
#include "vocab/limits.h"
#include "wire/hostname.h"

static int judge_refuse(struct dns_judged *j, enum np_reason reason, unsigned rcode, const char *words)
{
	j->reason = reason;
	j->answer.rcode = rcode;
	j->answer.ede = DNS_EDE_BLOCKED;
	j->answer.words = words;
	j->answer.records = NULL;
	return 0;
}

static int answer_localhost(struct dns_judged *j)
{
	j->addrs[0] = np_addr_v4(np_net32(0x7f000001));
	j->addrs[1] = (struct np_addr){ .w = { 0, 0, 0, np_net32(1) } };
	j->answer.n_addrs = 2;
	return 0;
}

/* Only what this gate has given out leads back to a name. */
static int answer_reverse(const struct dns_facts *facts, struct dns_judged *j)
{
	struct np_addr addr;
	const char *name = NULL;

	if (dns_reverse_parse(j->query.name, &addr) == 0 && np_addr_is_synthetic(&addr))
		name = names_find(facts->names, np_synth_number(&addr));
	if (!name)
		return judge_refuse(j, NP_R_NOT_IN_POLICY, ns_r_nxdomain,
				    "only names that the policy may allow are looked up");
	j->answer.ptr = name;
	return 0;
}

/* The question itself says nothing but that somebody asks it: the rule has the whole name. */
static bool may_query(const struct dns_facts *facts, struct dns_judged *j)
{
	const struct facts query = {
		.rung = facts->rung, .session = facts->session, .query = j->query.type, .name = j->query.name
	};
	struct verdict verdict;

	if (facts->rung.mode != NP_PROXIED || !dns_record_bit(j->query.type))
		return false;
	verdict = policy_decide(facts->policy, &query);
	if (verdict.action != ACTION_ALLOW)
		return false;
	j->rule = verdict.rule;
	j->pattern = verdict.pattern;
	return true;
}

/* A search list makes names that nobody meant: "api.example.cluster.local" of "api.example". A resolver goes on to the one
 * that was meant only after NXDOMAIN, so a name that begins with one that may be reached has no address. Nor has one without
 * a dot, which is the beginning of such a list, nor what no resolver of the internet knows. */
static bool is_explained(const struct dns_facts *facts, const char *name)
{
	return policy_default_knows(facts->policy, &facts->rung, facts->session, name);
}

static void answer_index(struct dns_judged *j, uint32_t index)
{
	j->addrs[0] = np_synth_v4(index);
	j->addrs[1] = np_synth_v6(index);
	j->answer.n_addrs = 2;
}

/* NXDOMAIN, not REFUSED: a resolver goes on with the next domain of its search list, or tells its program that there is no
 * such host; after REFUSED it asks other servers the same. */
static int refuse_name(const struct dns_facts *facts, struct dns_judged *j, enum np_reason reason, const char *words)
{
	uint32_t index;

	judge_refuse(j, reason, ns_r_nxdomain, words);
	if (!facts->policy->refused_synthetic || denied_quietly(j->rule, j->pattern) ||
	    facts->rung.mode != NP_PROXIED || !is_explained(facts, j->query.name))
		return 0;
	j->answer.rcode = ns_r_noerror;
	if (j->query.type != ns_t_a && j->query.type != ns_t_aaaa)
		return 0;
	/* One that it has from when it was allowed does as well. */
	index = names_index(facts->names, NAMES_ALLOWED, j->query.name);
	if (!index)
		index = names_index(facts->names, NAMES_REFUSED, j->query.name);
	j->refused = !index;
	if (!index)
		return -EAGAIN;
	answer_index(j, index);
	return 0;
}

static int answer_name(const struct dns_facts *facts, struct dns_judged *j)
{
	unsigned may = policy_may_name(facts->policy, &facts->rung, facts->session, j->query.name);
	uint32_t index;

	if (may_query(facts, j))
		return -EINPROGRESS;
	if (!may && facts->rung.mode == NP_PROXIED)
		j->pattern = policy_denies_name(facts->policy, &facts->rung, facts->session, j->query.name);
	if (j->pattern)
		j->rule = &facts->policy->rules[j->pattern->rule];
	if (j->rule)
		return refuse_name(facts, j, NP_R_RULE_DENIES,
				   "a rule of the policy denies this name; asking again will not help");
	if (!may)
		return refuse_name(facts, j, NP_R_NOT_IN_POLICY,
				   "no rule of the policy allows this name; asking again will not help");
	if (may == MAY_UDP)
		return judge_refuse(j, NP_R_NOT_IN_POLICY, ns_r_nxdomain,
				    "UDP is allowed by address only, and no rule allows TCP to this name");
	/* NODATA, HTTPS and SVCB among them: no hint at keys (ech) or at QUIC (h3), so that clients do what is seen. */
	if (j->query.type != ns_t_a && j->query.type != ns_t_aaaa)
		return 0;
	index = names_index(facts->names, NAMES_ALLOWED, j->query.name);
	if (!index)
		return -EAGAIN;
	answer_index(j, index);
	return 0;
}

int dns_judge(const struct dns_facts *facts, const void *data, size_t len, struct dns_judged *j)
{
	int r = dns_query_read(data, len, &j->query);

	if (r < 0)
		return r;
	j->reason = NP_R_RULE_ALLOWS;
	j->rule = NULL;
	j->pattern = NULL;
	j->refused = false;
	j->answer = (struct dns_answer){ .addrs = j->addrs, .ttl_s = NP_DNS_TTL_S, .ede = DNS_EDE_NONE };
	if (r > 0) {
		j->reason = NP_R_BAD_DNS;
		j->answer.rcode = (unsigned)r;
		return 0;
	}
	/* The root exists, so there is no NXDOMAIN for it: a resolver that believed one would believe that nothing does. */
	if (!j->query.question[0])
		return judge_refuse(j, NP_R_NOT_IN_POLICY, ns_r_noerror, "the DNS gate knows no records of the root");
	if (!j->query.name[0])
		return judge_refuse(j, NP_R_NOT_IN_POLICY, ns_r_nxdomain, "no rule can allow such a name");
	if (name_is_localhost(j->query.name))
		return answer_localhost(j);
	if (j->query.type == ns_t_ptr)
		return answer_reverse(facts, j);
	return answer_name(facts, j);
}

void dns_judged_records(struct dns_judged *j, int error, const char *words, const struct dns_records *records,
			uint32_t ttl_s)
{
	/* NODATA also when there is no such name: it has a synthetic address, and so it is there. */
	if (error == -ENOENT || error == -ENODATA)
		return;
	if (error) {
		j->answer.rcode = ns_r_servfail;
		j->answer.ede = DNS_EDE_OTHER;
		j->answer.words = words;
		return;
	}
	j->records = *records;
	j->answer.records = &j->records;
	j->answer.ttl_s = ttl_s;
}

void dns_judged_unnamed(struct dns_judged *j)
{
	j->answer.rcode = ns_r_nxdomain;
}

void dns_judged_full(struct dns_judged *j, enum np_reason reason)
{
	judge_refuse(j, reason, ns_r_servfail,
		     reason == NP_R_TOO_MANY_NAMES ? "this session has looked up too many names"
						   : "this sandbox looks up too many names at once; ask again later");
}
