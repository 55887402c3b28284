/* SPDX-License-Identifier: MIT */
/* How the values of credentials come to inspectors. Whoever had such a message wipes it. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "vocab/limits.h"

/* LINK_SECRET: a credential of this policy, which may be the one that comes next, has this value; none when len is 0. */
struct link_secret {
	char policy[65]; /* hash */
	char name[NP_NAME_MAX + 1];
	uint32_t len;
	uint64_t expires_ns;	   /* CLOCK_MONOTONIC; 0: never */
	char value[NP_SECRET_MAX]; /* the message ends behind its last byte */
};
#define LINK_SECRET_SIZE(len) (offsetof(struct link_secret, value) + (len))

/* LINK_PLACEHOLDER_KEY: what placeholders are made of (secrets/placeholder.h). Before any connection comes. */
struct link_placeholder_key {
	uint8_t bytes[32];
};

/* LINK_LEAK: a request of the sandbox had the value of this credential in it, and was refused. */
struct link_leak {
	uint64_t cgroup_id;
	char name[NP_NAME_MAX + 1];
};
