/* SPDX-License-Identifier: MIT */
/*
 * Tells somebody that a question waits: approval: notify:. A command of the policy is run, or a unix socket or a loopback URL is
 * posted to, with the id and a line about it, and nothing else. Nobody waits for it: what fails, is late or is too much is
 * counted and logged, and changes no answer.
 */
#pragma once

#include "base/buf.h"
#include "kernel/kernel.h"
#include "loop/loop.h"
#include "policy/policy.h"

struct notifier;

struct notifier_config {
	struct loop *loop;
	struct kernel *kernel;
	unsigned uid; /* of the command; nothing else should run as it */
};

int notifier_new(const struct notifier_config *config, struct notifier **ret);
void notifier_free(struct notifier *notifier);
void notifier_policy(struct notifier *notifier, const struct policy *policy); /* that holds from now on */
/* One more waits. Texts are copied; what is not printable ASCII in them becomes '?'. */
void notifier_put(struct notifier *notifier, const char *session, const char *id, const char *summary);
void notifier_describe(const struct notifier *notifier, struct buf *out); /* a member of the health's answer */
