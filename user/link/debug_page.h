/* SPDX-License-Identifier: MIT */
/*
 * What an inspector shows of itself to whoever looks for a fault: LINK_DEBUG. The daemon asks with struct debug_ask, and one
 * message answers: a page, with as many entries as fit. Nothing of what requests and responses say is in it: no path, no
 * header, no byte of a body, no key.
 */
#pragma once

#include <stdbool.h>

#include "link/link.h"

struct debug_ask {
	uint32_t number;	     /* of the question: its answer has it, too */
	uint32_t after;		     /* so many entries are left out: those of earlier pages */
	char session[NP_LABEL_SIZE]; /* empty: all of them */
};

/* In this order. */
enum debug_kind {
	DEBUG_SANDBOX,
	DEBUG_CLIENT,	/* a connection of a sandbox */
	DEBUG_EXCHANGE, /* a request, on its client's way to an origin */
	DEBUG_ORIGIN,	/* a connection to an origin, of a session's pool */
	DEBUG_QUERY,	/* a DNS query that waits */
	DEBUG_KINDS,
};

/* What an entry is doing; text in debug_state_name(). */
enum debug_client {
	DEBUG_CLIENT_DNS,
	DEBUG_CLIENT_SNIFF,
	DEBUG_CLIENT_WAIT_CA,
	DEBUG_CLIENT_HANDSHAKE,
	DEBUG_CLIENT_H1,
	DEBUG_CLIENT_H2,
	DEBUG_CLIENT_TUNNEL,
};
enum debug_exchange {
	DEBUG_EXCHANGE_JUDGING,
	DEBUG_EXCHANGE_HELD,
	DEBUG_EXCHANGE_RESOLVING,
	DEBUG_EXCHANGE_CONNECTING,
	DEBUG_EXCHANGE_HANDSHAKE,
	DEBUG_EXCHANGE_SENDING,
	DEBUG_EXCHANGE_WAITING,
	DEBUG_EXCHANGE_RECEIVING,
};
enum debug_origin { DEBUG_ORIGIN_HANDSHAKE, DEBUG_ORIGIN_BUSY, DEBUG_ORIGIN_IDLE };
enum debug_query { DEBUG_QUERY_NAME, DEBUG_QUERY_RECORDS };

struct debug_entry {
	uint8_t kind;	    /* enum debug_kind */
	uint8_t state;	    /* of its kind's enum; 0 of a sandbox */
	uint8_t life;	    /* enum leg_life of a connection; else 0 */
	uint8_t tls, h2;    /* of a connection: bool */
	uint16_t port;	    /* that it means to reach */
	uint16_t type;	    /* of a query */
	uint32_t n_clients; /* a sandbox's; its exchanges, or those of a connection; its queries that wait */
	uint32_t n_exchanges;
	uint32_t n_queries;
	uint32_t idle_ms; /* an exchange: since a byte moved; a query: since it came */
	uint64_t cgroup_id;
	uint64_t held;	     /* bytes in the inspector's memory */
	uint64_t unsent;     /* of a connection: those that its peer has not taken, the kernel's among them */
	struct np_rung rung; /* a sandbox's */
	char session[NP_LABEL_SIZE];
	char host[256];
};

/* In all, whatever is on the page. */
struct debug_sums {
	uint32_t count[DEBUG_KINDS];
	uint32_t clients[DEBUG_CLIENT_TUNNEL + 1]; /* by state */
	uint32_t sessions;
	uint32_t n_clients; /* of the whole inspector */
	uint64_t held;	    /* likewise: bytes that somebody does not take */
};

struct debug_page {
	uint32_t number;
	uint32_t after;
	uint32_t n;    /* entries that follow */
	uint32_t left; /* that come after those */
	struct debug_sums sums;
	char policy[65]; /* hash */
	struct debug_entry entries[];
};
#define DEBUG_ENTRIES_MAX ((LINK_BYTES_MAX - sizeof(struct debug_page)) / sizeof(struct debug_entry))

/* The page in a message, or NULL for nonsense: what it returns is in bounds, and its strings end. */
const struct debug_page *debug_page_read(const void *data, size_t len);
const char *debug_state_name(enum debug_kind kind, unsigned state); /* NULL: there is no such state */
const char *debug_life_name(unsigned life);			    /* NULL: there is no such life */
