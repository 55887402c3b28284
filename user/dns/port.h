/* SPDX-License-Identifier: MIT */
/*
 * Where DNS queries of sandboxes come in and answers go out: UDP sockets that all
 * workers share. Knows whose query it is, and nothing of DNS.
 */
#ifndef NP_DNS_PORT_H
#define NP_DNS_PORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ask.h"
#include "loop/loop.h"

struct dns_port;

/* Who asked. May be kept: dns_port_reply() notices when it is out of date. */
struct dns_asker {
	uint64_t cgroup_id;  /* of the sandbox, as the kernel says */
	uint32_t generation; /* of the sandbox when it asked */
	uint32_t number;     /* of its entry in np_asks */
	struct np_addr addr; /* that it asked from */
	uint16_t port;	     /* host order */
	bool v6;
	struct np_addr asked; /* the server that the program meant: a hint for people */
};

/* A query; data is gone when it returns. */
typedef void dns_ask_fn(void *ctx, const struct dns_asker *asker, const char *data, size_t len);

struct dns_port_config {
	struct loop *loop;
	int sockets[2]; /* IPv4, IPv6 (or the first one again); non-blocking, with SO_RCVMARK. They stay the caller's */
	int asks;	/* map np_asks; likewise */
	dns_ask_fn *ask;
	void *ctx;
};

int dns_port_new(const struct dns_port_config *config, struct dns_port **ret);
void dns_port_free(struct dns_port *port);
int dns_port_open(struct dns_port *port); /* queries may come */

/* 0; -ESTALE when the port that the query came from is no longer the asker's, -errno when the answer did not go: it is
 * lost, as datagrams are. */
int dns_port_reply(struct dns_port *port, const struct dns_asker *asker, const void *data, size_t len);

#endif
