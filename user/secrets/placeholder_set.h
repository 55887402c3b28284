/* SPDX-License-Identifier: MIT */
/*
 * The placeholders of one session, to be found in what it sends: by eight bytes of each that are random, so that the time does
 * not depend on how many there are; and tokens that were sealed for it (token.h). Pure.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "secrets/placeholder.h"

struct policy;
struct token;
struct sealer;

#define PLACEHOLDER_NOBODYS UINT32_MAX /* it looks like a token, and was sealed for another session, or by nobody */
#define PLACEHOLDER_PLACES  4093       /* a prime */

struct placeholder {
	const char *text; /* with a NUL, if it is no token */
	size_t len;
	uint32_t credential;	   /* its number in the policy; of tokens PLACEHOLDER_NOBODYS, too */
	const struct token *token; /* that an origin has issued; NULL: it stands for the credential's own value */
	uint32_t anchor;	   /* where in it the eight bytes are */
	uint64_t word;		   /* and these */
	uint32_t next;		   /* of the same place, from 1; 0: none */
};

struct placeholder_set {
	struct placeholder *items; /* one for each credential of the policy, in its order */
	size_t n;
	size_t longest;
	char *texts;
	struct sealed *sealed;		    /* NULL: tokens are not looked for */
	uint16_t first[PLACEHOLDER_PLACES]; /* the first of those with such a word, from 1; 0: none */
};

/* 0 or -ENOMEM. */
int placeholder_set_new(const struct policy *policy, const struct placeholder_key *key, const char *session,
			struct placeholder_set **ret);
/* Tokens are looked for as well. The sealer, the policy and the name of the session are lent. 0 or -ENOMEM. */
int placeholder_set_add_tokens(struct placeholder_set *set, struct sealer *sealer, const struct policy *policy,
			       const char *session);
void placeholder_set_free(struct placeholder_set *set); /* NULL is fine */

/* The first one in the text, and where; NULL: there is none. One of a token is good until the next call. */
const struct placeholder *placeholder_set_find(const struct placeholder_set *set, const char *text, size_t len,
					       size_t *ret_at);
/* Of those that are no tokens. */
const struct placeholder *placeholder_set_find_own(const struct placeholder_set *set, const char *text, size_t len,
						   size_t *ret_at);
/* How many bytes at the end of the text could be the beginning of one, and are no part of a whole one; the same of tokens alone. */
size_t placeholder_set_pending_token(const struct placeholder_set *set, const char *text, size_t len);
size_t placeholder_set_pending(const struct placeholder_set *set, const char *text, size_t len);
