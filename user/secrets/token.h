/* SPDX-License-Identifier: MIT */
/*
 * Tokens that an origin issues, as a sandbox holds them: sealed. The text is the token itself, encrypted and authenticated
 * (AES-SIV) under a key that is made of the host's placeholder key, together with the credential that it belongs to, and bound to
 * the session. So there is no table of tokens that could be full, lost at a restart, or missing in another worker: whoever
 * has the key can read the token where it comes by, and nobody else can, nor make or change one.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "secrets/placeholder.h"

struct buf;
struct sealer;

struct token {
	char credential[NP_NAME_MAX + 1];
	bool is_cookie; /* it came in a cookie, and goes in one */
	const char *value;
	size_t len;
};

/* "nptoken_", three digits of base64 that say how many follow, then these. No character of it needs an escape anywhere. */
#define SEALED_PREFIX "nptoken_"
#define SEALED_HEAD   (sizeof(SEALED_PREFIX) - 1 + 3)
#define SEALED_PLAIN  (16 + 2 + NP_NAME_MAX + NP_TOKEN_MAX)
#define SEALED_MAX    (SEALED_HEAD + (SEALED_PLAIN * 4 + 2) / 3)

/* The key, and room for the token that was read last, in locked memory. 0 or -ENOMEM. */
int sealer_new(const struct placeholder_key *key, struct sealer **ret);
void sealer_free(struct sealer *sealer); /* NULL is fine */

/* Appends it to out. The same token gives the same text. 0; -EINVAL: it is empty, or has a byte that could not stand in a header;
 * -E2BIG: it is longer than NP_TOKEN_MAX, or out is full; -ENOMEM. */
int token_seal(const struct sealer *sealer, const char *session, const struct token *token, struct buf *out);

/* The first place from which the text looks like one, and how long that is; false: there is none. One that is cut short, or has
 * other characters where its own should be, is as long as those that are there. */
bool token_find(const char *text, size_t len, size_t *ret_at, size_t *ret_len);
/* The first one that is as long as it says. */
bool token_find_whole(const char *text, size_t len, size_t *ret_at, size_t *ret_len);
/* What token_find() has found. False: nobody has sealed it for this session. The value is good until the next call. */
bool token_unseal(struct sealer *sealer, const char *session, const char *text, size_t len, struct token *ret);
/* How many bytes at the end of the text could be the beginning of one. */
size_t token_pending(const char *text, size_t len);
