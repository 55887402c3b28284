/* SPDX-License-Identifier: MIT */
#include "inspect/worker.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "inspect/client.h"
#include "inspect/daemon_link.h"
#include "inspect/judge.h"
#include "inspect/origin_dial.h"
#include "net/dial.h"
#include "net/slab.h"

#define TICK_MS	   50
#define TRIM_TICKS 4

int worker_open(struct worker *worker)
{
	int r = worker->policy && worker->system && worker->dialer ? 0 : -EPROTO;

	if (r == 0)
		r = listeners_open(worker);
	if (r == 0)
		r = dns_server_open(worker->dns);
	if (r < 0)
		return r;
	worker->ready = true;
	return 0;
}

/* -- the loop ----------------------------------------------------------------------- */

void worker_flush(struct worker *worker)
{
	struct leg *leg;

	/* What is flushed may dirty others, and call us again: one of us is enough. */
	if (worker->flushing)
		return;
	worker->flushing = true;
	while ((leg = LIST_FIRST(&worker->dirty[LEG_ORIGIN])) || (leg = LIST_FIRST(&worker->dirty[LEG_CLIENT])))
		leg_flush(leg);
	worker->flushing = false;
}

void worker_cancel_unwanted(struct worker *worker)
{
	if (worker->dialer)
		dialer_cancel(worker->dialer);
	dns_server_cancel_unwanted(worker->dns);
}

static void on_link(void *data, uint32_t events)
{
	struct worker *worker = data;

	(void)events;
	worker_drain(worker);
	worker_flush(worker);
}

static void on_tick(void *data)
{
	struct worker *worker = data;
	struct session *session, *next;
	struct sandbox *sandbox, *following;

	worker->now_ns = loop_now_ns();
	if (worker->dialer)
		dialer_tick(worker->dialer);
	origin_dials_tick(worker, worker->now_ns);
	dns_server_tick(worker->dns, worker->now_ns);
	holds_tick(worker, worker->now_ns);
	listeners_tick(worker);
	for (session = LIST_FIRST(&worker->pooling); session; session = next) {
		next = LIST_NEXT(session, of_pooling);
		upstream_tick(session, worker->now_ns);
		memory_tick_upstreams(session);
	}
	for (sandbox = LIST_FIRST(&worker->talking); sandbox; sandbox = following) {
		struct client *client, *after;

		following = LIST_NEXT(sandbox, of_talking);
		for (client = LIST_FIRST(&sandbox->clients); client; client = after) {
			after = LIST_NEXT(client, of_sandbox);
			client_tick(client, worker->now_ns);
		}
		memory_tick(worker, sandbox);
	}
	worker_flush(worker);
	worker_stop_tick(worker);
	report_flush(worker);
	if (++worker->ticks % TRIM_TICKS == 0) {
		slab_trim();
		memory_trim();
	}
}

int worker_new(const struct worker_fds *fds, struct worker **ret)
{
	struct worker *worker = calloc(1, sizeof(*worker));
	int r;

	if (!worker)
		return -ENOMEM;
	worker->link = fds->link;
	route_probes_open(worker->probes);
	worker->now_ns = loop_now_ns();
	holds_init(&worker->holds);
	r = reporter_init(&worker->reporter);
	if (r == 0)
		r = hash_key_make(&worker->key);
	if (r == 0)
		r = loop_new(&worker->loop);
	if (r == 0)
		r = loop_watch(worker->loop, worker->link, EPOLLIN, on_link, worker);
	if (r == 0)
		r = loop_every(worker->loop, TICK_MS, on_tick, worker);
	for (int i = 0; r == 0 && i < 2; i++)
		r = listener_add(worker, 0, fds->listeners[i]);
	if (r == 0)
		r = queries_new(worker, fds, &worker->dns);
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
	struct sandbox *sandbox;

	while ((sandbox = sandbox_next(worker, NULL)))
		sandbox_free(worker, sandbox, NP_R_ENDED_BY_STOP);
	table_clear(&worker->sandboxes);
	table_clear(&worker->sessions_by_name);
	origin_dials_clear(worker);
	worker_forget(worker);
	report_flush(worker);
	reporter_close(&worker->reporter);
	buf_free(&worker->spare);
	dns_server_free(worker->dns);
	listeners_free(worker);
	for (int i = 0; i < 2; i++)
		if (worker->probes[i] >= 0)
			close(worker->probes[i]);
	loop_free(worker->loop);
	free(worker);
}
