/* SPDX-License-Identifier: MIT */
/*
 * The language by which people say which events they want to see: `host:github.com verdict:refused -llm session:alice/x*`.
 * docs/filters.md explains it. Words are all to hold; a minus in front turns one around. Pure: text in, a program out.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* What an event says, in words; NULL or "" where it says nothing. */
enum filter_key {
	FILTER_ANY, /* a word without a key: somewhere in host, URL, session, program, reason and address */
	FILTER_HOST,
	FILTER_URL,
	FILTER_METHOD,
	FILTER_STATUS,
	FILTER_VERDICT, /* allowed, refused, change or error */
	FILTER_KIND,	/* request, connection, dns, socket, change, or rise, which is a change */
	FILTER_REASON,
	FILTER_SESSION,
	FILTER_SANDBOX,
	FILTER_PROGRAM,
	FILTER_LEVEL,
	FILTER_MODE,
	FILTER_RULE,
	FILTER_LIST,
	FILTER_ADDRESS,
	FILTER_PORT,
	FILTER_QUESTION,
	FILTER_SENT,	 /* bytes, as digits */
	FILTER_RECEIVED, /* bytes, as digits */
	FILTER_MS,	 /* that it took, as digits with three behind a point */
	FILTER_KEYS,
};
struct filter_facts {
	const char *of[FILTER_KEYS];
};

#define FILTER_TEXT_MAX	  1024 /* bytes of a filter: what a person types, and a bound on what a match can cost */
#define FILTER_WORDS_MAX  32
#define FILTER_VALUES_MAX 16 /* of one word: reason:a,b,c */

struct filter_word {
	enum filter_key key;
	bool negated;
	unsigned n;
	unsigned short values[FILTER_VALUES_MAX]; /* where in text each begins */
};

struct event_filter {
	unsigned n;
	struct filter_word words[FILTER_WORDS_MAX];
	char text[FILTER_TEXT_MAX + FILTER_WORDS_MAX + 1]; /* values, lower case, each with its NUL */
};

#define FILTER_PROBLEM_SIZE 160
/* 0, or -EINVAL, and then problem says what is wrong and where. An empty text is a filter that everything passes. */
int event_filter_parse(const char *text, struct event_filter *ret, char problem[static FILTER_PROBLEM_SIZE]);
bool event_filter_passes(const struct event_filter *filter, const struct filter_facts *facts);
