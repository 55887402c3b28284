/* SPDX-License-Identifier: MIT */
/*
 * Where DNS queries of sandboxes come in and answers go out: UDP sockets that all
 * workers share. Knows whose query it is, and nothing of DNS.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "dns_origin.h"
#include "loop/loop.h"

struct dns_socket;

/* Who asked. May be kept: dns_socket_reply() notices when it is out of date. */
struct dns_client {
	uint64_t cgroup_id;  /* of the sandbox, as the kernel says */
	uint32_t generation; /* of the sandbox when it asked */
	uint32_t number;     /* of its entry in np_dns_origins */
	struct np_addr addr; /* that it asked from */
	uint16_t port;	     /* host order */
	bool v6;
	uint64_t netns;	       /* where it is: the kernel's cookie of its network namespace */
	struct np_addr server; /* the server that the program meant: a hint for people */
};

/* A query; data is gone when it returns. */
typedef void dns_query_fn(void *ctx, const struct dns_client *client, const char *data, size_t len);

struct dns_socket_config {
	struct loop *loop;
	int sockets[2]; /* IPv4, IPv6 (or the first one again); non-blocking, with SO_RCVMARK. They stay the caller's */
	int dns_origins; /* map np_dns_origins; likewise */
	dns_query_fn *query;
	void *ctx;
};

int dns_socket_new(const struct dns_socket_config *config, struct dns_socket **ret);
void dns_socket_free(struct dns_socket *port);
int dns_socket_open(struct dns_socket *port); /* queries may come */
/* Likewise at a socket in another network namespace, which is taken over, also when it fails; and no more from there. */
int dns_socket_listen(struct dns_socket *port, uint64_t netns, bool v6, int fd);
void dns_socket_unlisten(struct dns_socket *port, uint64_t netns);

/* 0; -ESTALE when the port that the query came from is no longer the sandbox's that asked, -errno when the answer did not
 * go: it is lost, as datagrams are. */
int dns_socket_reply(struct dns_socket *port, const struct dns_client *client, const void *data, size_t len);
