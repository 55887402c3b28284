/* SPDX-License-Identifier: MIT */
/*
 * A worker of the inspector: its loop, its tick, and what connections have gathered to write. Each other file of this
 * folder has a header of its own with what it owns; only the owner writes a struct's members (tests/layers).
 */
#pragma once

#include <sys/queue.h>

#include "base/buf.h"
#include "base/hash.h"
#include "base/table.h"
#include "inspect/hold.h"
#include "inspect/leg.h"
#include "inspect/listeners.h"
#include "inspect/memory.h"
#include "inspect/queries.h"
#include "inspect/report.h"
#include "inspect/secret_watch.h"
#include "inspect/stop.h"
#include "inspect/token_watch.h"
#include "loop/loop.h"
#include "secrets/placeholder.h"
#include "secrets/placeholder_set.h"
#include "secrets/secrets.h"

LIST_HEAD(session_list, session);
LIST_HEAD(sandbox_list, sandbox);
LIST_HEAD(client_list, client);
LIST_HEAD(upstream_list, upstream);
LIST_HEAD(leg_list, leg);
LIST_HEAD(origin_dial_list, origin_dial);
LIST_HEAD(proxy_url_list, proxy_url);
LIST_HEAD(listener_list, listener);

struct worker {
	struct loop *loop;
	int link;
	struct listener_list listeners; /* where connections come: listeners.c's */
	bool has_dead_listeners;	/* listeners.c's, too: some are to be freed */
	struct dns_server *dns;
	struct hash_key key;
	uint64_t now_ns; /* of the last tick: deadlines need no better */
	unsigned ticks;
	bool flushing;
	bool ready;
	struct reporter reporter;
	struct stopping stopping;
	struct memory_sum memory; /* of all sandboxes and sessions */
	/* What the daemon gave: daemon_link.c's. */
	struct policy *policy;
	struct roots *system; /* roots that netpawld gave */
	struct roots *roots;  /* and the policy's beside them */
	struct dialer *dialer;
	struct link_proxy_logins *proxy_logins,
		*next_proxy_logins;		/* of the policy's upstream proxies, of the next policy's */
	struct secrets secrets;			/* values of the policy's credentials */
	struct secret_watch secret_watch;	/* made of them: secret_watch.c's */
	struct placeholder_key placeholder_key; /* what sandboxes' placeholders are made of */
	struct sealer *sealer;			/* made of it: what tokens are sealed with. NULL: none can be */
	struct token_slots tokens;		/* that sessions have issued or used: token_watch.c's */
	/* Lists, each of the file that owns what is in it. */
	struct table sandboxes; /* by cgroup */
	struct session_list sessions;
	/* Those that a tick looks at, of thousands that are idle: with connections to origins, and of clients. */
	struct session_list pooling;
	struct sandbox_list talking;
	enum np_reason rejudging; /* why sandboxes.c is at it; 0: it is not */
	struct table sessions_by_name;
	struct buf spare;		  /* to gather in: none of a leg's own, so that one that waits is small */
	struct leg_list dirty[LEG_SIDES]; /* that have something to write: worker_flush() */
	unsigned n_clients;
	struct origin_dial_list origin_dials;
	struct proxy_url_list proxy_urls; /* origin_dial.c's */
	struct holds holds;		  /* what waits for an answer: hold.c's */
	int probes[2];			  /* route.c's, IPv4 and IPv6; -1: none can be had */
};

static inline struct roots *worker_roots(const struct worker *worker)
{
	return worker->roots ? worker->roots : worker->system;
}

/* What netpawld gives it; IPv4, then IPv6. */
struct worker_fds {
	int link;
	int listeners[2];
	int dns[2];
	int dns_origins; /* map np_dns_origins */
};
int worker_new(const struct worker_fds *fds, struct worker **ret);
int worker_run(struct worker *worker);
void worker_free(struct worker *worker);
int worker_open(struct worker *worker); /* all is known: connections may come */

/* What is resolved for nobody any more, on behalf of dials or of queries, is not asked for again on the wire. */
void worker_cancel_unwanted(struct worker *worker);
/* Call at the end of whatever the loop called: writes what was gathered, in as few records as can be. */
void worker_flush(struct worker *worker);
