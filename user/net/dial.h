/* SPDX-License-Identifier: MIT */
/* From a host to a connected socket: names are resolved here, and addresses that must not be reached are not. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "resolver/aliases.h"
#include "loop/loop.h"
#include "wire/hostname.h"

struct dialer;
struct dial;

struct dial_result {
	int error;	    /* 0, or -errno: -ENOENT no such name, -EAI: see words */
	int fd;		    /* connected, non-blocking, set to reset on close; the receiver's. -1 on error */
	struct route route; /* where it leads, borrowed; on error where it failed last, if anywhere */
	bool refused;	    /* every address was one that may not be reached */
	const char *words;  /* "the name does not exist", "connection refused", "timed out", ...; borrowed */
	uint64_t dns_us, connect_us;
};

/* May this address be dialled for this attempt? Asked for each address, literal ones too. It starts and cancels no dial. */
typedef bool dial_may_fn(void *ctx, const struct route *route);
typedef void dial_done_fn(void *ctx, const struct dial_result *result);

struct dial_terms {
	const struct host *host;
	uint16_t port;
	uint64_t owner; /* as struct resolution has it */
	dial_may_fn *may;
	dial_done_fn *done;
	void *ctx;
};

struct dialer_config {
	struct loop *loop;
	const char *resolvers; /* "192.0.2.53,[2001:db8::53]:5353", for c-ares; NULL or "": no names are resolved */
	const char *hosts;     /* text of /etc/hosts, or NULL */
};

int dialer_new(const struct dialer_config *config, struct dialer **ret);
void dialer_free(struct dialer *dialer); /* no dial may be open */

/* done is called exactly once, never before dial_start() returns, unless dial_cancel() comes first. */
int dial_start(struct dialer *dialer, const struct dial_terms *terms, struct dial **ret);
/* How long it may take to connect, instead of NP_CONNECT_MS; looking a name up does not count. */
void dial_set_connect(struct dial *dial, uint32_t ms);
void dial_cancel(struct dial *dial);
bool dial_is_resolving(const struct dial *dial); /* it has nothing to connect to yet */

/* What is asked for dials that are no more is not asked again: see resolver_cancel(). Not from inside of done(). */
void dialer_cancel(struct dialer *dialer);

/* Call every 50 ms or so: timeouts and the next eyeball. */
void dialer_tick(struct dialer *dialer);
