/* SPDX-License-Identifier: MIT */
/*
 * What was refused of a session, in words: the one place that makes them, for the API, the CLI and an agent's context.
 * Events in (their JSON lines), facts and text out. No clock, no I/O.
 */
#pragma once

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "sandbox.h"
#include "vocab/limits.h"

/* Refusals of the same thing for the same reason. */
struct refusal {
	json_t *event;		  /* the newest of them; owned */
	char what[64];		  /* "TCP connection", "DNS query", "HTTP request" */
	char where[NP_WHY_WHERE]; /* "192.0.2.7:5432", "POST https://paste.example/x"; may be empty */
	bool plain;		  /* all of it is ours to say: nothing that a sandbox chose */
	const char *link;	  /* the word between the two: " to " */
	unsigned reason;	  /* enum np_reason */
	unsigned count;
	char near[NP_WHY_WHERE]; /* the grant that it misses by little, in words; "" */
	char first[32];		 /* time of the oldest that was looked at */
};

struct refusals {
	struct refusal items[NP_WHY_MAX]; /* newest first */
	size_t count, max;
	unsigned seen;		     /* events that were looked at */
	unsigned others;	     /* of them, refusals of what is not in items */
	unsigned quiet;		     /* of them, those that the policy calls quiet: not in items */
	uint64_t suppressed;	     /* refusals that were only counted: of what is not known */
	uint64_t not_kept;	     /* older refusals that are no longer stored, ... */
	uint64_t since_us, until_us; /* ... and when the first and the last of them happened */
};
void refusals_clear(struct refusals *refusals);

/* Reads lines as event_log_refused() gives them. At most max (NP_WHY_MAX) different ones are kept. A line that is no
 * event is left out. */
void refusals_read(const char *lines, size_t len, size_t max, struct refusals *ret);

/* One of them as an object; NULL when memory ran out. */
json_t *refusal_object(const struct refusal *refusal, enum np_mode mode);

/* All of them as lines of text: the list, and the hints. */
void refusals_text(const struct refusals *refusals, enum np_mode mode, struct buf *out);

/* "2026-01-01T00:00:00Z" of a time with its fractions; for people. */
void time_shorten(const char *time, char text[static 32]);
