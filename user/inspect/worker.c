/* SPDX-License-Identifier: MIT */
#include "inspect/worker.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "policy/snapshot.h"

#define ACCEPT_BATCH 64
#define TICK_MS	     50
#define PATIENCE_MS  2000 /* for what the daemon waits for */

/* -- sandboxes and sessions --------------------------------------------------------- */

struct box *box_find(struct worker *worker, uint64_t cgroup_id)
{
	struct box *box;

	LIST_FOREACH(box, &worker->boxes[cgroup_id % BOX_BUCKETS], of_worker)
	if (box->cgroup_id == cgroup_id)
		return box;
	return NULL;
}

static struct site *site_find(struct worker *worker, const char *session)
{
	struct site *site;

	LIST_FOREACH(site, &worker->sites, of_worker)
	if (!strcmp(site->session, session))
		return site;
	return NULL;
}

static struct site *site_get(struct worker *worker, const char *session)
{
	struct site *site = site_find(worker, session);

	if (site)
		return site;
	site = calloc(1, sizeof(*site));
	if (!site || origins_new(worker->roots, &site->origins) < 0) {
		free(site);
		return NULL;
	}
	memcpy(site->session, session, strnlen(session, sizeof(site->session) - 1));
	TAILQ_INIT(&site->idle);
	LIST_INSERT_HEAD(&worker->sites, site, of_worker);
	return site;
}

static void site_free(struct site *site)
{
	upstream_close_all(site);
	origins_free(site->origins);
	ca_free(site->ca);
	LIST_REMOVE(site, of_worker);
	free(site);
}

static void box_close_clients(struct box *box)
{
	struct client *client, *next;

	for (client = LIST_FIRST(&box->clients); client; client = next) {
		next = LIST_NEXT(client, of_box);
		client_reset(client);
	}
}

static void box_free(struct box *box)
{
	box_close_clients(box);
	LIST_REMOVE(box, of_worker);
	if (--box->site->boxes == 0)
		site_free(box->site);
	free(box);
}

static void box_rejudge(struct box *box)
{
	struct client *client, *next;

	for (client = LIST_FIRST(&box->clients); client; client = next) {
		next = LIST_NEXT(client, of_box);
		client_rejudge(client);
	}
}

static int box_learn(struct worker *worker, const struct link_box *told)
{
	struct box *box = box_find(worker, told->cgroup_id);
	bool fresh = !box, was_proxied;
	struct site *site;

	if (fresh) {
		site = site_get(worker, told->session);
		box = site ? calloc(1, sizeof(*box)) : NULL;
		if (!box)
			return -ENOMEM;
		box->cgroup_id = told->cgroup_id;
		box->site = site;
		box->tokens = NP_REQUEST_BURST;
		box->told_ns = loop_now_ns();
		site->boxes++;
		LIST_INSERT_HEAD(&worker->boxes[told->cgroup_id % BOX_BUCKETS], box, of_worker);
	}
	box->generation = told->generation;
	if (box->level == (enum level)told->level && box->mode == (enum np_mode)told->mode &&
	    box->reads_only == !!told->reads_only)
		return 0;
	was_proxied = box->mode == NP_PROXIED;
	box->reads_only = told->reads_only;
	box->level = (enum level)told->level;
	box->mode = (enum np_mode)told->mode;
	if (!fresh)
		upstream_retire(box->site);
	if (box->mode == NP_PROXIED) {
		box_rejudge(box);
		return 0;
	}
	/* With resets, so that not a byte that waits in a socket leaves; sandboxes of one session change together. But one
	 * may be NONE from its start, by its class, while others are PROXIED. */
	box_close_clients(box);
	if (was_proxied)
		upstream_close_all(box->site);
	return 0;
}

/* -- what the daemon says ----------------------------------------------------------- */

static int ca_learn(struct worker *worker, struct link_ca *told)
{
	struct site *site = site_find(worker, told->session);
	struct box *box;
	int r = 0;

	if (!site || site->ca || told->len > sizeof(told->data))
		return 0;
	r = ca_import(told->data, told->len, &site->ca);
	explicit_bzero(told->data, sizeof(told->data));
	if (r < 0)
		log_error("an authority was not understood: %s",
			  strerror(-r)); /* its session's TLS is reset, no more */
	for (size_t i = 0; r == 0 && i < BOX_BUCKETS; i++)
		LIST_FOREACH(box, &worker->boxes[i], of_worker)
		{
			struct client *client, *next;

			if (box->site != site)
				continue;
			for (client = LIST_FIRST(&box->clients); client; client = next) {
				next = LIST_NEXT(client, of_box);
				client_ca_ready(client);
			}
		}
	return 0;
}

/* The daemon gives it to all workers, to us as well. */
static int ca_make(struct worker *worker, const struct link_ca *told)
{
	_buf_ struct buf secret = BUF_INIT(LINK_CA_BYTES), pem = BUF_INIT(LINK_CA_BYTES);
	struct link_ca answer = { 0 };
	struct ca *ca = NULL;
	int r = ca_new(told->session, &ca);

	if (r == 0)
		r = ca_export(ca, &secret);
	if (r == 0)
		r = ca_pem(ca, &pem);
	if (r == 0 && secret.len + pem.len > sizeof(answer.data))
		r = -E2BIG;
	if (r == 0) {
		memcpy(answer.session, told->session, sizeof(answer.session));
		answer.len = (uint32_t)secret.len;
		answer.pem_len = (uint32_t)pem.len;
		memcpy(answer.data, secret.data, secret.len);
		memcpy(answer.data + secret.len, pem.data, pem.len);
		r = link_send_patiently(worker->link, LINK_CA, &answer, sizeof(answer), -1, PATIENCE_MS);
	}
	if (secret.data)
		explicit_bzero(secret.data, secret.len);
	explicit_bzero(&answer, sizeof(answer));
	ca_free(ca);
	return r;
}

static int policy_learn(struct worker *worker, const char *data, size_t len)
{
	_problems_ struct problems problems = { 0 };
	struct policy *policy = NULL, *old = worker->policy;
	struct site *site;
	struct box *box;
	int r = policy_load_snapshot(data, len, &policy, &problems);

	if (r < 0)
		return r;
	worker->policy = policy;
	policy_free(old);
	LIST_FOREACH(site, &worker->sites, of_worker)
	upstream_retire(site);
	for (size_t i = 0; i < BOX_BUCKETS; i++)
		LIST_FOREACH(box, &worker->boxes[i], of_worker)
	box_rejudge(box);
	return 0;
}

static int settings_learn(struct worker *worker, const char *data, size_t len)
{
	struct dialer_config config = { .loop = worker->loop, .resolvers = data };
	const char *nul = memchr(data, '\0', len);

	if (worker->dialer)
		return 0; /* once, at the start */
	if (!nul || !len || data[len - 1])
		return -EPROTO;
	config.hosts = nul + 1 < data + len ? nul + 1 : NULL;
	return dialer_new(&config, &worker->dialer);
}

static int message_take(struct worker *worker, enum link_type type, char *data, size_t len, int fd);

static int batch_learn(struct worker *worker, const char *data, size_t len)
{
	static char copy[LINK_BYTES_MAX] __attribute__((aligned(16)));
	struct link_message message;
	int r = 0;

	while (r == 0 && len) {
		if (len < sizeof(message))
			return -EPROTO;
		memcpy(&message, data, sizeof(message));
		data += sizeof(message);
		len -= sizeof(message);
		if (message.len > len || message.len > sizeof(copy) || message.type == LINK_BATCH)
			return -EPROTO;
		memcpy(copy, data, message.len);
		r = message_take(worker, message.type, copy, message.len, -1);
		data += message.len;
		len -= message.len;
	}
	explicit_bzero(copy, sizeof(copy));
	return r;
}

static int blob_learn(struct worker *worker, enum link_type type, int fd)
{
	const char *data;
	size_t len;
	int r = fd < 0 ? -EPROTO : link_blob_map(fd, LINK_BATCH_MAX, &data, &len);

	if (r < 0)
		return r;
	if (type == LINK_POLICY)
		r = policy_learn(worker, data, len);
	else if (type == LINK_SETTINGS)
		r = settings_learn(worker, data, len);
	else if (type == LINK_BATCH)
		r = batch_learn(worker, data, len);
	else if (!worker->roots)
		r = roots_new(data, len, &worker->roots);
	if (data)
		munmap((void *)data, len);
	return r;
}

static int message_take(struct worker *worker, enum link_type type, char *data, size_t len, int fd)
{
	struct link_box *told = (struct link_box *)(void *)data;
	struct box *box;

	switch (type) {
	case LINK_SETTINGS:
	case LINK_POLICY:
	case LINK_ROOTS:
		return blob_learn(worker, type, fd);
	case LINK_BOX:
		return len == sizeof(*told) ? box_learn(worker, told) : -EPROTO;
	case LINK_GONE:
		box = len == sizeof(*told) ? box_find(worker, told->cgroup_id) : NULL;
		if (box)
			box_free(box);
		return 0;
	case LINK_CA:
		return len == sizeof(struct link_ca) ? ca_learn(worker, (struct link_ca *)(void *)data) : -EPROTO;
	case LINK_MAKE_CA:
		return len == sizeof(struct link_ca) ? ca_make(worker, (struct link_ca *)(void *)data) : -EPROTO;
	case LINK_BATCH:
		return blob_learn(worker, type, fd);
	case LINK_SYNC:
		worker_flush(worker);
		return link_send_patiently(worker->link, LINK_SYNC, data, len, -1, PATIENCE_MS);
	default:
		return -EPROTO;
	}
}

static void on_listen4(void *data, uint32_t events);
static void on_listen6(void *data, uint32_t events);

/* All is known: connections may come. */
static int worker_open(struct worker *worker)
{
	int r = worker->policy && worker->roots && worker->dialer ? 0 : -EPROTO;

	if (r == 0)
		r = loop_watch(worker->loop, worker->listeners[0], EPOLLIN | EPOLLEXCLUSIVE, on_listen4, worker);
	if (r == 0)
		r = loop_watch(worker->loop, worker->listeners[1], EPOLLIN | EPOLLEXCLUSIVE, on_listen6, worker);
	if (r < 0)
		return r;
	worker->ready = true;
	return link_send_patiently(worker->link, LINK_READY, NULL, 0, -1, PATIENCE_MS);
}

void worker_drain(struct worker *worker)
{
	static char data[LINK_BYTES_MAX] __attribute__((aligned(16)));
	enum link_type type;
	size_t len;
	int r;

	for (;;) {
		int received = -1;

		r = link_receive(worker->link, &type, data, &len, &received);
		if (r < 0)
			break;
		r = message_take(worker, type, data, len, received);
		cleanup_close(&received);
		if (r < 0)
			break;
		if (type == LINK_BATCH && !worker->ready)
			r = worker_open(worker);
		if (r < 0)
			break;
	}
	if (r == -EAGAIN)
		return;
	/* Without the daemon's word nothing is allowed, so there is nothing to do any more. */
	if (r != -EPIPE)
		log_error("inspector: the daemon's message was not understood: %s", strerror(-r));
	loop_stop(worker->loop);
}

/* One sandbox does not push the others out of the history: beyond its rate its requests are only counted. */
static bool box_may_tell(struct box *box)
{
	uint64_t now = loop_now_ns(), add = (now - box->told_ns) * NP_REQUEST_RATE / 1000000000;

	if (add) {
		box->tokens = box->tokens + add < NP_REQUEST_BURST ? box->tokens + add : NP_REQUEST_BURST;
		box->told_ns = now;
	}
	if (!box->tokens)
		return false;
	box->tokens--;
	return true;
}

void worker_tell(struct worker *worker, const struct link_request *request)
{
	struct box *box = box_find(worker, request->cgroup_id);
	struct link_request told;

	if (!box)
		return;
	if (!box_may_tell(box)) {
		box->suppressed++;
		return;
	}
	told = *request;
	told.suppressed = box->suppressed;
	if (link_send(worker->link, LINK_REQUEST, &told, sizeof(told), -1) < 0)
		box->suppressed++;
	else
		box->suppressed = 0;
}

/* -- the loop ----------------------------------------------------------------------- */

int h2_push(struct h2 *h2, struct channel *channel, struct buf *out)
{
	int r = 0;

	for (;;) {
		if (h2 && channel_backlog(channel) <= NP_BACKLOG_HIGH)
			r = h2_write(h2, out, NP_BACKLOG_HIGH);
		if (r < 0 || !out->len)
			break;
		r = channel_write(channel, out->data, out->len);
		buf_clear(out);
		/* More, while the socket takes it all: it will not tell of room that it never lacked. */
		if (r < 0 || !h2)
			break;
	}
	buf_clear(out);
	if (out->cap > (16u << 10))
		buf_free(out); /* an idle connection is small */
	return r;
}

void worker_flush(struct worker *worker)
{
	struct upstream *up;
	struct client *client;

	/* What is flushed may dirty others, and call us again: one of us is enough. */
	if (worker->flushing)
		return;
	worker->flushing = true;
	for (;;) {
		if ((up = LIST_FIRST(&worker->dirty_upstreams)))
			upstream_flush(up);
		else if ((client = LIST_FIRST(&worker->dirty_clients)))
			client_flush(client);
		else
			break;
	}
	worker->flushing = false;
}

static void on_link(void *data, uint32_t events)
{
	struct worker *worker = data;

	(void)events;
	worker_drain(worker);
	worker_flush(worker);
}

static void on_listen(struct worker *worker, int listener)
{
	for (int i = 0; i < ACCEPT_BATCH; i++) {
		int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

		if (fd < 0)
			break;
		client_accept(worker, fd);
	}
	worker_flush(worker);
}

static void on_listen4(void *data, uint32_t events)
{
	struct worker *worker = data;

	(void)events;
	on_listen(worker, worker->listeners[0]);
}

static void on_listen6(void *data, uint32_t events)
{
	struct worker *worker = data;

	(void)events;
	on_listen(worker, worker->listeners[1]);
}

static void on_tick(void *data)
{
	struct worker *worker = data;
	struct site *site, *next;
	struct box *box;

	worker->now_ns = loop_now_ns();
	if (worker->dialer)
		dialer_tick(worker->dialer);
	for (site = LIST_FIRST(&worker->sites); site; site = next) {
		next = LIST_NEXT(site, of_worker);
		upstream_tick(site, worker->now_ns);
	}
	for (size_t i = 0; i < BOX_BUCKETS; i++)
		LIST_FOREACH(box, &worker->boxes[i], of_worker)
		{
			struct client *client, *after;

			for (client = LIST_FIRST(&box->clients); client; client = after) {
				after = LIST_NEXT(client, of_box);
				client_tick(client, worker->now_ns);
			}
		}
	worker_flush(worker);
}

int worker_new(int link, int listen4, int listen6, struct worker **ret)
{
	struct worker *worker = calloc(1, sizeof(*worker));
	int r;

	if (!worker)
		return -ENOMEM;
	worker->link = link;
	worker->listeners[0] = listen4;
	worker->listeners[1] = listen6;
	r = loop_new(&worker->loop);
	if (r == 0)
		r = loop_watch(worker->loop, link, EPOLLIN, on_link, worker);
	if (r == 0)
		r = loop_every(worker->loop, TICK_MS, on_tick, worker);
	if (r < 0) {
		worker_free(worker);
		return r;
	}
	*ret = worker;
	return 0;
}

int worker_run(struct worker *worker)
{
	return loop_run(worker->loop);
}

void worker_free(struct worker *worker)
{
	for (size_t i = 0; i < BOX_BUCKETS; i++)
		while (!LIST_EMPTY(&worker->boxes[i]))
			box_free(LIST_FIRST(&worker->boxes[i]));
	if (worker->dialer)
		dialer_free(worker->dialer);
	roots_free(worker->roots);
	policy_free(worker->policy);
	loop_free(worker->loop);
	free(worker);
}
