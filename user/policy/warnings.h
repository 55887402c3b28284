/* SPDX-License-Identifier: MIT */
/* What a person should know before answering a question. No part of a decision. Pure. */
#pragma once

#include "policy/policy.h"

struct warning_facts {
	const char *host;   /* a canonical name, or an address */
	const char *method; /* empty: a connection of which nothing is seen */
	const char *url;
	bool write;
	uint64_t body;	     /* UINT64_MAX: its length is not known */
	const char *preview; /* its first bytes, as far as they are known */
	size_t preview_len;
	bool asked_before; /* the session, about this host */
};

#define WARNINGS_MAX 8
#define WARNING_SIZE 320
struct warnings {
	size_t n;
	char text[WARNINGS_MAX][WARNING_SIZE]; /* sentences; names in them are as they came */
};

/* The names that it may be mistaken for are those that the policy allows, and a few that everybody knows. */
void warnings_find(const struct policy *policy, const struct warning_facts *facts, struct warnings *ret);
