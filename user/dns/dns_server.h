/* SPDX-License-Identifier: MIT */
/*
 * The DNS server of sandboxes, over UDP and TCP: judge.h decides, synthetic_names.h knows the addresses, the resolvers
 * have records where a rule says so. A query waits here until its name has an index or its records are known.
 *
 * The worker owns the sandboxes, the connections and the link to the daemon, which gives out indexes: struct
 * dns_server_config is how the server calls it.
 */
#pragma once

#include <sys/queue.h>
#include <sys/types.h>

#include "dns/judge.h"
#include "dns/socket.h"
#include "loop/loop.h"

struct dns_server;

TAILQ_HEAD(waiting_queue, waiting);

/* A session's part: a member of its owner's struct, as is a sandbox's. Only dns_server.c writes them. */
struct dns_session {
	const char *name;    /* USER/SESSION; the owner's */
	struct names *names; /* that have a synthetic address */
	struct waiting_queue queries;
};
struct dns_sandbox {
	struct dns_session *session;
	const struct np_rung *rung; /* of the sandbox, as it is when it is looked at */
	unsigned n_queries;	    /* that wait */
};

struct dns_server_config {
	struct loop *loop;
	int sockets[2];	 /* as of struct dns_socket_config */
	int dns_origins; /* the map np_dns_origins, as there */
	uint64_t now_ns;
	void *ctx; /* for: */
	/* Who sent a datagram, if it is in PROXIED; else NULL, and it is dropped. */
	struct dns_sandbox *(*sandbox)(void *ctx, const struct dns_client *client);
	/* The name was looked up or is in use: it wants an index (refused: of those for names that no rule allows), which
	 * dns_server_named() brings. If this is lost, the client asks again. */
	void (*want)(void *ctx, struct dns_session *session, const char *name, bool refused);
	void (*count)(void *ctx, struct dns_sandbox *sandbox); /* it has made another query */
	/* A query is about to be answered. */
	void (*report)(void *ctx, struct dns_sandbox *sandbox, const struct dns_judged *judged);
	/* Over TCP: an answer for the connection, with its length in front; and whether it takes any more of them now. */
	void (*send)(void *ctx, void *connection, const void *data, size_t len);
	bool (*takes)(void *ctx, void *connection);
	void (*answered)(void *ctx); /* after answers that the loop and not the owner brought about */
};

int dns_server_new(const struct dns_server_config *config, struct dns_server **ret);
void dns_server_free(struct dns_server *server); /* NULL is fine. No query waits */
/* Whom to ask for records, once: see nameservers_new(). */
int dns_server_resolvers(struct dns_server *server, const char *resolvers);
void dns_server_policy(struct dns_server *server, const struct policy *policy); /* from now on; borrowed */
int dns_server_open(struct dns_server *server);					/* with all of that: queries may come */
/* See dns_socket_listen(), dns_socket_unlisten(). */
int dns_server_listen(struct dns_server *server, uint64_t netns, bool v6, int fd);
void dns_server_unlisten(struct dns_server *server, uint64_t netns);
void dns_server_tick(struct dns_server *server, uint64_t now_ns); /* every 50 ms or so */

int dns_session_init(struct dns_session *session, const struct hash_key *key);
void dns_session_free(struct dns_session *session);

/* What came over TCP: answers the whole queries in it, as many as have a turn. How many bytes it used; -EPROTO when what comes
 * cannot be a query. */
ssize_t dns_server_feed(struct dns_server *server, struct dns_sandbox *sandbox, void *connection, const char *data,
			size_t len);
/* The name has this index; 0: it gets none. */
void dns_server_named(struct dns_server *server, struct dns_session *session, uint32_t index, const char *name);
/* The name that a synthetic address stands for in this session, or NULL. It counts as a use. */
const char *dns_server_reverse(struct dns_server *server, struct dns_session *session, const struct np_addr *addr);
/* Policy or rung changed: what a query waits for may be refused by now. */
void dns_server_rejudge(struct dns_server *server, const struct dns_sandbox *sandbox);
/* The sandbox, or the connection, is no more (the other is NULL). */
void dns_server_forget(struct dns_server *server, const struct dns_sandbox *sandbox, const void *connection);
/* All queries that wait, the oldest first. */
struct dns_waiting {
	const char *name;
	uint16_t records; /* type of the records that it waits for; 0: an address */
	uint64_t since_ns;
};
void dns_server_each(const struct dns_server *server,
		     void (*fn)(void *ctx, const struct dns_sandbox *sandbox, const struct dns_waiting *query),
		     void *ctx);
/* Records that no query waits for any more are not asked for again on the wire. */
void dns_server_cancel_unwanted(struct dns_server *server);
