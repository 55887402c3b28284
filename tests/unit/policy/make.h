/* SPDX-License-Identifier: MIT */
/* Policies and facts for tests, from text. */
#pragma once

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "policy/decide.h"
#include "wire/hostname.h"

/* From YAML without its version; errors fail the test, warnings are for the caller. */
static inline struct policy *policy_warned(const char *yaml, struct problems *problems)
{
	struct policy *policy = NULL;
	char line[PROBLEM_LINE_SIZE], *text;

	if (asprintf(&text, "version: 1\n%s", yaml) < 0)
		fail();
	if (policy_load_text("p.yaml", text, strlen(text), &policy, problems) < 0) {
		problems_first(problems, line);
		fail_msg("%s\nin:\n%s", line, text);
	}
	free(text);
	return policy;
}

static inline struct policy *policy_of(const char *yaml)
{
	_problems_ struct problems problems = { 0 };

	return policy_warned(yaml, &problems);
}

static inline struct np_addr addr_of(const char *text)
{
	struct np_addr addr;

	if (addr_parse(text, strlen(text), &addr) < 0)
		fail_msg("no address: %s", text);
	return addr;
}

/* A connection in PROXIED at CONFIDENTIAL: to a name, or to an address. */
static inline struct facts to_name(const char *name, uint16_t port)
{
	return (struct facts){ .rung = { .mode = NP_PROXIED, .level = LEVEL_CONFIDENTIAL },
			       .protocol = PATTERN_TCP,
			       .port = port,
			       .name = name };
}

static inline struct facts to_addr(const char *addr, uint16_t port)
{
	struct facts facts = to_name(NULL, port);

	facts.has_addr = true;
	facts.addr = addr_of(addr);
	return facts;
}

static inline struct facts request(const char *method, const char *name, const char *path)
{
	struct facts facts = to_name(name, 443);

	facts.method = method;
	facts.path = path;
	return facts;
}

/* The same, but: */
static inline struct facts at(enum np_mode mode, enum level level, struct facts facts)
{
	facts.rung.mode = mode;
	facts.rung.level = level;
	return facts;
}

static inline struct facts over_udp(struct facts facts)
{
	facts.protocol = PATTERN_UDP;
	return facts;
}

static inline struct facts resolving(struct facts facts, const char *addr)
{
	facts.has_addr = true;
	facts.addr = addr_of(addr);
	return facts;
}

static inline struct facts with_headers(struct facts facts, const char *const *headers)
{
	facts.headers = headers;
	return facts;
}
