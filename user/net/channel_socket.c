/* SPDX-License-Identifier: MIT */
/* The channel's lower half: the socket, and bytes that were read too early. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "net/channel_internal.h"
#include "vocab/limits.h"

#define IOV_PER_CALL 16

/* -- leftovers ----------------------------------------------------------- */

int leftover_reserve(struct leftover *l, size_t more)
{
	char *data;

	if (l->at > 0 && l->at + l->len + more > l->size) {
		memmove(l->data, l->data + l->at, l->len);
		l->at = 0;
	}
	if (l->len + more <= l->size)
		return 0;
	data = realloc(l->data, l->len + more);
	if (!data)
		return -ENOMEM;
	l->data = data;
	l->size = l->len + more;
	return 0;
}

int leftover_add(struct leftover *l, const void *data, size_t len)
{
	int r;

	if (len == 0)
		return 0;
	if (len > NP_BACKLOG_HIGH - l->len)
		return -EMSGSIZE;
	r = leftover_reserve(l, len);
	if (r < 0)
		return r;
	memcpy(l->data + l->at + l->len, data, len);
	l->len += len;
	return 0;
}

void leftover_clear(struct leftover *l)
{
	free(l->data);
	*l = (struct leftover){ 0 };
}

/* -- the socket ---------------------------------------------------------- */

ssize_t channel_recv(struct channel *c, void *data, size_t len)
{
	ssize_t n;

	if (c->sock_eof)
		return 0;
	if (!c->readable)
		return -EAGAIN;
	if (c->budget == 0) {
		c->starved = true;
		return -EAGAIN;
	}
	if (len > c->budget)
		len = c->budget;
	do
		n = recv(c->fd, data, len, 0);
	while (n < 0 && errno == EINTR);
	if (n > 0) {
		c->budget -= (size_t)n;
		/* A short read emptied the socket: what comes later is another edge. Saves the call that says EAGAIN. */
		if ((size_t)n < len && !c->hung_up)
			c->readable = false;
		return n;
	}
	c->readable = false;
	if (n < 0 && errno != EAGAIN)
		return c->sock_error = -errno;
	if (n < 0)
		return -EAGAIN;
	if (c->sock_error)
		return c->sock_error;
	c->sock_eof = true;
	return 0;
}

size_t channel_send(struct channel *c, const struct iovec *iov, size_t n)
{
	struct msghdr msg = { .msg_iov = (struct iovec *)iov, .msg_iovlen = n };
	size_t len = 0;
	ssize_t sent;

	for (size_t i = 0; i < n; i++)
		len += iov[i].iov_len;
	if (c->write_error)
		return len;
	if (!c->writable)
		return 0;
	do
		sent = n == 1 ? send(c->fd, iov->iov_base, iov->iov_len, MSG_NOSIGNAL)
			      : sendmsg(c->fd, &msg, MSG_NOSIGNAL);
	while (sent < 0 && errno == EINTR);
	if (sent < 0 && errno == EAGAIN)
		sent = 0;
	if (sent < 0) {
		c->write_error = -errno;
		c->readable = c->hung_up = true; /* what the peer said before it went may be there, unannounced */
		return len;
	}
	if ((size_t)sent < len)
		c->writable = false;
	return (size_t)sent;
}

size_t channel_unsent(const struct channel *c)
{
	return channel_backlog(c) + socket_unsent(c->fd);
}

void channel_send_queue(struct channel *c)
{
	struct iovec iov[IOV_PER_CALL];

	while (c->out.len > 0 && (c->writable || c->write_error))
		queue_drop(&c->out, channel_send(c, iov, queue_peek(&c->out, iov, IOV_PER_CALL)));
}

int channel_send_plain(struct channel *c, const char *data, size_t len)
{
	struct iovec iov[IOV_PER_CALL];
	size_t n, sent, queued = c->out.len;

	if (!c->writable || queued + len < QUEUE_CHUNK)
		return queue_add(&c->out, data, len);
	n = queue_peek(&c->out, iov, IOV_PER_CALL - 1);
	if (queued > 0 && n == IOV_PER_CALL - 1)
		return queue_add(&c->out, data, len);
	iov[n++] = (struct iovec){ (void *)data, len };
	sent = channel_send(c, iov, n);
	if (sent < queued)
		queued = sent;
	queue_drop(&c->out, queued);
	return queue_add(&c->out, data + (sent - queued), len - (sent - queued));
}
