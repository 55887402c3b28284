/* SPDX-License-Identifier: MIT */
#include "inspect/origin_dial.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "addr.h"
#include "http/connect.h"
#include "inspect/client.h"
#include "inspect/daemon_link.h"
#include "inspect/judge.h"
#include "synth.h"
#include "vocab/limits.h"

#define READ_BYTES 2048

struct origin_dial {
	LIST_ENTRY(origin_dial) of_worker;
	struct worker *worker;
	struct host host;
	struct origin_dial_terms terms; /* its host is the one above */
	const char *proxy;		/* NULL: none */
	struct dial *dial;		/* to the host or to the proxy; then */
	struct connect *connect;	/* what is said to the proxy, */
	int fd;				/* there; -1: not yet, or no more */
	uint64_t start_ns;		/* since when */
	struct loop_task task;		/* to tell the result */
	struct route route;
	struct origin_dial_result result;
	char words[160];
};

/* One text for all that went by a proxy of that URL, for as long as there is the worker: reports outlive policies. An operator
 * names few of them. */
struct proxy_url {
	LIST_ENTRY(proxy_url) of_worker;
	char text[];
};

static const char *proxy_url_keep(struct worker *worker, const char *text)
{
	struct proxy_url *url;

	LIST_FOREACH(url, &worker->proxy_urls, of_worker)
		if (!strcmp(url->text, text))
			return url->text;
	url = malloc(sizeof(*url) + strlen(text) + 1);
	if (!url)
		return NULL;
	memcpy(url->text, text, strlen(text) + 1);
	LIST_INSERT_HEAD(&worker->proxy_urls, url, of_worker);
	return url->text;
}

void origin_dials_clear(struct worker *worker)
{
	struct proxy_url *url;

	while ((url = LIST_FIRST(&worker->proxy_urls))) {
		LIST_REMOVE(url, of_worker);
		free(url);
	}
}

/* -- its end ----------------------------------------------------------------------- */

static void dial_drop(struct origin_dial *d)
{
	if (d->dial)
		dial_cancel(d->dial);
	d->dial = NULL;
	if (d->fd >= 0) {
		loop_unwatch(d->worker->loop, d->fd);
		close(d->fd);
	}
	d->fd = -1;
	connect_free(d->connect);
	d->connect = NULL;
}

static void dial_free(struct origin_dial *d)
{
	dial_drop(d);
	LIST_REMOVE(d, of_worker);
	route_clear(&d->route);
	free(d);
}

static void on_task(void *data)
{
	struct origin_dial *d = data;

	d->terms.done(d->terms.ctx,
		      &d->result); /* it frees nothing of ours: its pointer is no more, and ours is not cancelled */
	dial_free(d);
}

/* From the loop and from nowhere else, as net/dial.h has it. */
static void dial_notify(struct origin_dial *d)
{
	dial_drop(d);
	loop_later(d->worker->loop, &d->task);
}

static void dial_refuse(struct origin_dial *d, const char *words)
{
	d->result.error = -EACCES;
	d->result.refused = true;
	d->result.words = words;
	dial_notify(d);
}

static void proxy_fail(struct origin_dial *d, int error, const char *words)
{
	snprintf(d->words, sizeof(d->words), "the upstream proxy: %s", words);
	d->result.error = error;
	d->result.reason = error == -ETIMEDOUT ? NP_R_PROXY_TIMED_OUT : NP_R_PROXY_FAILED;
	d->result.words = d->words;
	dial_notify(d);
}

void origin_dial_cancel(struct origin_dial *d)
{
	if (!d)
		return;
	loop_cancel(d->worker->loop, &d->task);
	if (d->result.fd >= 0)
		close(d->result.fd);
	dial_free(d);
}

bool origin_dial_is_resolving(const struct origin_dial *d)
{
	return d->dial && dial_is_resolving(d->dial);
}

const char *origin_dial_proxy(const struct origin_dial *d)
{
	return d->proxy;
}

/* -- what is said to the proxy --------------------------------------------------------- */

static void status_fail(struct origin_dial *d, unsigned status)
{
	char words[64];

	snprintf(words, sizeof(words), "it answered %u%s", status,
		 status == 407	 ? ", it wants other credentials"
		 : status == 403 ? ", it does not lead to this host"
				 : "");
	proxy_fail(d, -ECONNREFUSED, words);
}

/* The tunnel is open, and what was read of it so far is nothing. */
static void proxy_opened(struct origin_dial *d)
{
	char byte;

	if (d->terms.quiet && recv(d->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) > 0) {
		proxy_fail(d, -EPROTO, "there is more behind its answer, before anything was asked of the host");
		return;
	}
	loop_unwatch(d->worker->loop, d->fd);
	d->result.error = 0;
	d->result.fd = d->fd;
	d->fd = -1;
	d->result.connect_us += (loop_now_ns() - d->start_ns) / 1000;
	dial_notify(d);
}

/* Bytes are looked at, and then those that are the answer's are taken: the rest stays where a tunnel finds it. */
static void on_answer(void *data, uint32_t events)
{
	struct origin_dial *d = data;
	char bytes[READ_BYTES];
	ssize_t n = recv(d->fd, bytes, sizeof(bytes), MSG_PEEK | MSG_DONTWAIT), used;

	(void)events;
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		proxy_fail(d, -ECONNRESET, n ? "the connection broke" : "it closed the connection");
		return;
	}
	used = connect_read(d->connect, bytes, (size_t)n);
	if (used < 0) {
		char words[120];

		snprintf(words, sizeof(words), "its answer is not understood: %s", connect_problem(d->connect));
		proxy_fail(d, -EPROTO, words);
	} else if (used && recv(d->fd, bytes, (size_t)used, MSG_DONTWAIT) != used) {
		proxy_fail(d, -ECONNRESET, "the connection broke");
	} else if (connect_is_open(d->connect)) {
		proxy_opened(d);
	} else if (connect_status(d->connect)) {
		status_fail(d, connect_status(d->connect));
	}
}

/* A new connection has room for it. */
static int proxy_ask(struct origin_dial *d, const char *credentials)
{
	char text[CONNECT_REQUEST_SIZE], where[HOST_PORT_SIZE];
	ssize_t n, sent = 0;

	host_port_text(&d->host, d->terms.port, where);
	n = connect_new(&d->connect);
	if (n == 0)
		n = connect_write(d->connect, where, credentials, text);
	if (n > 0)
		sent = send(d->fd, text, (size_t)n, MSG_NOSIGNAL | MSG_DONTWAIT);
	explicit_bzero(text, sizeof(text));
	if (n <= 0 || sent != n)
		return n < 0 ? (int)n : -EIO;
	return loop_watch(d->worker->loop, d->fd, EPOLLIN, on_answer, d);
}

static void on_proxy_dialled(void *ctx, const struct dial_result *result)
{
	struct origin_dial *d = ctx;
	const struct upstream_proxy *proxy = judge_proxy(d->worker, &d->host, d->terms.port);

	d->dial = NULL;
	d->result.dns_us = result->dns_us;
	d->result.connect_us = result->connect_us;
	if (result->error) {
		proxy_fail(d, result->error, result->words);
		return;
	}
	/* Whoever watches it is not there yet. */
	if (!judge_same_way(d->worker, &d->host, d->terms.port, d->proxy)) {
		close(result->fd);
		proxy_fail(d, -ECANCELED, "the policy names another one by now");
		return;
	}
	d->start_ns = loop_now_ns();
	d->fd = result->fd;
	if (proxy_ask(d, worker_proxy_login(d->worker, proxy)) < 0) {
		connect_free(d->connect);
		d->connect = NULL;
		close(d->fd);
		d->fd = -1;
		proxy_fail(d, -EIO, "it could not be asked");
	}
}

/* It is no destination of a sandbox: the operator names it, and no rule has to allow it. It may be on this very host. */
static bool proxy_may(void *ctx, const struct route *route)
{
	(void)ctx;
	return !np_addr_is_any(&route->addr) && !np_addr_is_many(&route->addr) && !np_addr_is_synthetic(&route->addr);
}

void origin_dials_tick(struct worker *worker, uint64_t now_ns)
{
	struct origin_dial *d;

	LIST_FOREACH(d, &worker->origin_dials, of_worker) {
		uint32_t ms = d->terms.connect_ms ? d->terms.connect_ms : NP_PROXY_MS;

		if (d->connect && now_ns > d->start_ns + ms * 1000000ull)
			proxy_fail(d, -ETIMEDOUT, "timed out");
	}
}

/* -- directly ------------------------------------------------------------------------------- */

static void on_dialled(void *ctx, const struct dial_result *result)
{
	struct origin_dial *d = ctx;

	d->dial = NULL;
	route_set(&d->route, &result->route);
	d->result = (struct origin_dial_result){ .error = result->error,
						 .fd = result->fd,
						 .route = &d->route,
						 .refused = result->refused,
						 .reason = NP_R_ORIGIN_UNREACHABLE,
						 .words = result->words,
						 .dns_us = result->dns_us,
						 .connect_us = result->connect_us };
	on_task(d); /* the dialer tells from the loop */
}

static bool on_may(void *ctx, const struct route *route)
{
	struct origin_dial *d = ctx;

	return d->terms.may(d->terms.ctx, route);
}

/* -- either --------------------------------------------------------------------------------- */

static int host_dial(struct origin_dial *d, const struct host *host, uint16_t port, dial_may_fn *may,
		     dial_done_fn *done)
{
	const struct dial_terms terms = {
		.host = host, .port = port, .owner = d->terms.session->node.hash, .may = may, .done = done, .ctx = d
	};
	int r = dial_start(d->worker->dialer, &terms, &d->dial);

	if (r == 0 && d->terms.connect_ms)
		dial_set_connect(d->dial, d->terms.connect_ms);
	return r;
}

static int proxy_dial(struct origin_dial *d, const struct upstream_proxy *proxy)
{
	d->proxy = d->result.proxy = proxy_url_keep(d->worker, proxy->url);
	if (!d->proxy)
		return -ENOMEM;
	if (d->host.is_addr) {
		d->route.addr = d->host.addr;
		d->result.route = &d->route;
	}
	if (!d->terms.may(d->terms.ctx, d->result.route)) {
		dial_refuse(d, d->host.is_addr ? "the address may not be reached"
					       : "the name is not one that a proxy may be asked for");
		return 0;
	}
	return host_dial(d, &proxy->host, proxy->port, proxy_may, on_proxy_dialled);
}

int origin_dial_start(struct worker *worker, const struct origin_dial_terms *terms, struct origin_dial **ret)
{
	const struct upstream_proxy *proxy = judge_proxy(worker, terms->host, terms->port);
	struct origin_dial *d = calloc(1, sizeof(*d));
	int r = 0;

	if (!d)
		return -ENOMEM;
	d->worker = worker;
	d->host = *terms->host;
	d->terms = *terms;
	d->terms.host = &d->host;
	d->fd = d->result.fd = -1;
	d->task = (struct loop_task){ .fn = on_task, .data = d };
	LIST_INSERT_HEAD(&worker->origin_dials, d, of_worker);
	if (proxy) {
		r = proxy_dial(d, proxy);
	} else {
		r = host_dial(d, &d->host, terms->port, on_may, on_dialled);
	}
	if (r < 0) {
		dial_free(d);
		return r;
	}
	*ret = d;
	return 0;
}
