/* SPDX-License-Identifier: MIT */
/* Questions to the resolvers, by c-ares, on the loop. */
#ifndef NP_INSPECT_QUERY_H
#define NP_INSPECT_QUERY_H

#include <stdbool.h>

#include "inspect/answer.h"
#include "loop/loop.h"

struct asker;
struct query;

/* error is what answer_read() says, or -ETIMEDOUT; addresses and ttl_s are set if it is 0. */
typedef void query_told_fn(struct query *query, int error, const struct addresses *addresses, uint32_t ttl_s);

/* In the memory of whoever asks, who keeps it and the name while it is pending. */
struct query {
	struct asker *asker;
	const char *name; /* canonical */
	enum family family;
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
