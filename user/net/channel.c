/* SPDX-License-Identifier: MIT */
#include "net/channel.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "net/channel_internal.h"
#include "vocab/limits.h"

#define READ_BUDGET (64u << 10)		   /* one wake-up: then it is someone else's turn */
#define BACKLOG_MAX (16 * NP_BACKLOG_HIGH) /* the owner does not look at the backlog */

/* Payload into records, and the end behind it if it was asked for. */
static int channel_seal(struct channel *c)
{
	struct iovec iov;
	int r = 0;

	while (r == 0 && queue_peek(&c->plain, &iov, 1) > 0) {
		r = tls_write(c, iov.iov_base, iov.iov_len);
		queue_drop(&c->plain, iov.iov_len);
	}
	if (r == 0 && c->finishing && !c->ended)
		r = tls_finish(c);
	return r;
}

static void channel_flush(struct channel *c)
{
	int r;

	if (!c->ssl || c->up) {
		r = c->ssl && !c->error ? channel_seal(c) : 0;
		if (r < 0)
			c->error = r;
		c->ended = c->finishing;
	}
	channel_send_queue(c);
	if (c->ended && !c->shut && c->out.len == 0) {
		c->shut = true;
		shutdown(c->fd, SHUT_WR);
	}
}

/* -- the loop ------------------------------------------------------------ */

static void channel_release(struct channel *c)
{
	/* Without this the session of a connection that was not closed in both directions is no longer resumed. */
	if (c->ssl && c->up && c->error != -EPROTO)
		SSL_set_shutdown(c->ssl, SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN);
	SSL_free(c->ssl);
	queue_clear(&c->out);
	queue_clear(&c->plain);
	leftover_clear(&c->rest);
	leftover_clear(&c->first);
	free(c);
}

static void channel_notify(struct channel *c)
{
	/* What came before the end of the sending side is read first: often it is the reason. */
	if (c->write_error && !c->error && (c->paused || !c->readable))
		c->error = c->write_error;
	if (c->error) {
		if (!c->broken_reported) {
			c->broken_reported = true;
			c->paused = true;
			queue_clear(&c->plain);
			queue_clear(&c->out);
			c->events->broken(c->ctx, c->error);
		}
		return;
	}
	if (c->write_error)
		return;
	if ((c->high && channel_backlog(c) < NP_BACKLOG_LOW) || (c->shut && !c->finished_reported)) {
		c->high = false;
		c->finished_reported = c->shut;
		c->events->drained(c->ctx);
	}
}

static void channel_pump(void *data)
{
	struct channel *c = data;
	int r;

	c->busy = true;
	c->budget = READ_BUDGET;
	c->starved = c->reoffered = false;
	channel_flush(c); /* first: TLS does not read while too much of its own is unsent */
	if (c->ssl && !c->up && !c->error) {
		r = tls_handshake(c);
		if (r < 0)
			c->error = r;
		c->up = r > 0;
		if (c->up)
			c->events->ready(c->ctx);
	}
	if (!c->freed)
		channel_read(c);
	if (!c->freed) {
		channel_flush(c); /* a TLS alert, too */
		c->woken = false;
		channel_notify(c);
	}
	c->busy = false;
	if (c->freed)
		channel_release(c);
	else if (c->woken || (c->starved && !c->error && (!c->paused || (c->ssl && !c->up))))
		loop_later(c->loop, &c->task);
}

/* A reset while paused is told at once when there is nothing left to read before it. */
static void channel_notice(struct channel *c)
{
	socklen_t len = sizeof(int);
	int error = 0, unread = 0;

	if (getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &error, &len) < 0 || error == 0)
		return;
	c->sock_error = -error;
	ioctl(c->fd, FIONREAD, &unread);
	if (unread == 0 && c->rest.len == 0 && !(c->ssl && SSL_has_pending(c->ssl)) && !c->error)
		c->error = -error;
}

static void channel_on_event(void *data, uint32_t events)
{
	struct channel *c = data;

	if (events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR))
		c->readable = true;
	if (events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR))
		c->hung_up = true;
	if (events & (EPOLLOUT | EPOLLHUP | EPOLLERR))
		c->writable = true;
	if ((events & EPOLLERR) && c->paused)
		channel_notice(c);
	loop_later(c->loop, &c->task); /* behind what its lane has to do already */
}

/* -- the owner's side ---------------------------------------------------- */

int channel_new(struct loop *loop, struct lane *lane, int sock, const struct channel_events *events, void *ctx,
		struct channel **ret)
{
	_free_ struct channel *c = calloc(1, sizeof(*c));
	_close_ int fd = sock;
	int r;

	if (!c)
		return -ENOMEM;
	*c = (struct channel){
		.loop = loop,
		.fd = fd,
		.events = events,
		.ctx = ctx,
		.task = { .fn = channel_pump, .data = c, .lane = lane },
		.writable = true,
	};
	/* Small writes are put together here, and what is written is meant to go. Fails on a socket pair. */
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){ 1 }, sizeof(int));
	r = loop_watch(loop, fd, EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, channel_on_event, c);
	if (r < 0)
		return r;
	take_fd(fd);
	*ret = take_ptr(c);
	return 0;
}

static void channel_drop(struct channel *c)
{
	loop_cancel(c->loop, &c->task);
	loop_unwatch(c->loop, c->fd);
	c->fd = -1;
	if (c->busy)
		c->freed = true;
	else
		channel_release(c);
}

void channel_free(struct channel *c)
{
	int fd;

	if (!c || c->freed)
		return;
	fd = c->fd;
	channel_drop(c);
	close(fd);
}

int channel_detach(struct channel *c)
{
	int fd = c->fd;

	if (c->freed || c->ssl || c->out.len || c->rest.len || c->error || c->write_error || c->sock_error || c->eof ||
	    c->finishing)
		return -1;
	channel_drop(c);
	return fd;
}

void channel_set_owner(struct channel *c, const struct channel_events *events, void *ctx)
{
	c->events = events;
	c->ctx = ctx;
}

/* The work that was just made is done at the end of the running wake-up, or of this round. */
static void channel_wake(struct channel *c)
{
	if (c->busy)
		c->woken = true;
	else
		loop_later(c->loop, &c->task);
}

static int channel_write_tls(struct channel *c, const char *data, size_t len)
{
	struct iovec iov;
	size_t fill;
	int r;

	if (!c->up || c->plain.len + len < QUEUE_CHUNK)
		return queue_add(&c->plain, data, len);
	while (queue_peek(&c->plain, &iov, 1) > 0) {
		fill = QUEUE_CHUNK - iov.iov_len;
		if (c->plain.len == iov.iov_len) {
			r = queue_add(&c->plain, data, fill);
			if (r < 0)
				return r;
			iov.iov_len += fill;
			data += fill;
			len -= fill;
		}
		r = tls_write(c, iov.iov_base, iov.iov_len);
		queue_drop(&c->plain, iov.iov_len);
		if (r < 0)
			return r;
	}
	return tls_write(c, data, len);
}

int channel_write(struct channel *c, const void *data, size_t len)
{
	int r;

	if (c->error || c->write_error)
		return c->error ? c->error : c->write_error;
	if (c->finishing)
		return -EPIPE;
	if (len > BACKLOG_MAX || channel_backlog(c) > BACKLOG_MAX - len)
		return -ENOBUFS;
	if (len == 0)
		return 0;
	r = c->ssl ? channel_write_tls(c, data, len) : channel_send_plain(c, data, len);
	if (r < 0)
		c->error = r;
	if (c->out.len >= QUEUE_CHUNK)
		channel_send_queue(c);
	if (channel_backlog(c) > NP_BACKLOG_HIGH)
		c->high = true;
	if (c->error || c->write_error || c->plain.len > 0 || (c->out.len > 0 && c->writable))
		channel_wake(c);
	return c->error ? c->error : c->write_error;
}

size_t channel_backlog(const struct channel *c)
{
	return c->plain.len + c->out.len;
}

void channel_finish(struct channel *c)
{
	c->finishing = true;
	channel_wake(c);
}

void channel_reset(struct channel *c)
{
	if (c && !c->freed)
		reset_on_close(c->fd);
	channel_free(c);
}

void channel_close(struct channel *c)
{
	int fd;

	if (!c || c->freed)
		return;
	if (channel_backlog(c)) {
		channel_reset(c);
		return;
	}
	fd = c->fd;
	channel_drop(c);
	close_acknowledged(fd);
}

void channel_resume(struct channel *c)
{
	if (c->broken_reported)
		return;
	c->paused = false;
	c->resumed = true;
	if (c->offering)
		return;
	c->wants_more = false;
	loop_later(c->loop, &c->task);
}

void channel_pause(struct channel *c)
{
	c->paused = true;
	c->resumed = false;
}

bool channel_is_hung_up(const struct channel *c)
{
	return c->hung_up || c->eof;
}

SSL *channel_ssl(const struct channel *c)
{
	return c->ssl;
}

int channel_fd(const struct channel *c)
{
	return c->fd;
}

const char *channel_problem(const struct channel *c)
{
	return c->problem ? c->problem : strerrordesc_np(-c->error);
}
