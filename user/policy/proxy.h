/* SPDX-License-Identifier: MIT */
/*
 * The upstream proxy: the HTTP proxy that the inspector goes by where a network has no other way out. It is a way, not a
 * permission: what may be reached is said by rules, before anybody asks how.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "policy/rule.h"
#include "wire/hostname.h"

struct policy;

struct pattern_run {
	uint32_t first, n; /* in policy->patterns */
};

/* Is one of these destinations this host at this port, over TCP? */
bool pattern_run_holds(const struct policy *policy, const struct pattern_run *run, const struct host *host,
		       uint16_t port);

#define PROXY_URL_SIZE (NAME_SIZE + 16)

/* An entry of upstream_proxy:. */
struct upstream_proxy {
	const char *url;  /* "http://proxy.corp.example:3128", for people; NULL: such hosts are reached directly */
	struct host host; /* where it listens */
	uint16_t port;
	bool all;		   /* hosts: is not written */
	struct pattern_run hosts;  /* that go by it; ports count, too */
	struct pattern_run except; /* but these */
	const char *credentials;   /* path of the file that has them; NULL: none. It is the daemon who reads it */
	struct place at, credentials_at;
};

/* By which a connection goes to this host, whose name nobody has resolved: the first entry that is for it. NULL: directly. */
const struct upstream_proxy *policy_proxy(const struct policy *policy, const struct host *host, uint16_t port);
/* Is this where one of the proxies listens? A sandbox that could speak to it directly would reach whatever it
 * reaches. */
bool policy_is_proxy(const struct policy *policy, const struct host *host, uint16_t port);

/* localhost and the names of metadata services: a resolver finds its own host. A proxy must not be asked for them,
 * because it would reach itself or its own metadata service. */
bool name_is_proxys_own(const char *name);
