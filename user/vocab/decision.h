/* SPDX-License-Identifier: MIT */
/*
 * What a decider answers, as plain data: the same in the process that reads its frames (decider/), on the way to the daemon, and
 * in the session service, which is the one that acts on it.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "vocab/limits.h"

enum decision_kind {
	DECISION_NONE, /* there is no answer, and there will be none: words say why */
	DECISION_ALLOW,
	DECISION_DENY,
	DECISION_ASK,	/* a person is to be asked */
	DECISION_RAISE, /* the session is to be raised to level, and the request is refused */
	DECISION_NEED_BODY, /* no answer yet: it wants to see how the body begins, max bytes of it. Once for each question */
	DECISION_KINDS,
};

enum decision_scope {
	REMEMBER_NONE,
	REMEMBER_HOST,	  /* for this session, rule, host, port and kind of request */
	REMEMBER_SESSION, /* for this session and rule */
	REMEMBER_SCOPES,
};

struct decision {
	uint64_t id;	   /* of what was asked */
	uint32_t kind;	   /* enum decision_kind */
	uint32_t remember; /* enum decision_scope; of allow and deny */
	uint32_t level;	   /* enum level, of raise */
	uint32_t ttl_s;	   /* that it is remembered; 0: NP_DECISION_TTL_S */
	uint32_t max;	   /* of need_body; 0 for all others */
	uint32_t reserved;
	char words[NP_DECISION_WORDS]; /* text_printable(); for the agent */
};

/* Could a decider have said so? Texts end, enumerations are known. */
bool decision_is_valid(const struct decision *decision);
int decision_scope_parse(const char *word, uint32_t *ret); /* 0 or -EINVAL */
int decision_kind_parse(const char *word, uint32_t *ret);  /* 0 or -EINVAL */
