/* SPDX-License-Identifier: MIT */
/*
 * The inspector's processes: started, told what they need to know and nothing
 * else, watched, and started again. While none is ready the gate refuses.
 */
#ifndef NP_DAEMON_WORKERS_H
#define NP_DAEMON_WORKERS_H

#include "base/buf.h"
#include "daemon/ledgers.h"
#include "inspect/link.h"
#include "kernel/kernel.h"
#include "loop/loop.h"
#include "session/gate.h"

struct workers;

struct workers_config {
	struct loop *loop;
	struct kernel *kernel;
	unsigned count;
	unsigned uid;
	const char *root;		 /* an empty directory, which is made */
	const char *names;		 /* a directory for what outlives a daemon, which is made */
	const char *roots;		 /* file with the certificates that origins are trusted by */
	const char *resolvers;		 /* for c-ares; NULL: those of /etc/resolv.conf */
	struct ledgers_config ledgers;	 /* but for count and data */
	void (*on_finished)(void *data); /* after workers_finish() */
	void *data;
};

int workers_new(const struct workers_config *config, const struct buf *policy, struct workers **ret);
/* After a start, when all sandboxes are known: forgets the names of sessions that have none any more, and what was counted
 * of sandboxes that are gone. */
void workers_recovered(struct workers *workers, bool (*is_used)(void *data, const char *session),
		       bool (*is_there)(void *data, uint64_t cgroup_id), void *data);
void workers_free(struct workers *workers);
unsigned workers_ready(const struct workers *workers);

/* Waits until they are ready, up to ms: who is told that the daemon is ready may count on them. */
void workers_await(struct workers *workers, unsigned ms);

/* A snapshot of the policy that holds from now on. */
int workers_policy(struct workers *workers, const struct buf *policy);
/* They take no more connections, finish what is open and end, which takes NP_DRAIN_MS at the most: then on_finished() is
 * called. None comes again. */
void workers_finish(struct workers *workers);
/* Ends them all; they come again with what holds then. */
void workers_stop(struct workers *workers);
/* A sandbox was registered or raised; it is gone. Failures end a worker rather than leave it with less than the truth. */
void workers_box(struct workers *workers, uint64_t cgroup_id, const char *sandbox, const char *session,
		 const struct np_rung *rung);
void workers_gone(struct workers *workers, uint64_t cgroup_id);
/* Sets has[i] where programs of a sandbox that are gone left something with an inspector that is not delivered. */
void workers_left(struct workers *workers, const uint64_t *cgroup_ids, size_t n, bool *has);
/* Returns when every worker has done what it was told so far; one that does not in time is killed. */
void workers_sync(struct workers *workers);
/* Returns when they have counted what sandboxes have sent by now; a worker that takes longer than a moment is not waited
 * for. */
void workers_settle(struct workers *workers);
/* Requests and tunnels that they have ended since this was asked last, because of a new level or policy. */
unsigned workers_cut(struct workers *workers);
/* What they counted and reported. */
struct ledgers *workers_ledgers(struct workers *workers);
/* The certificate of a session's authority, as PEM. -ENOENT: the session has no sandbox; -EAGAIN: no inspector. */
int workers_ca(struct workers *workers, const char *session, struct buf *out);

#endif
