/* SPDX-License-Identifier: MIT */
/*
 * Where tokens stand in what an origin says: members of JSON, and cookies. Bytes in, bytes out, with something else in the place of
 * each token. The JSON is read strictly, so that no reader could find a token there that this one has not; what is none is an
 * error, and nothing of it may pass.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "vocab/limits.h"

/* Who wants tokens. */
struct issued_taker {
	/* Is the value of a member, or of a cookie, of this name one? */
	bool (*wants)(void *ctx, const char *name);
	/* Appends to out what takes its place. 0 or -errno, which is the reader's then. */
	int (*take)(void *ctx, const char *name, const char *token, size_t len, struct buf *out);
	void *ctx;
};

#define ISSUED_NAME_SIZE 128 /* of a member or a cookie that may be wanted, with a NUL */

enum issued_at {
	AT_VALUE,      /* one is to come */
	AT_FIRST,      /* likewise, or the end of the array */
	AT_KEY,	       /* the name of a member is to come */
	AT_FIRST_KEY,  /* likewise, or the end of the object */
	AT_COLON,      /* behind a name */
	AT_NEXT,       /* behind a value */
	AT_KEY_TEXT,   /* within a name */
	AT_TEXT,       /* within another string */
	AT_TOKEN,      /* within one that is taken */
	AT_WORD,       /* within a number, true, false or null */
	AT_TAKEN_WORD, /* likewise, as the value of a member that is taken: null, and no other, is none */
};

/* JSON that comes in pieces. All zero in the beginning. */
struct issued_json {
	enum issued_at at;
	uint8_t escape; /* within a string: 1 behind a backslash; above: one more than digits of \u are to come */
	uint32_t code;	/* of these digits */
	bool wanted;	/* the value that is to come is */
	unsigned depth;
	uint8_t objects[NP_ISSUED_DEPTH / 8]; /* a bit for each that is open: it is an object, and no array */
	char name[ISSUED_NAME_SIZE];
	size_t name_len; /* ISSUED_NAME_SIZE: it is longer than any that is wanted */
	struct buf token;
	char word[8];
	size_t word_len;
};

/* How many tokens were taken, all other bytes are in out. end: nothing follows. -EBADMSG: it is no JSON, or too deep; -EINVAL: what
 * is wanted is no token; -E2BIG: it is too long; -ENOMEM. */
int issued_json_read(struct issued_json *json, const struct issued_taker *taker, const char *data, size_t len, bool end,
		     struct buf *out);
void issued_json_free(struct issued_json *json); /* wipes it */

/* The value of a set-cookie. 1: it is one that is wanted, and out has the whole field; 0: it is not, or is empty; -errno as above. */
int issued_cookie(const struct issued_taker *taker, const char *text, size_t len, struct buf *out);
