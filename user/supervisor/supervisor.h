/* SPDX-License-Identifier: MIT */
/*
 * The inspector's processes: started, briefed with what they need to know and nothing
 * else, watched, and started again. While none is ready the gate refuses.
 *
 * What they report waits in their ledgers until the loop calls us, or supervisor_receive()
 * is called: whoever waits for an inspector's answer in the middle of something is not called back.
 */
#pragma once

#include "base/buf.h"
#include "supervisor/ledgers.h"
#include "link/ask_message.h"
#include "link/link.h"
#include "kernel/kernel.h"
#include "loop/loop.h"
#include "secrets/placeholder.h"
#include "secrets/secrets.h"
#include "session/inspectors.h"

struct supervisor;

struct supervisor_config {
	struct loop *loop;
	struct kernel *kernel;
	unsigned count;
	unsigned uid;
	const char *root;	       /* an empty directory, which is made */
	const char *names, *cas;       /* directories for what outlives a daemon, which are made */
	const char *roots;	       /* file with the certificates that origins are trusted by */
	const struct secrets *secrets; /* values of credentials; they change, see supervisor_secret() */
	const struct placeholder_key *placeholder_key;
	const char *resolvers;		 /* for c-ares; NULL: those of /etc/resolv.conf */
	struct ledgers_config ledgers;	 /* but for count and data */
	void (*on_finished)(void *data); /* after supervisor_finish() */
	/* One asks a person, or waits no longer; one that held things for answers is gone. Called as reports are. */
	void (*on_ask)(void *data, const struct question_waiter *from, const struct link_ask *ask);
	void (*on_asks_lost)(void *data, unsigned inspector);
	/* The value of this credential was in a request of this sandbox, which may be gone by now. Called as reports are. */
	void (*on_leak)(void *data, uint64_t cgroup_id, const char *session, const char *credential);
	void (*on_debug)(void *data); /* an inspector has shown itself, or has had the time to */
	void *data;
};

/* logins: of the upstream proxies of the policy. It keeps a copy, for inspectors that start, and wipes it. */
int supervisor_new(const struct supervisor_config *config, const struct buf *policy,
		   const struct link_proxy_logins *logins, struct supervisor **ret);
/* After a start, when all sandboxes are known: forgets the names and CAs of sessions that have none any more, and what was
 * counted of sandboxes that are gone. Then the inspectors are told of all, in one piece, and take connections. */
void supervisor_recovered(struct supervisor *supervisor, bool (*is_used)(void *data, const char *session),
			  bool (*is_there)(void *data, uint64_t cgroup_id), void *data);
void supervisor_free(struct supervisor *supervisor);
unsigned supervisor_ready(const struct supervisor *supervisor);
/* There should be inspectors, and none has become ready for some time: how the last start of one ended. NULL: there is one, or may be in a
 * moment. */
const char *supervisor_unready(struct supervisor *supervisor);

/* Waits until the inspectors are ready, up to ms: whoever is told that the daemon is ready may rely on them. */
void supervisor_await(struct supervisor *supervisor, unsigned ms);

/* A snapshot of the policy that holds from now on. */
int supervisor_policy(struct supervisor *supervisor, const struct buf *policy, const struct link_proxy_logins *logins);
/* This value of config.secrets has changed, or is gone; and all of them may have, before supervisor_policy(). */
void supervisor_secret(struct supervisor *supervisor, const char *policy, const char *name);
/* Sandboxes may be made with a way out of a network of their own, by the policy that holds from now on. */
void supervisor_way_out(struct supervisor *supervisor, bool wanted);
/* Has inspectors listen in networks of sandboxes' own where that failed before; in how many it still does. */
unsigned supervisor_networks_check(struct supervisor *supervisor);
/* The host's rules for ways out, if there are some. 0: they are there; 1: they were not, and are again; -errno. *ret_shut: for want of room
 * in the table of connections nobody opens one by them. */
int supervisor_way_out_check(struct supervisor *supervisor, bool *ret_shut);
/* What this host lacks for it; empty: nothing that is known. NULL: the policy does not say so. */
const char *supervisor_way_out_problem(const struct supervisor *supervisor);
/* They take no more connections, finish what is open and end, which takes NP_DRAIN_MS at the most: then on_finished() is
 * called. None comes again. */
void supervisor_finish(struct supervisor *supervisor);
/* Ends them all; they come again with what holds then. */
void supervisor_stop(struct supervisor *supervisor);
/* The second enforcement point, for the session service. Failures end a worker rather than leave it with less than the
 * truth. */
struct inspectors supervisor_inspectors(struct supervisor *supervisor);
/* Handles the reports that have come by now, and what those that died left. Nothing else does but supervisor_report() and the loop's
 * callbacks. */
void supervisor_receive(struct supervisor *supervisor);
/* The same of reports alone, in the middle of a verb, for a sandbox whose cgroup is another's when it is over: what inspectors ask and say
 * beside waits. */
void supervisor_report(struct supervisor *supervisor);
/* Returns when they have counted and reported what sandboxes have sent by now; a worker that takes longer than a moment is
 * not waited for. */
void supervisor_settle(struct supervisor *supervisor);
/* What they counted and reported. */
struct ledgers *supervisor_ledgers(struct supervisor *supervisor);
/* The certificate of a session's CA, as PEM. -ENOENT: the session has no sandbox; -EAGAIN: no inspector. */
int supervisor_ca(struct supervisor *supervisor, const char *session, struct buf *out);
bool supervisor_keeps_cas(const struct supervisor *supervisor); /* for the next daemon */
void supervisor_cas_wipe(const char *path);			/* without one: nobody is left who trusts them */

/* What they show of themselves; on_debug() of the config is called when a question may be over. */
struct inspectors_debug supervisor_debug(struct supervisor *supervisor);
