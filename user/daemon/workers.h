/* SPDX-License-Identifier: MIT */
/*
 * The inspector's processes: started, told what they need to know and nothing
 * else, watched, and started again. While none is ready the gate refuses.
 */
#ifndef NP_DAEMON_WORKERS_H
#define NP_DAEMON_WORKERS_H

#include "base/buf.h"
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
	const char *root;      /* an empty directory, which is made */
	const char *names;     /* a directory for what outlives a daemon, which is made */
	const char *roots;     /* file with the certificates that origins are trusted by */
	const char *resolvers; /* for c-ares; NULL: those of /etc/resolv.conf */
	void (*on_request)(void *data, const struct link_request *request, const char *const tails[LINK_TAILS]);
	void *data;
};

int workers_new(const struct workers_config *config, const struct buf *policy, struct workers **ret);
/* After a start: forgets the names of sessions that have no sandbox any more. */
void workers_names_sweep(struct workers *workers, bool (*is_used)(void *data, const char *session), void *data);
void workers_free(struct workers *workers);
unsigned workers_ready(const struct workers *workers);

/* Waits until they are ready, up to ms: who is told that the daemon is ready may count on them. */
void workers_await(struct workers *workers, unsigned ms);

/* A snapshot of the policy that holds from now on. */
int workers_policy(struct workers *workers, const struct buf *policy);
/* Ends them all; they come again with what holds then. */
void workers_stop(struct workers *workers);
/* A sandbox was registered or raised; it is gone. Failures end a worker rather than leave it with less than the truth. */
void workers_box(struct workers *workers, uint64_t cgroup_id, const char *session, const struct rung *rung);
void workers_gone(struct workers *workers, uint64_t cgroup_id);
/* Returns when every worker has done what it was told so far; one that does not in time is killed. */
void workers_sync(struct workers *workers);
/* The certificate of a session's authority, as PEM. -ENOENT: the session has no sandbox; -EAGAIN: no inspector. */
int workers_ca(struct workers *workers, const char *session, struct buf *out);

#endif
