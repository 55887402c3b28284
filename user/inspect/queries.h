/* SPDX-License-Identifier: MIT */
/* What the DNS server of dns/ has to do with the rest of a worker: whose a query is, whom it is reported to. */
#pragma once

#include "dns/dns_server.h"

struct client;
struct worker;
struct worker_fds;

int queries_new(struct worker *worker, const struct worker_fds *fds, struct dns_server **ret);
size_t query_feed(struct client *client, const char *data, size_t len); /* over TCP */
