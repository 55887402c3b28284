/* SPDX-License-Identifier: MIT */
/*
 * The inspector's processes: started, told what they need to know and nothing
 * else, watched, and started again. While none is ready the gate refuses.
 */
#ifndef NP_SUPERVISOR_SUPERVISOR_H
#define NP_SUPERVISOR_SUPERVISOR_H

#include "base/buf.h"
#include "supervisor/ledgers.h"
#include "link/link.h"
#include "kernel/kernel.h"
#include "loop/loop.h"
#include "session/gate.h"

struct supervisor;

struct supervisor_config {
	struct loop *loop;
	struct kernel *kernel;
	unsigned count;
	unsigned uid;
	const char *root;		 /* an empty directory, which is made */
	const char *names;		 /* a directory for what outlives a daemon, which is made */
	const char *roots;		 /* file with the certificates that origins are trusted by */
	const char *resolvers;		 /* for c-ares; NULL: those of /etc/resolv.conf */
	struct ledgers_config ledgers;	 /* but for count and data */
	void (*on_finished)(void *data); /* after supervisor_finish() */
	void *data;
};

int supervisor_new(const struct supervisor_config *config, const struct buf *policy, struct supervisor **ret);
/* After a start, when all sandboxes are known: forgets the names of sessions that have none any more, and what was counted
 * of sandboxes that are gone. */
void supervisor_recovered(struct supervisor *supervisor, bool (*is_used)(void *data, const char *session),
			  bool (*is_there)(void *data, uint64_t cgroup_id), void *data);
void supervisor_free(struct supervisor *supervisor);
unsigned supervisor_ready(const struct supervisor *supervisor);

/* Waits until they are ready, up to ms: who is told that the daemon is ready may count on them. */
void supervisor_await(struct supervisor *supervisor, unsigned ms);

/* A snapshot of the policy that holds from now on. */
int supervisor_policy(struct supervisor *supervisor, const struct buf *policy);
/* They take no more connections, finish what is open and end, which takes NP_DRAIN_MS at the most: then on_finished() is
 * called. None comes again. */
void supervisor_finish(struct supervisor *supervisor);
/* Ends them all; they come again with what holds then. */
void supervisor_stop(struct supervisor *supervisor);
/* A sandbox was registered or raised; it is gone. Failures end a worker rather than leave it with less than the truth. */
void supervisor_sandbox(struct supervisor *supervisor, uint64_t cgroup_id, const char *sandbox, const char *session,
			const struct np_rung *rung);
void supervisor_gone(struct supervisor *supervisor, uint64_t cgroup_id);
/* Sets has[i] where programs of a sandbox that are gone left something with an inspector that is not delivered. */
void supervisor_left(struct supervisor *supervisor, const uint64_t *cgroup_ids, size_t n, bool *has);
/* Returns when every worker has done what it was told so far; one that does not in time is killed. */
void supervisor_sync(struct supervisor *supervisor);
/* Returns when they have counted what sandboxes have sent by now; a worker that takes longer than a moment is not waited
 * for. */
void supervisor_settle(struct supervisor *supervisor);
/* Requests and tunnels that they have ended since this was asked last, because of a new level or policy. */
unsigned supervisor_cut(struct supervisor *supervisor);
/* What they counted and reported. */
struct ledgers *supervisor_ledgers(struct supervisor *supervisor);
/* The certificate of a session's authority, as PEM. -ENOENT: the session has no sandbox; -EAGAIN: no inspector. */
int supervisor_ca(struct supervisor *supervisor, const char *session, struct buf *out);

#endif
