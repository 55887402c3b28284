/* SPDX-License-Identifier: MIT */
/* Which credentials an attempt would carry, and why not: for people who try a policy. An inspector has the same answers from
 * credential.h, and the request itself besides: whether a placeholder stands in it. Pure. */
#pragma once

#include "base/buf.h"
#include "policy/credential.h"
#include "policy/decide.h"

struct credential_fate {
	const struct credential *credential;
	bool tokens;	 /* it is for the tokens that are captured for it, and not for its value */
	const char *why; /* it does not go; NULL: it does, where "as" says */
};

/* The next of those that have to do with the attempt's host, in the policy's order; *next is 0 at first. false: there is none. */
bool credential_fate_next(const struct policy *policy, const struct facts *facts, const struct verdict *verdict,
			  size_t *next, struct credential_fate *ret);
/* Would it go with the attempt? name NULL: does none? */
bool credential_goes(const struct policy *policy, const struct facts *facts, const struct verdict *verdict,
		     const char *name);
/* "bearer, header x-api-key": where it may stand. */
#define CREDENTIAL_PLACES_SIZE 512
void credential_places(const struct credential_fate *fate, char text[static CREDENTIAL_PLACES_SIZE]);
/* All of it as an array of JSON: name, goes, why, tokens, as. */
void credential_fates_json(const struct policy *policy, const struct facts *facts, const struct verdict *verdict,
			   struct buf *out);
