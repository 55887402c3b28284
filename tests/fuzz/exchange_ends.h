/* SPDX-License-Identifier: MIT */
/* The far ends of the worker's connections. */
#pragma once

#include "base/buf.h"
#include "exchange_seams.h"

#define OUT_MAX (2u << 20) /* unread bytes of one end */

/* Our end of a socket pair. */
struct end {
	int fd, near; /* -1: closed */
	bool deaf;    /* it does not read */
	bool shut;    /* it says no more, once out is gone */
	struct buf out;
};

static bool ends_small; /* their sockets take little at once */

static void end_open(struct end *end, int *ret_near)
{
	const int small = 4096;
	int fds[2];

	check(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds) == 0 && fds[0] < NEAR_MAX);
	if (ends_small)
		setsockopt(fds[0], SOL_SOCKET, SO_SNDBUF, &small, sizeof(small));
	*end = (struct end){ .fd = fds[1], .near = fds[0], .out = BUF_INIT(OUT_MAX) };
	nears[fds[0]] = (struct near){ 0 };
	*ret_near = fds[0];
}

static void end_close(struct end *end)
{
	if (end->fd >= 0)
		close(end->fd);
	end->fd = -1;
	end->near = -1;
	buf_free(&end->out);
}

static void end_send(struct end *end, const void *data, size_t len)
{
	if (end->fd >= 0 && !end->shut && end->out.len + len <= OUT_MAX)
		buf_append(&end->out, data, len);
}

/* Is the worker's side of it still the same socket? */
static struct near *end_near(const struct end *end)
{
	struct near *near = end->near >= 0 ? &nears[end->near] : NULL;

	return near && (near->far || near->flow.cgroup_id) ? near : NULL;
}

static void end_reset(struct end *end)
{
	struct near *near = end_near(end);

	if (near)
		near->reset = true;
	end_close(end);
}

/* A ClientHello that asks for this name; none when it is empty. */
static void hello_send(struct end *end, const void *name, size_t len)
{
	_buf_ struct buf out = BUF_INIT(1024);
	size_t ext = len ? len + 9 : 0, body = 2 + 32 + 1 + 4 + 2 + 2 + ext;
	const uint8_t start[] = { 0x16, 3, 1, 0, (uint8_t)(body + 4), 1, 0, 0, (uint8_t)body, 3, 3 };
	const uint8_t middle[] = { 0, 0, 2, 0x13, 1, 1, 0, 0, (uint8_t)ext };
	const uint8_t server[] = { 0, 0, 0, (uint8_t)(len + 5), 0, (uint8_t)(len + 3), 0, 0, (uint8_t)len };

	if (len > 150)
		return;
	buf_append(&out, start, sizeof(start));
	for (int i = 0; i < 32; i++)
		buf_append(&out, "r", 1);
	buf_append(&out, middle, sizeof(middle));
	if (len) {
		buf_append(&out, server, sizeof(server));
		buf_append(&out, name, len);
	}
	end_send(end, out.data, out.len);
}
