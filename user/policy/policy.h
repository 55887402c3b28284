/* SPDX-License-Identifier: MIT */
/*
 * The policy file (YAML). This version of it knows:
 *
 *   version: 1
 *   levels: { PUBLIC: full, INTERNAL: full, CONFIDENTIAL: proxied, SECRET: none }
 *   host_loopback: [11434]     # ports of the host that sandboxes may use, in FULL and PROXIED
 *
 * Anything else is an error that names line and column: a rule that is not
 * understood must not look as if it held.
 */
#ifndef NP_POLICY_H
#define NP_POLICY_H

#include <stddef.h>
#include <stdint.h>

#include "box.h"
#include "limits.h"

struct policy {
	enum np_mode modes[4]; /* by level, PUBLIC first */
	uint16_t host_loopback[NP_HOST_PORTS_MAX];
	size_t n_host_loopback;
};

void policy_default(struct policy *ret);
/* 0, or -errno and a sentence "FILE:LINE:COLUMN: what is wrong" in problem. */
int policy_parse(const char *name, const char *text, size_t len, struct policy *ret, char problem[static 512]);

#endif
