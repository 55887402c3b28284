/* SPDX-License-Identifier: MIT */
/* Socket addresses of both families, and the 16-byte form of include/addr.h, in which IPv4 is ::ffff:a.b.c.d. */
#pragma once

#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

#include "addr.h"

union sockaddr_inet {
	struct sockaddr sa;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
};

static inline socklen_t sockaddr_len(const union sockaddr_inet *name)
{
	return name->sa.sa_family == AF_INET ? sizeof(name->v4) : sizeof(name->v6);
}

/* An IPv4 address becomes AF_INET, whatever it is carried in otherwise. All that is not said is 0. port: host order. */
static inline union sockaddr_inet sockaddr_of(const struct np_addr *addr, uint16_t port)
{
	union sockaddr_inet name;

	memset(&name, 0, sizeof(name));
	if (np_addr_is_v4(addr)) {
		name.v4.sin_family = AF_INET;
		name.v4.sin_port = htons(port);
		name.v4.sin_addr.s_addr = addr->w[3];
	} else {
		name.v6.sin6_family = AF_INET6;
		name.v6.sin6_port = htons(port);
		memcpy(&name.v6.sin6_addr, addr, sizeof(name.v6.sin6_addr));
	}
	return name;
}

/* False for another family; then nothing is set. port: host order. */
static inline bool sockaddr_parts(const union sockaddr_inet *name, struct np_addr *ret_addr, uint16_t *ret_port)
{
	switch (name->sa.sa_family) {
	case AF_INET:
		*ret_addr = np_addr_v4(name->v4.sin_addr.s_addr);
		*ret_port = ntohs(name->v4.sin_port);
		return true;
	case AF_INET6:
		memcpy(ret_addr, &name->v6.sin6_addr, sizeof(*ret_addr));
		*ret_port = ntohs(name->v6.sin6_port);
		return true;
	default:
		return false;
	}
}
