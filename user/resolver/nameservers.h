/* SPDX-License-Identifier: MIT */
/* Questions to the resolvers, by c-ares, on the loop. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "loop/loop.h"

struct nameservers;
struct query;
struct transmission;

/* 0: data is a message that came, for wire/dns_answer.h to read. -ENOENT: nobody knows such a name; -ETIMEDOUT;
 * -EREMOTEIO; -ECANCELED: by nameservers_cancel(). */
typedef void query_done_fn(struct query *query, int error, const uint8_t *data, size_t len);

/* In the memory of whoever asks, who keeps it and the name while it is pending. */
struct query {
	struct nameservers *nameservers;
	const char *name; /* canonical */
	uint16_t type;	  /* ns_t_a, ... */
	query_done_fn *known_all_of;
	bool pending, edns;
	struct transmission *transmission; /* while it is pending */
	LIST_ENTRY(query) of_transmission;
};

/* resolvers: as ares_set_servers_ports_csv() takes them. No file is needed, here or later (c-ares looks for
 * /dev/urandom once, and what it does not find there is not used). 0, -ENOMEM or -EINVAL. */
int nameservers_new(struct loop *loop, const char *resolvers, struct nameservers **ret);
void nameservers_free(struct nameservers *nameservers); /* nothing is told any more */

/* One answer, perhaps before this returns. What takes more than NP_RESOLVE_MS is given up at about that time. with: another
 * query that is wanted exactly as long as this one, or NULL; they share sockets if it is pending. */
void query_send(struct query *query, const struct query *with);
void nameservers_tick(struct nameservers *nameservers); /* every 50 ms or so */

/* Takes back every query that is not wanted (any more): when this returns nothing more of it is sent, and it was told
 * -ECANCELED. Not from inside of known_all_of(). */
typedef bool query_wanted_fn(void *ctx, const struct query *query);
void nameservers_cancel(struct nameservers *nameservers, query_wanted_fn *wanted, void *ctx);
