/* SPDX-License-Identifier: MIT */
/* The policy that holds now, and the way from a file to there. */
#pragma once

#include "control/server.h"
#include "events/event.h"
#include "kernel/kernel.h"
#include "link/link.h"
#include "policy/snapshot.h"
#include "session/service.h"

struct supervisor; /* supervisor/supervisor.h */

struct loaded_policy {
	const char *file; /* NULL: what holds without one */
	struct policy *policy;
	struct buf record;		       /* what it was read from, for the inspector */
	struct vault *vault;		       /* the values of its credentials; set by who opened it */
	struct link_proxy_logins proxy_logins; /* of its upstream proxies, likewise; wiped */
	struct problems problems;	       /* its warnings */
	uint32_t epoch;			       /* in the gate; 0: not there yet */
	bool direct;			       /* of its tables: see struct gate_tables */
	uint64_t loaded_us;
	char who[64];
	/* The one before: events of the gate that are still on their way speak of it. */
	struct policy *before;
	uint32_t epoch_before;
};

/* Reads the file. On failure nothing is changed and failure->text names the place. */
int loaded_policy_open(struct loaded_policy *loaded, const char *file, struct failure *ret_failure);
void loaded_policy_close(struct loaded_policy *loaded);

/* Writes the policy that was opened down beside the one that holds; loaded_policy_turn() makes it hold. */
int loaded_policy_prepare(struct loaded_policy *loaded, struct kernel *kernel, struct failure *ret_failure);
/* The modes in which sandboxes start with a network of their own: see struct service_config. What reaches out past the inspector
 * has no way out of such a one, so where rules grant that, sandboxes in PROXIED share the host's. */
struct own_networks loaded_policy_own_networks(const struct loaded_policy *loaded);
/* Modes rise first, then the rules change, then what they forbid is cut: at no time holds more than one of the two
 * policies grants. */
int loaded_policy_turn(struct loaded_policy *loaded, struct kernel *kernel, struct supervisor *supervisor,
		       struct service *service, const char *who, struct policy_effect *ret,
		       struct failure *ret_failure);

/* Reads the file again and makes it the live policy, in the gate and for all sessions; or changes nothing and says why.
 * NOT_APPLIED or NOT_RECORDED: it is live, but a session could not be raised or a connection not be cut (yet). */
int loaded_policy_reload(struct loaded_policy *loaded, struct kernel *kernel, struct supervisor *supervisor,
			 struct service *service, const char *who, struct policy_reloaded *ret,
			 struct failure *ret_failure);

/* The rule that a decision of the gate names, and its policy; NULL: none, or one of a policy that is gone. */
const struct rule *loaded_policy_rule(const struct loaded_policy *loaded, const struct np_event *event,
				      const struct policy **ret_policy);
