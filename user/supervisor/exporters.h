/* SPDX-License-Identifier: MIT */
/*
 * What the policy's metrics: and events: bring to other systems of the host: a netpawl-export for each, started, watched and
 * started again. They observe: whatever becomes of them changes no decision.
 */
#pragma once

#include "base/buf.h"
#include "loop/loop.h"
#include "policy/policy.h"

struct exporters;

struct exporters_config {
	struct loop *loop;
	unsigned uid;			       /* of each; nothing else should run as it */
	const char *root;		       /* an empty directory */
	const char *dir;		       /* that has their places in the record; it is made */
	const char *journal;		       /* journald's socket, where the policy does not say; NULL: none */
	int (*lend)(void *data, unsigned uid); /* a connection to the control API, a reader's; -errno */
	void *data;
};

int exporters_new(const struct exporters_config *config, struct exporters **ret);
void exporters_free(struct exporters *exporters);
/* The policy that holds from now on. Whoever begins to export by it begins behind this event, whenever its process is ready. */
void exporters_policy(struct exporters *exporters, const struct policy *policy, uint64_t after);
void exporters_describe(const struct exporters *exporters, struct buf *out); /* an array, for the health's answer */
void exporters_metrics(const struct exporters *exporters, struct buf *out);
