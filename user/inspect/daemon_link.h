/* SPDX-License-Identifier: MIT */
/* What the daemon says: it alone gives a worker its policy, its roots, its resolvers, its sandboxes. */
#pragma once

struct upstream_proxy;
struct worker;

void worker_drain(struct worker *worker); /* reads what the daemon has said by now */
/* "user:password" for a proxy of the policy in hand, or NULL. Nobody keeps it. */
const char *worker_proxy_login(const struct worker *worker, const struct upstream_proxy *proxy);
/* What it gave is no longer needed: nothing is open. */
void worker_forget(struct worker *worker);
