/* SPDX-License-Identifier: MIT */
/* Questions to the resolvers, by c-ares, on the loop. */
#ifndef NP_INSPECT_QUERY_H
#define NP_INSPECT_QUERY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "loop/loop.h"

struct asker;
struct query;

/* 0: data is a message that came, for answer.h to read. -ENOENT: nobody knows such a name; -ETIMEDOUT; -EREMOTEIO. */
typedef void query_told_fn(struct query *query, int error, const uint8_t *data, size_t len);

/* In the memory of whoever asks, who keeps it and the name while it is pending. */
struct query {
	struct asker *asker;
	const char *name; /* canonical */
	uint16_t type;	  /* ns_t_a, ... */
	query_told_fn *told;
	bool pending, edns;
};

/* resolvers: as ares_set_servers_ports_csv() takes them. No file is needed, here or later (c-ares looks for
 * /dev/urandom once, and what it does not find there is not used). 0, -ENOMEM or -EINVAL. */
int asker_new(struct loop *loop, const char *resolvers, struct asker **ret);
void asker_free(struct asker *asker); /* nothing is told any more */

/* One answer, perhaps before this returns. What takes more than NP_RESOLVE_MS is given up at about that time. */
void query_send(struct query *query);
void asker_tick(struct asker *asker); /* every 50 ms or so */

#endif
