/* SPDX-License-Identifier: MIT */
/*
 * What the session service needs of the inspectors, the second enforcement point, as an interface beside struct gate:
 * supervisor/ provides it, daemon/ joins the two, a unit test puts a recording one in its place.
 *
 * Inspectors can only lose reach: an inspector that cannot be reached, or does not answer in time, is ended, and the gate
 * refuses what it should have seen. So none of these functions fails.
 *
 * Reports on requests may arrive while a verb of the service is at work. They wait where they are, in the ledgers' rings,
 * which are bounded: no function but receive() may call back into the service.
 */
#ifndef NP_SESSION_INSPECTORS_H
#define NP_SESSION_INSPECTORS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sandbox.h"

struct inspectors {
	void *ctx;

	/* Sends them a sandbox's rung, after the kernel has it: a new sandbox, or one that was raised. They end what the rung
	 * forbids; sync() waits for that. sandbox: its id, empty when no record knows it. */
	void (*tighten)(void *ctx, uint64_t cgroup_id, const char *sandbox, const char *session,
			const struct np_rung *rung);
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

	/* Handles the reports that have arrived: called when a verb is over. It may look things up in the service and call
	 * service_sandbox_active(). */
	void (*receive)(void *ctx);
};

#endif
