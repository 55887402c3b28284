/* SPDX-License-Identifier: MIT */
/*
 * Who may make which call. The policy's access: section names users and groups of the host; the kernel says who a peer
 * is (SO_PEERCRED, SO_PEERGROUPS). Root is an operator. A peer without a role is refused with every call. A process
 * inside of a sandbox is refused before that, whatever its user.
 *
 * A platform may use its own sessions and no others: each route says where a request names its session (enum scope),
 * and this is the one place that compares it.
 */
#pragma once

#include "control/routes.h"

/* The section, with the numbers that its names have on this host. */
struct access {
	char hash[POLICY_HASH_SIZE]; /* of the policy that it is of; empty: of none yet */
	uint64_t mark;		     /* of all that the section says */
	struct {
		bool known; /* else nobody is meant */
		unsigned id;
	} callers[NP_ACCESS_CALLERS];
};

/* The policy may have changed: finds its users and groups, and gives the socket the group and mode that let them connect. True
 * when somebody may do less, or more, than before. */
bool access_renew(struct access *access, const struct server_config *config);

/* What the peer is: fills peer->roles and peer->callers. */
void access_find(const struct access *access, const struct server_config *config, struct peer *peer);

/* May it make this call? Reads what the path names. 0, or -EACCES, -ENOENT, -EINVAL and why. What is somebody else's is not there. */
int access_check(struct request *rq, const struct route *route, struct failure *ret_failure);

/* May it see this session's, in an answer about many? others: the roles that see every session's there. */
bool access_sees(const struct request *rq, unsigned others, const char *session);
