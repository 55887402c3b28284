/* SPDX-License-Identifier: MIT */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "cli/forward.h"
#include "vocab/limits.h"

/* One direction of a connection. */
struct way {
	char bytes[NP_FORWARD_BUFFER];
	size_t start, end;
	bool read_ended; /* nothing more comes */
	bool ended;	 /* and that was passed on */
};

enum { NEAR, FAR }; /* who called us; whom we called */

struct pair {
	int fd[2]; /* -1: none */
	uint64_t cookie;
	bool connecting;
	struct way from[2];
};

struct carrier {
	struct carrier_config config;
	int fd;
	sa_family_t family; /* of the listener, as far as it is known */
	struct pair *pairs[NP_FORWARD_SOCKETS];
};

static int listen_on(uint16_t port)
{
	struct sockaddr_in address = { .sin_family = AF_INET,
				       .sin_port = htons(port),
				       .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), one = 1;

	if (fd < 0)
		return -errno;
	if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) < 0 ||
	    bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0 || listen(fd, NP_FORWARD_SOCKETS) < 0) {
		int error = errno;

		close(fd);
		return -error;
	}
	return fd;
}

int carrier_new(const struct carrier_config *config, struct carrier **ret)
{
	struct carrier *carrier = calloc(1, sizeof(*carrier));

	if (!carrier)
		return -ENOMEM;
	carrier->config = *config;
	carrier->family = AF_INET;
	carrier->fd = listen_on(config->local ? config->local : config->port);
	if (carrier->fd == -EADDRINUSE && !config->local)
		carrier->fd = listen_on(0);
	if (carrier->fd < 0) {
		int r = carrier->fd;

		free(carrier);
		return r;
	}
	*ret = carrier;
	return 0;
}

uint16_t carrier_port(const struct carrier *carrier)
{
	struct sockaddr_in address = { 0 };
	socklen_t len = sizeof(address);

	getsockname(carrier->fd, (struct sockaddr *)&address, &len);
	return ntohs(address.sin_port);
}

static void pair_free(struct carrier *carrier, size_t at)
{
	struct pair *pair = carrier->pairs[at];

	for (int i = 0; i < 2; i++)
		cleanup_close(&pair->fd[i]);
	if (pair->cookie)
		carrier->config.on_end(carrier->config.data, pair->cookie);
	free(pair);
	carrier->pairs[at] = NULL;
}

void carrier_free(struct carrier *carrier)
{
	if (!carrier)
		return;
	for (size_t i = 0; i < NP_FORWARD_SOCKETS; i++)
		if (carrier->pairs[i])
			pair_free(carrier, i);
	close(carrier->fd);
	free(carrier);
}

/* Small buffers where the sandbox's bytes lie: what is there when the session is raised is already ours. Segments must
 * be smaller than they are, or the sender waits for room that never comes. */
static void buffers_bound(int fd, int side)
{
	const int size = NP_FORWARD_BUFFER, segment = NP_FORWARD_BUFFER / 4, one = 1;

	if (side == FAR)
		setsockopt(fd, IPPROTO_TCP, TCP_MAXSEG, &segment, sizeof(segment));
	setsockopt(fd, SOL_SOCKET, side == FAR ? SO_RCVBUF : SO_SNDBUF, &size, sizeof(size));
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
}

/* A socket that may call, of this family, and whom it may call. 0 or -errno. */
static int pair_open(struct carrier *carrier, struct pair *pair, int family, struct sockaddr_storage *ret)
{
	socklen_t len = sizeof(pair->cookie);
	uint64_t cookie;
	int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	pair->fd[FAR] = fd;
	if (fd < 0 || getsockopt(fd, SOL_SOCKET, SO_COOKIE, &cookie, &len) < 0)
		return -errno;
	buffers_bound(fd, FAR);
	if (carrier->config.on_call(carrier->config.data, cookie, ret))
		return -ECONNREFUSED;
	pair->cookie = cookie;
	return 0;
}

static int pair_call(struct carrier *carrier, struct pair *pair)
{
	struct sockaddr_storage address = { 0 };
	int r = pair_open(carrier, pair, carrier->family, &address);

	if (r == 0 && address.ss_family != carrier->family) { /* the sandbox listens in the other family */
		close(pair->fd[FAR]);
		carrier->config.on_end(carrier->config.data, pair->cookie);
		pair->cookie = 0;
		carrier->family = address.ss_family;
		r = pair_open(carrier, pair, carrier->family, &address);
		if (r == 0 && address.ss_family != carrier->family)
			r = -EAFNOSUPPORT;
	}
	if (r < 0)
		return r;
	if (address.ss_family == AF_INET6)
		((struct sockaddr_in6 *)&address)->sin6_port = htons(carrier->config.port);
	else
		((struct sockaddr_in *)&address)->sin_port = htons(carrier->config.port);
	if (connect(pair->fd[FAR], (struct sockaddr *)&address, sizeof(address)) < 0 && errno != EINPROGRESS)
		return -errno;
	pair->connecting = true;
	return 0;
}

static void carrier_accept(struct carrier *carrier)
{
	int fd = accept4(carrier->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	struct pair *pair;
	size_t at = 0;

	if (fd < 0)
		return;
	while (at < NP_FORWARD_SOCKETS && carrier->pairs[at])
		at++;
	pair = at < NP_FORWARD_SOCKETS ? calloc(1, sizeof(*pair)) : NULL;
	if (!pair) {
		close(fd);
		return;
	}
	pair->fd[NEAR] = fd;
	pair->fd[FAR] = -1;
	buffers_bound(fd, NEAR);
	carrier->pairs[at] = pair;
	if (pair_call(carrier, pair) < 0)
		pair_free(carrier, at);
}

/* Moves what it can. False: the connection is broken. */
static bool way_move(struct way *way, int from, int to)
{
	ssize_t n;

	if (way->start == way->end && !way->read_ended) {
		n = recv(from, way->bytes, sizeof(way->bytes), 0);
		if (n < 0)
			return errno == EAGAIN || errno == EINTR;
		way->start = 0;
		way->end = (size_t)n;
		way->read_ended = n == 0;
	}
	if (way->start < way->end) {
		n = send(to, way->bytes + way->start, way->end - way->start, MSG_NOSIGNAL);
		if (n < 0)
			return errno == EAGAIN || errno == EINTR;
		way->start += (size_t)n;
	}
	if (way->read_ended && way->start == way->end && !way->ended) {
		shutdown(to, SHUT_WR);
		way->ended = true;
	}
	return true;
}

static bool pair_move(struct pair *pair)
{
	if (pair->connecting) {
		int error = 0;
		socklen_t len = sizeof(error);

		if (getsockopt(pair->fd[FAR], SOL_SOCKET, SO_ERROR, &error, &len) < 0 || error)
			return false;
		pair->connecting = false;
	}
	for (int i = 0; i < 2; i++)
		if (!way_move(&pair->from[i], pair->fd[i], pair->fd[!i]))
			return false;
	return !pair->from[NEAR].ended || !pair->from[FAR].ended;
}

static short pair_events(const struct pair *pair, int side)
{
	const struct way *in = &pair->from[side], *out = &pair->from[!side];
	short events = 0;

	if (pair->connecting)
		return side == FAR ? POLLOUT : 0;
	if (in->start == in->end && !in->read_ended)
		events |= POLLIN;
	if (out->start < out->end)
		events |= POLLOUT;
	return events;
}

int carrier_turn(struct carrier *carrier, int timeout_ms)
{
	struct pollfd fds[1 + 2 * NP_FORWARD_SOCKETS] = { { .fd = carrier->fd, .events = POLLIN } };
	size_t owners[1 + 2 * NP_FORWARD_SOCKETS], n = 1;

	for (size_t i = 0; i < NP_FORWARD_SOCKETS; i++)
		for (int side = 0; carrier->pairs[i] && side < 2; side++) {
			short events = pair_events(carrier->pairs[i], side);

			/* One that nothing is wanted of would still wake us, and for ever, once it is broken. */
			fds[n] = (struct pollfd){ .fd = events ? carrier->pairs[i]->fd[side] : -1, .events = events };
			owners[n++] = i;
		}
	if (poll(fds, n, timeout_ms) < 0)
		return -1;
	for (size_t i = 1; i < n; i++)
		if (fds[i].revents && carrier->pairs[owners[i]] && !pair_move(carrier->pairs[owners[i]]))
			pair_free(carrier, owners[i]);
	if (fds[0].revents)
		carrier_accept(carrier);
	return 0;
}
