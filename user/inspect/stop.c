/* SPDX-License-Identifier: MIT */
/* Counts that somebody waits for, and the end of a worker that is told to stop. */
#include "inspect/worker.h"
#include "vocab/limits.h"

#define SETTLE_ROUNDS 8 /* a connection is accepted in one round, its request read in another: with room to spare */

static void clients_each(struct worker *worker, void (*fn)(struct client *client))
{
	struct client *client, *next;
	struct sandbox *sandbox;

	for (size_t i = 0; i < SANDBOX_BUCKETS; i++)
		LIST_FOREACH(sandbox, &worker->sandboxes[i], of_worker)
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

	if (worker->settle_rounds) {
		worker->settle_rounds--;
		loop_later(worker->loop, &worker->settling);
		return;
	}
	clients_each(worker, count_tunnel);
	report_flush(worker);
	link_send(worker->link, LINK_SETTLE, &worker->settle, sizeof(worker->settle), -1); /* lost: nobody waits long */
}

void worker_settle(struct worker *worker, uint32_t number)
{
	worker->settle = number;
	worker->settle_rounds = SETTLE_ROUNDS + worker->n_clients / 16; /* a round looks at 64 descriptors */
	worker->settling = (struct loop_task){
		.fn = on_settle, .data = worker, .next = worker->settling.next, .link = worker->settling.link
	};
	loop_later(worker->loop, &worker->settling);
}

/* -- stop --------------------------------------------------------------------------- */

static bool is_open(const struct client *client)
{
	return !LIST_EMPTY(&client->exchanges) || (client->channel && channel_backlog(client->channel)) ||
	       (client->h2 && h2_unsent(client->h2));
}

static void close_idle(struct client *client)
{
	if (!is_open(client) && !client->tunnel)
		client_close(client);
}

/* No request of it comes after those that are open. */
static void close_after(struct client *client)
{
	client->closing_after = true;
	if (!client->h2)
		return;
	h2_goaway(client->h2);
	client_dirty(client);
}

void worker_stop(struct worker *worker)
{
	if (worker->stop_ns)
		return;
	worker->stop_ns = loop_now_ns() + NP_DRAIN_MS * 1000000ull;
	if (worker->ready) {
		loop_unwatch(worker->loop, worker->listeners[0]);
		loop_unwatch(worker->loop, worker->listeners[1]);
	}
	clients_each(worker, close_after);
	worker_flush(worker);
}

void worker_stop_tick(struct worker *worker)
{
	bool open = false;
	struct sandbox *sandbox;

	if (!worker->stop_ns)
		return;
	clients_each(worker, close_idle);
	for (size_t i = 0; i < SANDBOX_BUCKETS && !open; i++)
		LIST_FOREACH(sandbox, &worker->sandboxes[i], of_worker) {
			const struct client *client;

			LIST_FOREACH(client, &sandbox->clients, of_sandbox)
				open |= is_open(client); /* a tunnel has no end that one could wait for */
		}
	if (!open || loop_now_ns() > worker->stop_ns)
		loop_stop(worker->loop);
}
