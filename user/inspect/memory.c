/* SPDX-License-Identifier: MIT */
/*
 * What connections hold of bytes that somebody does not read, counted by sandbox and in all. A sandbox that reads nothing, or
 * an origin that takes nothing, costs no more than limits.h says: first the legs of its exchanges may hold less, then those
 * that hold more than that little are broken off, and new requests are refused.
 */
#include <malloc.h>

#include "inspect/tunnel.h"
#include "inspect/upstream.h"
#include "vocab/limits.h"

#define EASY	  (NP_MEMORY_PER_SANDBOX / 8) /* below it nobody has to hold back */
#define UNREAD	  (NP_MEMORY_PER_SANDBOX / 2) /* the other half is for open exchanges */
#define TRIM_FROM (16u << 20)		      /* free memory that is worth the walk through all of it */

static void share_set(struct memory_share *share, struct memory_sum *sum, struct memory_sum *all, size_t now)
{
	sum->held += now - share->held;
	all->held += now - share->held;
	share->held = now;
}

void memory_count_client(struct client *client)
{
	struct memory_share *share = &client->leg.memory;
	size_t now = leg_is_dead(&client->leg) ? 0
		     : client->tunnel	       ? tunnel_held(client->tunnel)
					       : leg_held(&client->leg) + share->kept;

	share_set(share, &client->sandbox->memory, &client->worker->memory, now);
}

void memory_keep(struct client *client, size_t n)
{
	client->leg.memory.kept += n;
	memory_count_client(client);
}

void memory_count_upstream(struct upstream *up)
{
	share_set(&up->leg.memory, &up->session->memory, &up->leg.worker->memory,
		  leg_is_dead(&up->leg) ? 0 : leg_held(&up->leg));
}

/* Bytes that origins do not take count for the session: for all of its sandboxes. */
static size_t held_by(const struct sandbox *sandbox)
{
	return sandbox->memory.held + sandbox->session->memory.held;
}

static bool is_easy(const struct worker *worker, const struct sandbox *sandbox)
{
	return held_by(sandbox) < EASY && worker->memory.held < NP_MEMORY_ALL / 2;
}

size_t memory_mark(const struct client *client)
{
	return is_easy(client->worker, client->sandbox) ? NP_BACKLOG_HIGH : NP_BACKLOG_TIGHT;
}

/* Of all sandboxes together those answer that hold much. */
bool memory_is_over(const struct client *client)
{
	const struct worker *worker = client->worker;
	size_t held = held_by(client->sandbox);

	return held > UNREAD || (worker->memory.held > NP_MEMORY_ALL / 2 && held > EASY);
}

bool memory_admits(const struct client *client)
{
	const struct worker *worker = client->worker;
	const struct sandbox *sandbox = client->sandbox;

	return held_by(sandbox) + (size_t)sandbox->n_exchanges * NP_EXCHANGE_BYTES <= NP_MEMORY_PER_SANDBOX &&
	       worker->memory.held + (size_t)worker->n_clients * NP_EXCHANGE_BYTES <= NP_MEMORY_ALL;
}

/* Bodies of requests that wait for their origin, or may have to be sent once more. */
static size_t requests_kept(const struct client *client)
{
	const struct exchange *ex;
	size_t kept = 0;

	LIST_FOREACH(ex, &client->exchanges, at_client.of_client)
		kept += exchange_kept(ex);
	return kept;
}

/* A leg that was held back while it held little gets no drained() event: its backlog was never above the mark that
 * causes one. So it is resumed here. */
static bool exchanges_resume(struct client *client)
{
	struct exchange *ex, *next;
	bool owing = false;

	for (ex = LIST_FIRST(&client->exchanges); ex; ex = next) {
		next = LIST_NEXT(ex, at_client.of_client);
		if (!ex->at_origin.upstream && !ex->origin_done)
			continue;
		if ((ex->owed[WAY_RESPONSE] || stages_body_due(ex, WAY_RESPONSE)) &&
		    leg_backlog(&ex->at_client.turn) <= NP_BACKLOG_TIGHT / 2 && !exchange_drained(ex, WAY_RESPONSE))
			continue;
		if ((ex->owed[WAY_REQUEST] || stages_body_due(ex, WAY_REQUEST)) &&
		    leg_backlog(&ex->at_origin.turn) <= NP_BACKLOG_TIGHT / 2 && !exchange_drained(ex, WAY_REQUEST))
			continue;
		owing = owing || ex->owed[WAY_RESPONSE] || ex->owed[WAY_REQUEST];
	}
	return owing;
}

void memory_tick(struct worker *worker, struct sandbox *sandbox)
{
	struct client *client, *next;
	bool tight = false;

	for (client = LIST_FIRST(&sandbox->clients); client; client = next) {
		next = LIST_NEXT(client, of_sandbox);
		client->leg.memory.kept = requests_kept(client);
		memory_count_client(client);
		if (sandbox->memory.tight && exchanges_resume(client))
			tight = true;
		if (client->tunnel && client->leg.memory.held > NP_BACKLOG_TIGHT && memory_is_over(client))
			client_reset(client);
	}
	sandbox->memory.tight = tight || !is_easy(worker, sandbox);
}

void memory_tick_upstreams(struct session *session)
{
	struct upstream *up;

	LIST_FOREACH(up, &session->pool.upstreams, of_session)
		memory_count_upstream(up);
}

/* The C library keeps what was freed between what is still used. */
void memory_trim(void)
{
	if (mallinfo2().fordblks > TRIM_FROM)
		malloc_trim(0);
}
