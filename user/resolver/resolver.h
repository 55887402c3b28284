/* SPDX-License-Identifier: MIT */
/* From names to addresses: the hosts file, what is remembered, and the resolvers for the rest. */
#pragma once

#include <stdbool.h>
#include <sys/queue.h>

#include "resolver/aliases.h"
#include "wire/dns_answer.h"
#include "loop/loop.h"

struct resolver;

/* What is known of a name so far. */
struct known {
	bool known_all_of[FAMILY_COUNT]; /* nothing more will come for this family */
	struct addresses family[FAMILY_COUNT];
	struct aliases *aliases[FAMILY_COUNT]; /* on the way to them; whoever keeps one takes a reference. NULL: none */
	int error; /* 0 until all is told and there is no address: -ENOENT no such name or no address, -ETIMEDOUT, */
	const char *words; /* -EREMOTEIO no usable answer, -EAGAIN too much is asked, -EHOSTUNREACH nobody to ask */
};

/* A caller that waits for a name; in the caller's memory. */
struct resolution {
	LIST_ENTRY(resolution) link;
	uint64_t owner; /* on whose behalf: each may have NP_NAMES_PER_OWNER names looked up at a time. 0: nobody's */
	bool waiting;
	void (*on_known)(void *ctx, const struct known *known);
	void *ctx;
};

/* resolvers: see nameservers_new(); NULL or "": only hosts. hosts: text, or NULL. 0, -ENOMEM, -EIO without random numbers,
 * -EINVAL resolvers make no sense, -E2BIG hosts is too large. */
int resolver_new(struct loop *loop, const char *resolvers, const char *hosts, struct resolver **ret);
void resolver_free(struct resolver *resolver); /* nobody may wait */

/* What is known of the name (canonical) now; borrowed until the next call. If that is not all, the lookup waits:
 * on_known() is called whenever there is more, last when all is told, or until resolution_cancel(). It is not called from
 * resolver_get(), and all is told within NP_RESOLVE_MS. */
const struct known *resolver_get(struct resolver *resolver, const char *name, struct resolution *resolution);
void resolution_cancel(struct resolution *resolution); /* fine if it does not wait */

/* Takes back the questions that nobody waits for any more: they are not repeated on the wire. Without this they go on, for
 * an answer is worth remembering. Not from inside of on_known(). */
void resolver_cancel(struct resolver *resolver);

void resolver_tick(struct resolver *resolver); /* every 50 ms or so */

static inline bool known_all(const struct known *known)
{
	return known->known_all_of[FAMILY_V6] && known->known_all_of[FAMILY_V4];
}
