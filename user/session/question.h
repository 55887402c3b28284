/* SPDX-License-Identifier: MIT */
/*
 * A question: what a person is asked before a request or a connection may go on. All that wait for the same session, rule,
 * host, port and kind (reads, may write, a connection; in TLS or in the clear) share one. It is answered once. What the answer is
 * worth ends by itself: when it is used (once), when its time is over, when the session rises or ends, when the policy does not
 * ask for it any more.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "vocab/session_name.h"
#include "vocab/level.h"
#include "vocab/limits.h"

enum question_state {
	QUESTION_PENDING,
	QUESTION_ALLOWED,
	QUESTION_DENIED,
	QUESTION_EXPIRED, /* nobody answered in time */
	QUESTION_VOID,	  /* the level rose, the session ended, or the policy does not ask any more */
};
#define QUESTION_STATES (QUESTION_VOID + 1)
const char *question_state_name(enum question_state state);
int question_state_parse(const char *name, enum question_state *ret); /* 0 or -EINVAL */

enum question_answer {
	ANSWER_NONE,
	ANSWER_DENY,   /* what waits, and what comes, as long as it holds */
	ANSWER_ONCE,   /* one request or connection that is what the question shows: the first that waits, or comes */
	ANSWER_HOST,   /* all of this session, rule, host, port and kind, as long as it holds */
	ANSWER_DOMAIN, /* likewise, and of all hosts of its registrable domain */
	ANSWER_ALWAYS, /* a rule is written into the policy's grants; until it holds, as host */
};
const char *question_answer_name(enum question_answer answer);		/* "" for none */
int question_answer_parse(const char *name, enum question_answer *ret); /* 0 or -EINVAL */

#define QUESTION_PLACE_SIZE  320
#define QUESTION_HOST_SIZE   256
#define QUESTION_POLICY_SIZE 65
#define QUESTION_WHO_SIZE    64

/* Times are 0 for what has not happened. */
struct question_row {
	uint64_t id; /* never used again */
	/* The key. */
	struct session_name session;
	uint64_t rule;		       /* what it says, as a mark: policy/asked.h */
	char host[QUESTION_HOST_SIZE]; /* a canonical name, or an address */
	uint16_t port;
	bool write; /* it may write; else it is a request that reads */
	bool tls;   /* of a request: its origin is spoken to in TLS */
	/* What was asked for first. */
	char place[QUESTION_PLACE_SIZE]; /* of the rule then: "policy.yaml:14" */
	char sandbox[NP_SANDBOX_ID_MAX + 1];
	char method[NP_QUESTION_METHOD]; /* empty: a connection of which nothing is seen */
	char url[NP_QUESTION_URL];
	char headers[NP_QUESTION_HEADERS]; /* "name: value" lines, without what may be secret */
	uint64_t body;			   /* length as far as announced; UINT64_MAX: there is one */
	/* The process that connected, then: it may have become another program since, or have given the socket away. */
	uint32_t pid;		       /* 0: not known */
	char comm[16];		       /* empty: it was gone */
	char program[NP_PROGRAM_SIZE]; /* likewise; the path of its file, in its own view */
	char preview[NP_QUESTION_PREVIEW];
	size_t preview_len;  /* the first bytes of the body; 0: the rule captures nothing, or none had come */
	struct np_rung rung; /* of the session */
	char policy[QUESTION_POLICY_SIZE]; /* hash, when it was asked */
	uint64_t created_us, expires_us;
	/* What became of it. */
	enum question_state state;
	enum question_answer answer;
	char domain[QUESTION_HOST_SIZE]; /* of an answer for one; empty */
	char who[QUESTION_WHO_SIZE];
	char reason[NP_REASON_TEXT_MAX + 1];
	uint64_t answered_us;
	uint64_t until_us;		  /* the answer holds no longer than that; 0: no time bounds it */
	uint64_t over_us;		  /* it expired or became void; the answer is used or holds no more */
	char ended_by[QUESTION_WHO_SIZE]; /* who took the answer back; empty: nobody did */
};
