/* SPDX-License-Identifier: MIT */
/*
 * Where the worker meets the kernel, the clock and cryptography, something simple stands in: the linker leads these
 * calls here (--wrap), and the dialer is this one. TLS is taken for granted: after a ClientHello the bytes are those
 * that would be inside. Unit tests of the worker use it as well.
 */
#pragma once

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <string.h>
#include <unistd.h>

#include "addr.h"
#include "check.h"
#include "net/channel_internal.h"
#include "inspect/client.h"
#include "net/dial.h"
#include "tls/ca.h"
#include "tls/origin.h"
#include "vocab/limits.h"

#define NEAR_MAX   1024
#define ROUNDS_MAX 1000 /* of the loop, until there is nothing left to do */

int __real_getsockopt(int fd, int level, int name, void *value, socklen_t *len);
ssize_t __real_recv(int fd, void *data, size_t len, int flags);
int __real_close(int fd);
int __real_epoll_wait(int epoll, struct epoll_event *events, int max, int timeout);
struct ask; /* inspect/ask.h */
bool __real_route_may(const struct client *client, const struct host *host, uint16_t port, const struct route *route,
		      const struct head *head, const struct ask *ask);

/* One of the worker's sockets. */
static struct near {
	struct np_flow flow; /* of a client */
	struct far *far;     /* of an origin */
	bool h2;	     /* what ALPN would say */
	bool tls, reset;
	struct channel *starting; /* TLS will be up when it is not held back */
} nears[NEAR_MAX];

static uint64_t now_ns;
static loop_timer_fn *tick_fn;
static void *tick_data;
static unsigned rounds;

/* -- given by the target -- */
static void world_step(void); /* the loop would sleep */
/* A connection to the host, or -1. */
static int far_new(const struct host *host, uint16_t port, uint64_t cgroup_id, bool opaque);
static void far_tls(struct far *far);

/* -- the kernel ------------------------------------------------------------------------- */

int __wrap_getsockopt(int fd, int level, int name, void *value, socklen_t *len)
{
	if (level != NP_SOL_FLOW)
		return __real_getsockopt(fd, level, name, value, len);
	memcpy(value, &nears[fd].flow, sizeof(nears[fd].flow));
	return 0;
}

/* Of the search for the host's own addresses, of which this one has none: it leads nowhere. */
int __wrap_connect(int fd, const struct sockaddr *addr, socklen_t len)
{
	(void)fd, (void)len;
	if (addr->sa_family == AF_UNSPEC)
		return 0;
	errno = ENETUNREACH;
	return -1;
}

ssize_t __wrap_recv(int fd, void *data, size_t len, int flags)
{
	ssize_t n = __real_recv(fd, data, len, flags);

	if (n == 0 && nears[fd].reset) {
		errno = ECONNRESET;
		return -1;
	}
	return n;
}

int __wrap_close(int fd)
{
	if (fd >= 0 && fd < NEAR_MAX)
		nears[fd] = (struct near){ 0 };
	return __real_close(fd);
}

int __wrap_epoll_wait(int epoll, struct epoll_event *events, int max, int timeout)
{
	int n = __real_epoll_wait(epoll, events, max, 0);

	if (n || !timeout) {
		check(++rounds < ROUNDS_MAX);
		return n;
	}
	rounds = 0;
	world_step();
	return 0;
}

/* -- the clock ---------------------------------------------------------------------------- */

uint64_t __wrap_loop_now_ns(void)
{
	return now_ns;
}

int __wrap_loop_every(struct loop *loop, unsigned period_ms, loop_timer_fn *fn, void *data)
{
	(void)loop, (void)period_ms;
	tick_fn = fn;
	tick_data = data;
	return 0;
}

/* -- TLS ---------------------------------------------------------------------------------- */

static SSL_CTX *ssl_ctx;

static int ssl_make(SSL **ret)
{
	if (!ssl_ctx)
		ssl_ctx = SSL_CTX_new(TLS_method());
	*ret = SSL_new(ssl_ctx);
	check(*ret);
	return 0;
}

/* What authorities and trust are made of stays closed; that each is freed once still shows. */
int __wrap_roots_new(const char *pem, size_t len, struct roots **ret)
{
	(void)pem, (void)len;
	*ret = malloc(1);
	return 0;
}

void __wrap_roots_free(struct roots *roots)
{
	free(roots);
}

int __wrap_origins_new(struct roots *roots, struct origins **ret)
{
	(void)roots;
	*ret = malloc(1);
	return 0;
}

void __wrap_origins_free(struct origins *origins)
{
	free(origins);
}

int __wrap_origin_ssl(struct origins *origins, const struct host *host, uint16_t port, SSL **ret)
{
	(void)origins, (void)host, (void)port;
	return ssl_make(ret);
}

int __wrap_ca_import(const void *data, size_t len, struct ca **ret)
{
	(void)data, (void)len;
	*ret = malloc(1);
	return 0;
}

void __wrap_ca_free(struct ca *ca)
{
	free(ca);
}

int __wrap_ca_server(struct ca *ca, const struct host *host, SSL **ret)
{
	(void)ca, (void)host;
	return ssl_make(ret);
}

int __wrap_channel_tls(struct channel *c, SSL *ssl, const char *first, size_t len)
{
	(void)first, (void)len;
	SSL_free(ssl);
	check(!nears[c->fd].tls && !c->finishing);
	nears[c->fd].tls = true;
	nears[c->fd].starting = c;
	if (nears[c->fd].far)
		far_tls(nears[c->fd].far);
	channel_pause(c);
	return 0;
}

bool __wrap_channel_speaks_h2(const struct channel *c)
{
	return nears[c->fd].tls && nears[c->fd].h2;
}

/* True when there was one to bring up. */
static bool tls_bring_up(void)
{
	for (int fd = 0; fd < NEAR_MAX; fd++) {
		struct channel *c = nears[fd].starting;

		if (!c)
			continue;
		nears[fd].starting = NULL;
		if (c->broken_reported)
			continue;
		channel_resume(c);
		c->events->ready(c->ctx);
		return true;
	}
	return false;
}

/* -- the dialer --------------------------------------------------------------------------- */

enum dial_fate { DIAL_WORKS, DIAL_FAILS, DIAL_HANGS, DIAL_FATES };
static enum dial_fate dial_fate; /* of those that come */
static unsigned n_dials;	 /* that there ever were */

struct dial {
	LIST_ENTRY(dial) link;
	struct dialer *dialer;
	struct loop_task task;
	struct host host;
	uint16_t port;
	dial_may_fn *may;
	dial_done_fn *done;
	void *ctx;
	uint64_t start_ns;
	uint32_t connect_ms;
};

struct dialer {
	struct loop *loop;
	LIST_HEAD(, dial) dials;
};

/* Whom the address in question is for: told by the question. */
static uint64_t may_sandbox;
static bool may_tunnel;

bool __wrap_route_may(const struct client *client, const struct host *host, uint16_t port, const struct route *route,
		      const struct head *head, const struct ask *ask)
{
	may_sandbox = client->sandbox->cgroup_id;
	may_tunnel = !head;
	return __real_route_may(client, host, port, route, head, ask);
}

static struct np_addr dial_addr(const struct host *host)
{
	if (host->is_addr)
		return host->addr;
	if (!strcmp(host->name, "loop.test"))
		return np_addr_v4(np_net32(0x7f000001));
	return np_addr_v4(strcmp(host->name, "meta.test") ? np_net32(0xc633640b) : np_net32(0xa9fea9fe));
}

static void dial_end(struct dial *d)
{
	LIST_REMOVE(d, link);
	loop_cancel(d->dialer->loop, &d->task);
	free(d);
}

static void dial_notify(struct dial *d, int error, bool refused, int fd)
{
	struct dial_result result = { .error = error,
				      .fd = fd,
				      .route = { .addr = dial_addr(&d->host) },
				      .refused = refused,
				      .connect_us = 1,
				      .words = "it failed" };
	dial_done_fn *done = d->done;
	void *ctx = d->ctx;

	dial_end(d);
	done(ctx, &result);
}

static void dial_run(void *data)
{
	struct dial *d = data;
	struct route route = { .addr = dial_addr(&d->host) };
	int fd = -1;

	if (!d->may(d->ctx, &route)) {
		dial_notify(d, -EACCES, true, -1);
	} else if (dial_fate != DIAL_HANGS) {
		if (dial_fate == DIAL_WORKS)
			fd = far_new(&d->host, d->port, may_sandbox, may_tunnel);
		dial_notify(d, fd < 0 ? -ECONNREFUSED : 0, false, fd);
	}
}

int dial_start(struct dialer *dialer, const struct dial_terms *terms, struct dial **ret)
{
	struct dial *d = calloc(1, sizeof(*d));

	*d = (struct dial){ .dialer = dialer,
			    .host = *terms->host,
			    .port = terms->port,
			    .may = terms->may,
			    .done = terms->done,
			    .ctx = terms->ctx,
			    .start_ns = now_ns,
			    .connect_ms = NP_CONNECT_MS,
			    .task = { .fn = dial_run, .data = d } };
	LIST_INSERT_HEAD(&dialer->dials, d, link);
	n_dials++;
	loop_later(dialer->loop, &d->task);
	*ret = d;
	return 0;
}

void dial_set_connect(struct dial *d, uint32_t ms)
{
	d->connect_ms = ms;
}

bool dial_is_resolving(const struct dial *d)
{
	return now_ns == d->start_ns;
}

void dial_cancel(struct dial *d)
{
	if (d)
		dial_end(d);
}

/* Names are known at once here: no query is in flight that a cancelled dial could leave behind. */
void dialer_cancel(struct dialer *dialer)
{
	(void)dialer;
}

/* Tells as the real one does: not in here. */
static void dial_expire(void *data)
{
	dial_notify(data, -ETIMEDOUT, false, -1);
}

void dialer_tick(struct dialer *dialer)
{
	struct dial *d;

	LIST_FOREACH(d, &dialer->dials, link)
		if (now_ns - d->start_ns > (d->connect_ms + NP_RESOLVE_MS) * 1000000ull) {
			d->task.fn = dial_expire;
			loop_later(dialer->loop, &d->task);
		}
}

int dialer_new(const struct dialer_config *config, struct dialer **ret)
{
	struct dialer *dialer = calloc(1, sizeof(*dialer));

	dialer->loop = config->loop;
	*ret = dialer;
	return 0;
}

void dialer_free(struct dialer *dialer)
{
	check(LIST_EMPTY(&dialer->dials));
	free(dialer);
}
