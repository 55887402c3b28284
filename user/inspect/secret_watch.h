/* SPDX-License-Identifier: MIT */
/* The values of all credentials that a worker has, ready to be searched for. */
#ifndef NP_INSPECT_SECRET_WATCH_H
#define NP_INSPECT_SECRET_WATCH_H

#include <stdint.h>

#include "policy/policy.h"
#include "secrets/scrub.h"

struct fields;
struct head;
struct worker;

struct secret_watch {
	uint64_t generation;	       /* of worker->secrets, that it was made of ... */
	char policy[POLICY_HASH_SIZE]; /* ... and of this policy */
	struct search *search;	       /* NULL: there is nothing to search for */
	struct scrubber scrubber;      /* the number of a secret is its index in worker->secrets */
};

/* NULL: no credential has a value. -errno: it could not be made, and nothing may pass that would have to be searched. */
int secret_watch(struct worker *worker, struct scrubber **ret);
void secret_watch_free(struct secret_watch *watch);

/* The first secret in any of these texts, each of which is whole; -1: there is none, or less: -errno. */
int secret_in_text(struct scrubber *scrubber, const char *text, size_t len);
int secret_in_fields(struct scrubber *scrubber, const struct fields *fields);
int secret_in_head(struct scrubber *scrubber, const struct head *head);

#endif
