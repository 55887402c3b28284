/* SPDX-License-Identifier: MIT */
/* Counts that somebody waits for, and the end of a worker that is told to stop. */
#include "inspect/client.h"
#include "inspect/stop.h"
#include "inspect/tunnel.h"
#include "vocab/limits.h"

#define SETTLE_ROUNDS 8 /* a connection is accepted in one round, its request read in another: with room to spare */

static void clients_each(struct worker *worker, void (*fn)(struct client *client))
{
	struct client *client, *next;
	struct sandbox *sandbox;

	for (sandbox = sandbox_next(worker, NULL); sandbox; sandbox = sandbox_next(worker, sandbox))
		for (client = LIST_FIRST(&sandbox->clients); client; client = next) {
			next = LIST_NEXT(client, of_sandbox);
			fn(client);
		}
}

/* -- settle ------------------------------------------------------------------------- */

static void count_tunnel(struct client *client)
{
	if (client->tunnel)
		tunnel_count(client->tunnel);
}

static void on_settle(void *data)
{
	struct worker *worker = data;

	if (worker->stopping.settle_rounds) {
		worker->stopping.settle_rounds--;
		loop_later(worker->loop, &worker->stopping.settling);
		return;
	}
	clients_each(worker, count_tunnel);
	report_flush(worker);
	link_send(worker->link, LINK_SETTLE, &worker->stopping.settle, sizeof(worker->stopping.settle),
		  -1); /* lost: nobody waits long */
}

void worker_settle(struct worker *worker, uint32_t number)
{
	worker->stopping.settle = number;
	worker->stopping.settle_rounds = SETTLE_ROUNDS + worker->n_clients / 16; /* a round looks at 256 descriptors */
	worker->stopping.settling.fn = on_settle;
	worker->stopping.settling.data = worker;
	loop_later(worker->loop, &worker->stopping.settling);
}

/* -- stop --------------------------------------------------------------------------- */

static void close_idle(struct client *client)
{
	if (!client_is_open(client) && !client->tunnel)
		client_close(client);
}

void worker_stop(struct worker *worker)
{
	if (worker->stopping.stop_ns)
		return;
	worker->stopping.stop_ns = loop_now_ns() + NP_DRAIN_MS * 1000000ull;
	listeners_shut(worker);
	clients_each(worker, client_close_after);
	worker_flush(worker);
}

void worker_stop_tick(struct worker *worker)
{
	bool open = false;
	struct sandbox *sandbox;

	if (!worker->stopping.stop_ns)
		return;
	clients_each(worker, close_idle);
	for (sandbox = sandbox_next(worker, NULL); sandbox && !open; sandbox = sandbox_next(worker, sandbox)) {
		const struct client *client;

		LIST_FOREACH(client, &sandbox->clients, of_sandbox)
			open |= client_is_open(client);
	}
	if (!open || loop_now_ns() > worker->stopping.stop_ns)
		loop_stop(worker->loop);
}
