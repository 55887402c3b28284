/* SPDX-License-Identifier: MIT */
/* Where browsers come in: an address of loopback, or a unix socket for a reverse proxy. */
#pragma once

#include <stdint.h>

#include "base/listen.h"
#include "console/guard.h"

struct listener {
	int fd;
	uint16_t port;		 /* 0: a unix socket */
	const char *path;	 /* of that; NULL */
	struct listen_file file; /* of a unix socket: which file it is, so that no other is removed */
};

/* where: "127.0.0.1:PORT", "[::1]:PORT", "localhost:PORT" or "unix:PATH"; port 0 is one that is free. Adds what browsers call it to guard.
 * -EINVAL: it is none of these; -EADDRNOTAVAIL: an address that others reach; else what socket(), bind() say. */
int listener_open(const char *where, struct listener *ret, struct guard *guard);
