/* SPDX-License-Identifier: MIT */
/* The files that credentials: of upstream proxies name. Only the daemon reads them, when it loads the policy. */
#pragma once

#include "control/server.h"
#include "link/link.h"
#include "policy/policy.h"

/* Fails with a text that names the place in the policy and the file, and nothing of what is in it. */
int proxy_logins_load(const struct policy *policy, struct link_proxy_logins *ret, struct failure *ret_failure);
void proxy_logins_wipe(struct link_proxy_logins *logins);
