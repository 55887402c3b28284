/* SPDX-License-Identifier: MIT */
/*
 * What a sandbox is answered when it looks a name up. No query leaves this host for that: a name that some rule could
 * allow gets a synthetic address (include/synth.h), every other name a refusal: NXDOMAIN, or (dns: refused: synthetic)
 * an address as well, so that a client that connects to it is told why. A connection to a synthetic address is judged
 * by its name, and only then is the name resolved. The one exception: records (MX, ...) of a whole name, where a rule
 * names their type. Pure.
 */
#pragma once

#include "dns/synthetic_names.h"
#include "policy/policy.h"
#include "reason.h"
#include "wire/dns.h"

/* What is known of who asks. */
struct dns_facts {
	const struct policy *policy;
	struct np_rung rung;	   /* of the sandbox */
	const char *session;	   /* USER/SESSION */
	const struct names *names; /* of the session */
};

struct dns_judged {
	struct dns_query query;
	enum np_reason reason;	       /* an allow when it is answered */
	const struct rule *rule;       /* that lets the resolvers be asked, or denies the name; else NULL */
	const struct pattern *pattern; /* of the rule: its destination */
	bool refused;		       /* with -EAGAIN: the index that it lacks is one of NAMES_REFUSED */
	struct dns_answer answer;      /* for dns_answer_write(); borrows from here and from the names */
	struct np_addr addrs[2];
	struct dns_records records;
};

/* 0: answer it. -EAGAIN: query.name may be reached but has no index yet; when it has, judge again. -EINPROGRESS: ask the
 * resolvers for records of query.type, for dns_judged_records(). -EBADMSG: say nothing. */
int dns_judge(const struct dns_facts *facts, const void *data, size_t len, struct dns_judged *ret);
/* What the resolvers said: error 0 and records, which are borrowed; -ENOENT, -ENODATA; else words say why there is no answer. */
void dns_judged_records(struct dns_judged *judged, int error, const char *words, const struct dns_records *records,
			uint32_t ttl_s);
/* A refused name gets no address: it does not resolve. */
void dns_judged_unnamed(struct dns_judged *judged);
/* The answer when it can get none: TOO_MANY_NAMES of its session, or TOO_MANY_QUERIES that wait. */
void dns_judged_full(struct dns_judged *judged, enum np_reason reason);
