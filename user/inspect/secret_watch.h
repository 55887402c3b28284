/* SPDX-License-Identifier: MIT */
/* The values of all credentials that a worker has, ready to be searched for. */
#pragma once

#include <stdint.h>

#include "policy/policy.h"
#include "secrets/scrub.h"

struct fields;
struct head;
struct worker;

/* Values as they were at one time: an exchange searches its response for what the request carried, whatever has
 * changed since. */
struct secret_set {
	unsigned refs;
	struct search *search;
	struct search *echoes; /* without those that may come back (echo: pass): another may have the same value */
	size_t n;
	char (*names)[NP_NAME_MAX + 1]; /* of their credentials, by the number of a secret */
	uint32_t *same;			/* by that number: the first that has the same value */
};

struct secret_watch {
	uint64_t generation;	       /* of worker->secrets, that it was made of ... */
	char policy[POLICY_HASH_SIZE]; /* ... and of this policy */
	struct secret_set *set;	       /* NULL: there is nothing to search for */
	struct scrubber scrubber;      /* memory, for one set or another */
};

/* The values that hold now; *ret NULL: no credential has one. -errno: it could not be made, and nothing may pass that would have
 * to be searched. Valid until the next call, but for who takes a reference. */
int secret_watch(struct worker *worker, struct secret_set **ret);
void secret_watch_free(struct secret_watch *watch);
void secret_set_ref(struct secret_set *set);
void secret_set_unref(struct secret_set *set); /* NULL is fine */
/* To search for what is in the set, in what leaves and in what comes back; valid until the next call of either. */
struct scrubber *secret_scrubber(struct worker *worker, const struct secret_set *set);
struct scrubber *secret_echo_scrubber(struct worker *worker, const struct secret_set *set);

/* The first secret in any of these texts, each of which is whole; -1: there is none, or less: -errno. */
int secret_in_text(struct scrubber *scrubber, const char *text, size_t len);
int secret_in_fields(struct scrubber *scrubber, const struct fields *fields);
int secret_in_head(struct scrubber *scrubber, const struct head *head);
/* Words take the place of secrets in values: how many, or -errno. -EINVAL: there is one in a name, which is lower case. */
int secret_scrub_fields(struct scrubber *scrubber, const struct scrub_words *words, struct fields *fields);
