/* SPDX-License-Identifier: MIT */
/*
 * The policy's deciders: started or dialled, asked, watched, and started or dialled again. Each has a netpawl-decide, which reads
 * what it sends; the daemon never waits for either. Whatever goes wrong is an answer that does not come: the request is refused.
 */
#pragma once

#include "base/buf.h"
#include "kernel/kernel.h"
#include "loop/loop.h"
#include "policy/policy.h"
#include "session/deciders.h"
#include "vocab/decision.h"

struct deciders;

struct deciders_config {
	struct loop *loop;
	struct kernel *kernel;
	unsigned uid;	      /* of each netpawl-decide */
	unsigned command_uid; /* of the commands of deciders; nothing else should run as it */
	const char *root;     /* an empty directory */
	void (*on_decision)(void *data, const struct decision *decision); /* see struct decider_calls */
	void *data;
};

int deciders_new(const struct deciders_config *config, struct deciders **ret);
void deciders_free(struct deciders *deciders);
/* The policy that holds from now on. One that it has as before goes on; what others have not answered is not answered. */
void deciders_policy(struct deciders *deciders, const struct policy *policy);
struct decider_calls deciders_calls(struct deciders *deciders);
void deciders_describe(const struct deciders *deciders, struct buf *out); /* an array, for the health's answer */
void deciders_metrics(const struct deciders *deciders, struct buf *out);
