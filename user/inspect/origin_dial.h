/* SPDX-License-Identifier: MIT */
/*
 * The way to an origin: a dial, or a dial of the upstream proxy that the policy names for the host and a CONNECT there. Either
 * ends with a socket on which the origin listens. What is asked of the proxy is a name: it resolves it, and nobody here
 * sees to which address. So by a proxy, names are judged by rules alone; addresses are judged as ever.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "net/dial.h"
#include "reason.h"

struct origin_dial;
struct worker;

struct origin_dial_result {
	int error; /* 0 or -errno */
	int fd;	   /* as struct dial_result has it */
	const struct route
		*route;	   /* where it leads, borrowed; NULL: the proxy knows. On error where it failed last, or NULL */
	const char *proxy; /* URL of the upstream proxy, which lasts as long as the worker; NULL: none */
	bool refused;	   /* the host, or every address of it, is one that may not be reached */
	enum np_reason reason; /* of another error: the host, or the proxy */
	const char *words;     /* borrowed */
	uint64_t dns_us, connect_us;
};
typedef void origin_dial_done_fn(void *ctx, const struct origin_dial_result *result);

struct origin_dial_terms {
	const struct host *host;
	uint16_t port;
	const struct session *session; /* on whose behalf */
	bool quiet; /* the origin says nothing before it is spoken to: bytes behind a proxy's answer are not its */
	uint32_t connect_ms; /* how long it may take to connect; 0: as long as all may */
	dial_may_fn *may;    /* asked for each address that is known here */
	origin_dial_done_fn
		*done; /* called exactly once, never before origin_dial_start() returns, unless it is cancelled */
	void *ctx;
};

int origin_dial_start(struct worker *worker, const struct origin_dial_terms *terms, struct origin_dial **ret);
void origin_dial_cancel(struct origin_dial *dial); /* NULL is fine */
bool origin_dial_is_resolving(const struct origin_dial *dial);
const char *origin_dial_proxy(const struct origin_dial *dial); /* NULL: none */

void origin_dials_clear(struct worker *worker); /* the worker ends; no dial may be open */
void origin_dials_tick(struct worker *worker, uint64_t now_ns);
