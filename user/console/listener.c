/* SPDX-License-Identifier: MIT */
#include "console/listener.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/loopback.h"
#include "vocab/limits.h"

/* "localhost" may lead to either family. */
static int names_add(const union sockaddr_inet *address, uint16_t port, struct guard *guard)
{
	char origin[GUARD_ORIGIN], text[INET6_ADDRSTRLEN];
	bool v6 = address->sa.sa_family == AF_INET6;
	int r;

	if (!inet_ntop(address->sa.sa_family, v6 ? (const void *)&address->v6.sin6_addr : &address->v4.sin_addr, text,
		       sizeof(text)))
		return -errno;
	snprintf(origin, sizeof(origin), v6 ? "http://[%s]:%u" : "http://%s:%u", text, port);
	r = guard_add(guard, origin);
	snprintf(origin, sizeof(origin), "http://localhost:%u", port);
	return r < 0 ? r : guard_add(guard, origin);
}

static int listen_inet(const char *where, struct listener *ret, struct guard *guard)
{
	union sockaddr_inet address;
	_close_ int fd = loopback_listen(where, NP_CONSOLE_CONNECTIONS, &address);
	int r;

	if (fd < 0)
		return fd;
	ret->port = ntohs(address.sa.sa_family == AF_INET6 ? address.v6.sin6_port : address.v4.sin_port);
	r = names_add(&address, ret->port, guard);
	if (r < 0)
		return r;
	ret->fd = take_fd(fd);
	return 0;
}

int listener_open(const char *where, struct listener *ret, struct guard *guard)
{
	*ret = (struct listener){ .fd = -1 };
	if (strncmp(where, "unix:", 5) != 0)
		return listen_inet(where, ret, guard);
	ret->path = where + 5;
	ret->fd = listen_unix(ret->path, NP_CONSOLE_CONNECTIONS, &ret->file);
	return ret->fd < 0 ? ret->fd : 0;
}
