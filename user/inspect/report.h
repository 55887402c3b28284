/* SPDX-License-Identifier: MIT */
/* What became of requests, counted and reported to the daemon by way of the ledger. */
#pragma once

#include "base/buf.h"
#include "link/ledger.h"
#include "link/link.h"
#include "policy/policy.h"
#include "policy/verdict.h"

struct capture;
struct sandbox;
struct worker;

/* Of a worker. Only report.c writes it. */
struct reporter {
	struct ledger *ledger;	      /* where it counts and reports; its own memory until it has the daemon's */
	struct ledger_slot uncounted; /* of sandboxes without a slot */
	const struct rule *placed;    /* the last that allowed a request; NULL after a change of the policy */
	char place[PLACE_TEXT_SIZE];  /* where it is written */
	size_t unannounced;	      /* bytes of reports that the daemon was not woken for */
	uint64_t announced;	      /* it was last woken for what is in the ring up to here */
	struct buf report;	      /* the one that is written */
};

/* Of a sandbox: how many reports it may still send. Likewise. */
struct report_rate {
	uint64_t reported_ns, tokens;
};

int reporter_init(struct reporter *reporter);
void reporter_close(struct reporter *reporter);
int reporter_map(struct reporter *reporter, int fd);   /* the daemon's ledger, before any sandbox is known */
void reporter_forget_rules(struct reporter *reporter); /* the policy has changed */
void reporter_count_cut(struct reporter *reporter);    /* something open was ended by the platform */
struct ledger_slot *reporter_slot(struct reporter *reporter, uint32_t slot); /* of a sandbox */
void report_rate_init(struct report_rate *rate);

struct report_texts {
	const char *method; /* NULL: none; so are the others */
	const char *url[4]; /* in parts */
	const char *query;
	const char *proxy; /* URL of the upstream proxy */
	const struct capture *capture;
};
/* A verdict on something of this sandbox falls now: what the report says about the rung and the policy is as of now. */
void report_decide(struct link_request *report, const struct worker *worker, const struct sandbox *sandbox);
/* Counts a request that will be reported when it ends: it is not lost in silence if we end before it does. */
void report_begin(struct link_request *report, const struct worker *worker, struct sandbox *sandbox);
/* It is reported in another way. */
void report_withdraw(struct link_request *report, struct sandbox *sandbox);
/* The place of the rule, of the policy in hand; NULL: none. pattern: its destination, for the list; may be NULL. */
void report_rule(struct link_request *report, struct worker *worker, const struct rule *rule,
		 const struct pattern *pattern);
/* A verdict that falls now, at the sandbox's rung. */
void report_verdict(struct link_request *report, struct worker *worker, const struct sandbox *sandbox,
		    const struct verdict *verdict);
/* Something open is ended by the platform: by is NP_R_ENDED_BY_*. rule is the one that does not allow it any more, or NULL.
 * What allowed it is kept as text. */
void report_end(struct link_request *report, struct worker *worker, const struct sandbox *sandbox, enum np_reason by,
		const struct rule *rule);
void report_us(uint32_t *to, uint64_t us);
void report_send(struct worker *worker, const struct link_request *request, const struct report_texts *texts);
void report_flush(struct worker *worker);
