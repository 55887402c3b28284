/* SPDX-License-Identifier: MIT */
/*
 * What sessions did lately, for deciders: the last requests of each, and the bytes of bodies that went to each host. In memory, as
 * far as it was reported, and of the sessions that were last busy: a daemon that starts knows nothing.
 */
#pragma once

#include <stdint.h>
#include <sys/queue.h>

#include "base/buf.h"
#include "base/hash.h"
#include "base/table.h"
#include "vocab/limits.h"

struct trail;
TAILQ_HEAD(trail_queue, trail);

struct trails {
	struct table by_session;
	struct trail_queue list; /* the one that was busy last is last */
	size_t n;
};

struct trail_request {
	const char *session;
	const char *method, *url; /* of a connection of which nothing is seen: NULL, "host:port" or NULL */
	unsigned reason, status;
	uint64_t sent;
};

void trails_init(struct trails *trails);
void trails_free(struct trails *trails);
void trails_note(struct trails *trails, const struct hash_key *key, const struct trail_request *request);
void trails_forget(struct trails *trails, const struct hash_key *key, const char *session);
/* Members "sent_to_host" and "recent" of the JSON object at hand. */
void trails_put(const struct trails *trails, const struct hash_key *key, const char *session, const char *host,
		struct buf *out);
