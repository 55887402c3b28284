/* SPDX-License-Identifier: MIT */
#include "base/loopback.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/chars.h"
#include "base/cleanup.h"

static bool address_is_loopback(const union sockaddr_inet *address)
{
	return address->sa.sa_family == AF_INET ? ntohl(address->v4.sin_addr.s_addr) >> 24 == 127
						: IN6_IS_ADDR_LOOPBACK(&address->v6.sin6_addr);
}

/* host: as in a URL; it is taken apart. */
static int address_parse(char *host, uint16_t port, union sockaddr_inet *ret)
{
	const size_t n = strlen(host);

	*ret = (union sockaddr_inet){ 0 };
	if (inet_pton(AF_INET, !strcmp(host, "localhost") ? "127.0.0.1" : host, &ret->v4.sin_addr) == 1) {
		ret->v4.sin_family = AF_INET;
		ret->v4.sin_port = htons(port);
	} else if (n > 2 && host[0] == '[' && host[n - 1] == ']') {
		host[n - 1] = '\0';
		if (inet_pton(AF_INET6, host + 1, &ret->v6.sin6_addr) != 1)
			return -EINVAL;
		ret->v6.sin6_family = AF_INET6;
		ret->v6.sin6_port = htons(port);
	} else {
		return -EINVAL;
	}
	return address_is_loopback(ret) ? 0 : -EADDRNOTAVAIL;
}

int loopback_parse(const char *where, union sockaddr_inet *ret)
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
	return address_parse(host, (uint16_t)port, ret);
}

bool loopback_is_host(const char *host)
{
	const char *colon = strrchr(host, ':');
	union sockaddr_inet address;
	char text[64];

	if (colon && !strchr(colon, ']'))
		return loopback_parse(host, &address) == 0;
	return strlen(host) < sizeof(text) && address_parse(strcpy(text, host), 0, &address) == 0;
}

int loopback_listen(const char *where, int backlog, union sockaddr_inet *ret)
{
	union sockaddr_inet address;
	socklen_t len = sizeof(address);
	const int one = 1;
	_close_ int fd = -1;
	int r = loopback_parse(where, &address);

	if (r < 0)
		return r;
	fd = socket(address.sa.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) < 0 ||
	    bind(fd, &address.sa, sockaddr_len(&address)) < 0 || listen(fd, backlog) < 0 ||
	    getsockname(fd, &address.sa, &len) < 0)
		return -errno;
	*ret = address;
	return take_fd(fd);
}
