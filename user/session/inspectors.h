/* SPDX-License-Identifier: MIT */
/*
 * What the session service needs of the inspectors, the second enforcement point, as an interface beside struct gate:
 * supervisor/ provides it, daemon/ joins the two, a unit test puts a recording one in its place.
 *
 * Inspectors can only lose reach: an inspector that cannot be reached, or does not answer in time, is ended, and the gate
 * refuses what it should have seen. So none of these functions fails, but for one that gives.
 *
 * Reports on requests may arrive while a verb of the service is at work. They wait where they are, in the ledgers' rings,
 * which are bounded: no function but receive() may call back into the service.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "sandbox.h"
#include "session/gate.h"
#include "vocab/question_reply.h"

/* Something that an inspector holds until a person has answered. */
struct question_waiter {
	unsigned inspector;
	int pid;	 /* of its process: another one knows nothing of it */
	uint64_t number; /* of what it holds */
};

struct question_news {
	enum question_reply reply;
	uint64_t question; /* id */
	unsigned reason;   /* enum np_reason of a refusal */
	const char *words; /* or NULL */
	uint32_t body;	   /* of REPLY_BODY: bytes */
	bool once;	   /* of REPLY_ALLOWED: it says whether it takes it (service_question_taken()), or leaves */
};

/* The network namespace of a sandbox that is not in the host's, for who starts its first process: a file that leads there, as long as this daemon runs and
 * the sandbox is there, and the number that tells that it is the right one. */
struct sandbox_netns {
	char path[64];
	uint64_t inode;
	bool wired; /* it has devices beside loopback */
};

struct inspectors {
	void *ctx;

	/* Makes one for a new sandbox, with nothing but loopback in it; steered: and with the inspectors' listeners; way_out: and with
	 * a way to beyond the host, which is forwarded and masqueraded. It goes when the sandbox is forgotten. 0; -ENONET: this host does
	 * not forward; or another -errno. */
	int (*netns_make)(void *ctx, uint64_t cgroup_id, bool steered, bool way_out);
	/* Has the inspectors listen in the one that the processes of an adopted cgroup live in, unless it is the host's; and they
	 * make no sockets in any other from then on. It is left when the sandbox is forgotten. path: a file that leads to the one
	 * that they will live in, where none of them is there yet; NULL: they tell. 0 or -errno; -EXDEV: they live in another one;
	 * -EINVAL: path leads to none, or to the host's. */
	int (*netns_join)(void *ctx, const struct gate_cgroup *cgroup, const char *path);
	/* Does it have one that this daemon has not found again, since nobody was in it at the start? netns_join() finds it then as soon
	 * as somebody is, and no other. */
	bool (*netns_lost)(void *ctx, uint64_t cgroup_id);
	/* That of a sandbox; -ENOENT: it has none, but shares the host's. */
	int (*netns_find)(void *ctx, uint64_t cgroup_id, struct sandbox_netns *ret);

	/* Sends them a sandbox's rung, after the kernel has it: a new sandbox, or one that was raised. They end what the rung
	 * forbids; sync() waits for that. sandbox: its id, empty when no record knows it. */
	void (*tighten)(void *ctx, uint64_t cgroup_id, const char *sandbox, const char *session,
			const struct np_rung *rung);
	/* Asks for the answers that sync() waits for: whoever has something else to do calls this first. What is sent after it is asked for
	 * anew. */
	void (*sync_begin)(void *ctx);
	/* Returns when every inspector has done all that it was sent. The number of requests and tunnels that a rung or a
	 * policy has ended since the last call. */
	unsigned (*sync)(void *ctx);
	/* The processes of a sandbox are about to be killed (or, false, will not be after all): what is open ends with them,
	 * and its events say so. Waits until every inspector knows. An unknown one is fine. */
	void (*ending)(void *ctx, uint64_t cgroup_id, bool is);
	/* Sets has[i] where the programs of a sandbox, which are gone, left something with an inspector that is not delivered
	 * yet. Waits for their answers. */
	void (*left)(void *ctx, const uint64_t *cgroup_ids, size_t n, bool *has);
	/* The kernel has forgotten a sandbox: what it still has open ends, and they forget it, too. Waits until that is done.
	 * An unknown one is fine. */
	void (*forget)(void *ctx, uint64_t cgroup_id);
	/* A sandbox is over, but the kernel has not forgotten its cgroup, which lives on. The same, but its network namespace stays: the
	 * gate goes on judging what its devices send, as SECURITY.md says. An unknown one is fine. */
	void (*leave)(void *ctx, uint64_t cgroup_id);

	/* Tells one that asked what came of it; to NULL: tells all of them. One that is gone is fine. */
	void (*reply)(void *ctx, const struct question_waiter *to, const struct question_news *news);

	/* Handles the reports that have arrived: called when a verb is over. It may look things up in the service and call
	 * service_sandbox_active() and what questions have. */
	void (*receive)(void *ctx);
};

/*
 * What they show of themselves, for whoever looks for a fault. ask() sends the question to every one of them, for one session
 * or ("") all, without so many entries of earlier pages; nobody waits for the answers: done() says whether to look again
 * later. -EBUSY: another question is open. What came is then written, as members of the JSON object at hand.
 */
struct inspectors_debug {
	void *ctx;
	int (*ask)(void *ctx, const char *session, uint32_t after, uint32_t *ret_number);
	bool (*done)(void *ctx, uint32_t number); /* all have answered, or had NP_DEBUG_MS for it */
	/* What was sent to them of a sandbox, and what each takes its rung for. False: one of these is another than rung. */
	bool (*rungs)(void *ctx, uint32_t number, uint64_t cgroup_id, const struct np_rung *rung, struct buf *out);
	void (*session)(void *ctx, const char *session, struct buf *out); /* its CA, its names */
	void (*inspectors)(void *ctx, uint32_t number, struct buf *out);  /* the last: the question is over */
};
