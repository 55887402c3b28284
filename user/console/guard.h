/* SPDX-License-Identifier: MIT */
/*
 * Is a request from our own page? A browser runs pages of strangers beside ours, and sends requests for them: what they
 * cannot choose is the name that the browser thinks it talks to (Host) and the page that it talks for (Origin,
 * Sec-Fetch-Site). Pure: headers in, a sentence out.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#define GUARD_NAMES  4
#define GUARD_ORIGIN 300 /* "https://" and a host with its port */

/* What the console is called by browsers: "http://127.0.0.1:8080". Each is scheme, host and port and nothing else. */
struct guard {
	char origins[GUARD_NAMES][GUARD_ORIGIN];
	size_t n;
};

/* -EINVAL: it is no such thing; -E2BIG: too long, or one too many. */
int guard_add(struct guard *guard, const char *origin);

struct guard_headers {
	const char *host, *origin, *sec_fetch; /* NULL: there is none */
	const char *type;		       /* Content-Type */
	bool twice;			       /* one of the first two is there more than once */
	bool changes;			       /* the method is not one that only reads */
};

/* NULL when it may be answered; else why not. */
const char *guard_refuses(const struct guard *guard, const struct guard_headers *headers);
