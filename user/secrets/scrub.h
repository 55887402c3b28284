/* SPDX-License-Identifier: MIT */
/*
 * Secrets in a text become their placeholders, in the form in which each was found. Bytes in, bytes out: what could still become a
 * secret when more has come is not used, and is offered again in front of that.
 */
#pragma once

#include "secrets/search.h"
#include "secrets/unescape.h"

struct buf;
struct span;

struct scrub_word {
	const char *text; /* at most NP_SECRET_MAX */
	size_t len;
};

/* What stands for a secret, by the number that its needles have; asked for each that is found. False: it stays where it is. */
struct scrub_words {
	bool (*find)(void *ctx, uint32_t secret, struct scrub_word *ret);
	void *ctx;
};

struct scrubber {
	const struct search *search; /* lent */
	/* memory, used again by the next call */
	struct signs signs;
	struct plain_text plain[UNESCAPE_WAYS]; /* but for the first of use only if a value has signs of escapes */
	struct span *spans;
	size_t n, room;
};

void scrubber_free(struct scrubber *scrubber); /* wipes it */

/*
 * How many secrets were replaced among the first *ret_used bytes, and, if there were any, these bytes without them in out. 0: they may
 * go on as they are, and out is untouched. end: nothing follows, and all bytes are used. -ENOMEM or -E2BIG:
 * nothing of it may pass.
 */
int scrub(struct scrubber *scrubber, const struct scrub_words *words, const char *data, size_t len, bool end,
	  struct buf *out, size_t *ret_used);

/* Is there a secret in it? Its number, or -1; *ret_used as above, up to the first. -ENOMEM or -E2BIG are below -1. */
int scrub_look(struct scrubber *scrubber, const char *data, size_t len, bool end, size_t *ret_used);
