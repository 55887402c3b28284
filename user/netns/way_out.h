/* SPDX-License-Identifier: MIT */
/*
 * Ways out of network namespaces of sandboxes' own (sandbox: network: nat): a veth pair each, one end as eth0 in there, the other as
 * npnatN in the host's, where what comes from it is forwarded and masqueraded by an nft table of our own (masquerade.h). N is the
 * number of the sandbox's address (nat.h). Neither end has a link-local address, the host's end has none at all, and the two know
 * each other by entries that stay: nobody asks, and the host is met by no other address than it had before.
 *
 * The devices are the record: the alias of npnatN says whose it is, by the number of the cgroup. They outlive the daemon, and go
 * with the namespace.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "gate_limits.h"

#define WAY_OUT_PREFIX "npnat" /* of the names of devices in the host's namespace */

struct ways_out {
	uint64_t owners[NP_NAMESPACES_MAX]; /* cgroup ids; 0: nobody's */
	unsigned n, next;		    /* how many there are; where to look for a free number */
	bool wanted;			    /* the policy says so */
	bool shut;			    /* they open no connections, for the host has no room for more */
	char problem[256];		    /* what this host lacks for it, in words; empty: nothing that is known */
};

/* After a start: those of a predecessor. The ones whose cgroup is gone are removed. */
void ways_out_find(struct ways_out *ways, bool (*is_there)(void *data, uint64_t cgroup_id), void *data);
/* The table of nft is there while it is wanted or there are some. Also looks what the host lacks. */
void ways_out_want(struct ways_out *ways, bool wanted);

/* The table is whole, or no longer needed, and shut while the host's table of connections is nearly full. 1: it was not whole, and is
 * again; -errno: it cannot be made. */
int ways_out_check(struct ways_out *ways);

/* In the namespace of the caller, which is the host's, for a sandbox in netns. 0; -ENONET: this host does not forward; -ENOSPC; or
 * another -errno, and nothing is left of it. */
int way_out_make(struct ways_out *ways, uint64_t cgroup_id, int netns);
void way_out_drop(struct ways_out *ways, uint64_t cgroup_id); /* an unknown one is fine */
