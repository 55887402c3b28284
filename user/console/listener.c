/* SPDX-License-Identifier: MIT */
#include "console/listener.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/chars.h"
#include "base/cleanup.h"
#include "base/sockaddr.h"
#include "vocab/limits.h"

static bool address_is_loopback(const union sockaddr_inet *address)
{
	return address->sa.sa_family == AF_INET ? ntohl(address->v4.sin_addr.s_addr) >> 24 == 127
						: IN6_IS_ADDR_LOOPBACK(&address->v6.sin6_addr);
}

static int address_parse(const char *where, union sockaddr_inet *ret)
{
	const char *colon = strrchr(where, ':');
	char host[64];
	uint64_t port;
	int n;

	if (!colon || number_parse(colon + 1, strlen(colon + 1), 65535, &port) < 0)
		return -EINVAL;
	n = snprintf(host, sizeof(host), "%.*s", (int)(colon - where), where);
	if (n <= 0 || (size_t)n >= sizeof(host))
		return -EINVAL;
	*ret = (union sockaddr_inet){ 0 };
	if (inet_pton(AF_INET, !strcmp(host, "localhost") ? "127.0.0.1" : host, &ret->v4.sin_addr) == 1) {
		ret->v4.sin_family = AF_INET;
		ret->v4.sin_port = htons((uint16_t)port);
	} else if (host[0] == '[' && host[n - 1] == ']') {
		host[n - 1] = '\0';
		if (inet_pton(AF_INET6, host + 1, &ret->v6.sin6_addr) != 1)
			return -EINVAL;
		ret->v6.sin6_family = AF_INET6;
		ret->v6.sin6_port = htons((uint16_t)port);
	} else {
		return -EINVAL;
	}
	return address_is_loopback(ret) ? 0 : -EADDRNOTAVAIL;
}

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
	socklen_t len = sizeof(address);
	const int one = 1;
	_close_ int fd = -1;
	int r = address_parse(where, &address);

	if (r < 0)
		return r;
	fd = socket(address.sa.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) < 0 ||
	    bind(fd, &address.sa, sockaddr_len(&address)) < 0 || listen(fd, NP_CONSOLE_CONNECTIONS) < 0 ||
	    getsockname(fd, &address.sa, &len) < 0)
		return -errno;
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
