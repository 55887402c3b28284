/* SPDX-License-Identifier: MIT */
/* Who is at the other end of a unix socket: the kernel's word (SO_PEERCRED), not the client's. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "control/server.h"

struct peer {
	int fd;	   /* the connection; borrowed */
	pid_t pid; /* of the process that called connect() */
	uid_t uid;
	gid_t gid;
	unsigned roles;	  /* enum role; see access.h */
	uint64_t callers; /* entries of access: that it is, as bits */
	char who[48];	  /* "uid U pid P", for events */
};

int peer_read(int fd, struct peer *ret); /* 0 or -errno */

/* True when the peer may use the API: it was shown to be outside of every sandbox. */
bool peer_is_outside(const struct peer *peer, const struct server_config *config);
