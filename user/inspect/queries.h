/* SPDX-License-Identifier: MIT */
/* DNS queries of sandboxes. */
#ifndef NP_INSPECT_QUERIES_H
#define NP_INSPECT_QUERIES_H

#include <sys/queue.h>

#include "addr.h"
#include "dns/socket.h"
#include "link/link.h"

struct client;
struct sandbox;
struct session;
struct worker;

TAILQ_HEAD(waiting_queue, waiting);

void query_start(void *worker, const struct dns_client *origin, const char *data, size_t len); /* a dns_ask_fn */
size_t query_feed(struct client *client, const char *data, size_t len);			       /* over TCP */
void query_named(struct worker *worker, const struct link_name *message);		       /* the daemon's answer */
void query_records(void *worker, const char *name, uint16_t type);			       /* a records_heard_fn */
void queries_tick(struct worker *worker);
void queries_forget(struct worker *worker, const struct sandbox *sandbox,
		    const struct client *client); /* of one of them */
void queries_rejudge(struct worker *worker,
		     const struct sandbox *sandbox); /* what it waits for may be refused by now */
/* Whatever names are resolved for nobody any more, on behalf of dials or of queries, are not asked for again on the wire. */
void queries_cancel_unwanted(struct worker *worker);
/* The name that a synthetic address stands for in this session, or NULL. It counts as a use. */
const char *query_reverse(struct worker *worker, struct session *session, const struct np_addr *addr);

#endif
