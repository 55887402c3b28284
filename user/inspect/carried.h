/* SPDX-License-Identifier: MIT */
/* What an exchange has to do with credentials: the stage's own (stage_credentials.h). Others read which ones it carries. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "policy/credential.h"
#include "vocab/limits.h"

struct client;
struct exchange;
struct head;

struct carried {
	char names[NP_CARRIED_MAX]
		  [NP_NAME_MAX + 1]; /* of the credentials whose values it carries: the policy may change */
	bool issued[NP_CARRIED_MAX]; /* it is a token that was captured for that one, and not its value */
	unsigned n;
	uint64_t generation; /* of worker->secrets when it began: stage_echo.c searches for these values */
	bool tls;	     /* of the origin's leg */
	bool body_values;    /* values may stand in its body, or in messages of the websocket that it becomes ... */
	enum slot_kind body; /* ... which is of this kind */
	char signs[NP_NAME_MAX + 1]; /* the credential that signs it when all of its body is there; "": none */
	size_t tail_len;	     /* the last bytes of its body that were looked at */
	char tail[NP_PLACEHOLDER_MAX];
};

/* The i-th that it carries, of the policy in hand; NULL: that has none of this name. */
const struct credential *carried_credential(const struct exchange *exchange, unsigned i);
/* The name of the first that is not for such a request any more, since the level or the policy has changed; NULL: there is none. */
const char *carried_lost(const struct carried *carried, const struct client *client,
			 const struct credential_facts *facts);
