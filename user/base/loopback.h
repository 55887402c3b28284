/* SPDX-License-Identifier: MIT */
/* TCP on loopback, for programs of the host that browsers and monitoring systems of the host call. Never beyond. */
#pragma once

#include "base/sockaddr.h"

/* ADDRESS:PORT, with [::1] in brackets and "localhost" for 127.0.0.1. -EINVAL: it has not that form; -EADDRNOTAVAIL: it is not
 * loopback. */
int loopback_parse(const char *where, union sockaddr_inet *ret);

/* A listening socket there, which does not block; port 0 is any, and *ret says which. The descriptor, or -errno as above. */
int loopback_listen(const char *where, int backlog, union sockaddr_inet *ret);

/* Is the Host header of a request a name of loopback, with whatever port? A page of another site that has made its name lead here
 * (DNS rebinding) says that name. */
bool loopback_is_host(const char *host);
