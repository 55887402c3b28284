/* SPDX-License-Identifier: MIT */
/*
 * The verdict. Pure: the same policy and the same facts give the same verdict.
 *
 * In PROXIED, rules are taken top to bottom and the first that matches decides:
 *   - name rules match names, address rules match addresses. But a deny by address also matches a name that is
 *     known to resolve there (facts.has_addr beside facts.name), and a deny by name one that is known to be an alias
 *     of such a name (facts.aliases), so that a name is no way around it;
 *   - a rule with paths meets a path that cannot be normalised safely: deny (bad_path), by that rule;
 *   - the rule allows but not a body so long, or not a websocket: deny, by that rule;
 *   - no rule: default, of the level. It grants what comes to the inspector, and nothing that passes by it: addresses at
 *     ports that are not inspected, and UDP, need a rule.
 * Metadata addresses (metadata.h) are denied unless an allow lies inside of such a range: 0.0.0.0/0 does not.
 * A name that leads to one needs both, that allow and its own.
 * Port 53 is the DNS gate's: in PROXIED only denies match it.
 * A run of class read_only gets, of what the rules allow, the requests that read (GET, HEAD, OPTIONS), which the
 * inspector sees whatever the rule says, and connections to the addresses that read_only lists.
 * Lookups of records (not of addresses, see name_reachable.h) are matched by an allow whose dns: has the type, and by a
 * deny of the name that is about every port and asks for no request. default: has no say in them.
 */
#pragma once

#include "policy/policy.h"
#include "policy/verdict.h"

/* What is known of one attempt. */
struct facts {
	/* The sandbox's. Its mode may be stricter than the policy's for its level. NP_READ_ONLY is a run of class
	 * read_only: PROXIED at least, and of what is allowed only what reads. */
	struct np_rung rung;
	const char *session; /* USER/SESSION; NULL: not known, and then a rule for some sessions matches if it denies */
	uint8_t protocol;    /* PATTERN_TCP or PATTERN_UDP */
	uint16_t query; /* the type of records of the name that are looked up (wire/dns.h); 0: it is no lookup. Then
			   * nothing below counts but the name */
	uint16_t port;
	const char *name; /* canonical (wire/hostname.h), or NULL: it goes by address */
	bool has_addr;
	struct np_addr addr; /* where it goes, or, with a name, where that resolves to */
	bool local;	     /* that is an address of this host: for policy_outcome(), rules do not look at it */
	/* With a name: what it is an alias of (CNAME), lower case, each with its NUL and an empty one behind the last;
	 * NULL: nothing is known of any. */
	const char *aliases;

	/* A request, in HTTP; method NULL: a connection of which no request is known (yet). A rule that has conditions on
	 * the request is then taken to match if it allows, asks or decides (go on, and judge each request), and not to match
	 * if it denies. What an allow below such a deny lets pass is inspected, even if that allow says `inspect: false`. On
	 * ports that are not inspected nobody sees requests, and none counts: a rule that asks for one matches if it denies,
	 * for what it denies cannot be told from the rest, and not otherwise. */
	const char *method;	    /* as sent: methods are case-sensitive */
	const char *path;	    /* as sent, with or without its query */
	const char *const *headers; /* names that are there, lower case, NULL-terminated; NULL: none */
	uint64_t body;		    /* length, as far as announced */
	bool has_body;		    /* it has one, whether or not its length is known */
	enum { LEG_UNKNOWN, LEG_TLS, LEG_CLEAR } leg; /* to the origin; not known: no grant is for it */
	bool websocket;				      /* asks for an upgrade */
};

/* Is the port one of inspect_ports? */
bool policy_inspects(const struct policy *policy, uint16_t port);

/* Is the session one of these globs? NULL-terminated. */
bool sessions_match(const char *const *globs, const char *session);
/* Is the word one of a NULL-terminated list (NULL: of none)? */
bool list_has(const char *const *list, const char *word);
/* Is the rule for this session? NULL: see facts.session. */
bool rule_is_for(const struct rule *rule, const char *session);

/* Of a request: does it only read? One with a body does not, whatever its method. */
bool facts_read(const struct facts *facts);
/* What the policy means by the level, for a run of this kind. */
enum np_mode facts_mode(const struct policy *policy, const struct facts *facts);

struct verdict policy_decide(const struct policy *policy, const struct facts *facts);

/* Why a rule was passed over. The further a rule came, the larger the number. */
enum misfit {
	MISFIT_DESTINATION,
	MISFIT_LEVEL,
	MISFIT_SESSION,
	MISFIT_PORT,
	MISFIT_REQUEST, /* wants a request, and there is none */
	MISFIT_METHOD,
	MISFIT_PATH,
	MISFIT_HEADER,
	MISFIT_METADATA, /* an allow from around a metadata range */
	MISFIT_QUERY,	 /* says nothing about such lookups */
	MISFIT_NONE,	 /* it matches */
};

/* policy_decide() that notes what became of each rule: trace[number] is an enum misfit. The list is policy->full in FULL,
 * else policy->rules; the caller has set all of it to 0, which is MISFIT_DESTINATION: such rules are not even looked at.
 * What it says of rules below the one that decided is not to be relied on. */
struct verdict policy_trace(const struct policy *policy, const struct facts *facts, uint8_t *trace);
/* The trace's entry for one rule. MISFIT_LEVEL also stands for a rule of other levels and other destinations. */
enum misfit trace_misfit(const uint8_t *trace, const struct rule *rule, const struct facts *facts);
const char *misfit_sentence(enum misfit misfit); /* "it is for other methods"; "" when it matches */
