/* SPDX-License-Identifier: MIT */
/* Sandboxes and their sessions: whose connection is whose. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "inspect/worker.h"

struct box *box_find(struct worker *worker, uint64_t cgroup_id)
{
	struct box *box;

	LIST_FOREACH(box, &worker->boxes[cgroup_id % BOX_BUCKETS], of_worker)
		if (box->cgroup_id == cgroup_id)
			return box;
	return NULL;
}

struct site *site_find(struct worker *worker, const char *session)
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
	if (!site || origins_new(worker_roots(worker), &site->origins) < 0 ||
	    names_new(&worker->key, &site->names) < 0) {
		if (site)
			origins_free(site->origins);
		free(site);
		return NULL;
	}
	memcpy(site->session, session, strnlen(session, sizeof(site->session) - 1));
	TAILQ_INIT(&site->idle);
	TAILQ_INIT(&site->lookups);
	LIST_INSERT_HEAD(&worker->sites, site, of_worker);
	return site;
}

static void site_free(struct site *site, enum np_reason by)
{
	upstream_close_all(site, by, "the sandbox was removed");
	origins_free(site->origins);
	ca_free(site->ca);
	names_free(site->names);
	LIST_REMOVE(site, of_worker);
	free(site);
}

static void box_close_clients(struct worker *worker, struct box *box, enum np_reason by)
{
	struct client *client, *next;

	lookup_forget(worker, box, NULL);
	for (client = LIST_FIRST(&box->clients); client; client = next) {
		next = LIST_NEXT(client, of_box);
		client_end_by(client, by);
	}
}

void box_free(struct worker *worker, struct box *box, enum np_reason by)
{
	box_close_clients(worker, box, by);
	LIST_REMOVE(box, of_worker);
	box->site->proxied -= box->rung.mode == NP_PROXIED;
	if (--box->site->boxes == 0)
		site_free(box->site, by);
	free(box);
	lookup_cancel_unwanted(worker);
}

/* Bytes on their way to origins that its programs handed over. Kept connections are the session's: they end with its last
 * sandbox. */
bool box_has_unsent(const struct box *box)
{
	const struct exchange *ex;
	const struct client *client;

	LIST_FOREACH(client, &box->clients, of_box) {
		if (client->tunnel && tunnel_owes(client->tunnel))
			return true;
		LIST_FOREACH(ex, &client->exchanges, of_client)
			if (upstream_owes(ex))
				return true;
	}
	return box->site->boxes == 1 && upstreams_owe(box->site);
}

void box_rejudge(struct worker *worker, struct box *box, enum np_reason by)
{
	struct client *client, *next;

	lookup_rejudge(worker, box);
	for (client = LIST_FIRST(&box->clients); client; client = next) {
		next = LIST_NEXT(client, of_box);
		client_rejudge(client, by);
	}
}

static void box_count_cut(struct worker *worker, const struct box *box)
{
	const struct client *client;
	const struct exchange *ex;

	LIST_FOREACH(client, &box->clients, of_box) {
		if (client->tunnel)
			ledger_add(&worker->ledger->cut, 1);
		LIST_FOREACH(ex, &client->exchanges, of_client)
			ledger_add(&worker->ledger->cut, 1);
	}
}

static void site_raised(struct site *site)
{
	if (site->raised)
		upstream_close_all(site, NP_R_ENDED_BY_RAISE, "the session was raised");
	site->raised = false;
}

void sites_raised(struct worker *worker)
{
	struct site *site;

	LIST_FOREACH(site, &worker->sites, of_worker)
		site_raised(site);
}

int box_learn(struct worker *worker, const struct link_box *told)
{
	struct box *box = box_find(worker, told->cgroup_id);
	bool fresh = !box, was_proxied;
	struct np_rung before;
	struct site *site;

	if (fresh) {
		site = site_get(worker, told->session);
		box = site ? calloc(1, sizeof(*box)) : NULL;
		if (!box)
			return -ENOMEM;
		box->cgroup_id = told->cgroup_id;
		box->site = site;
		box->tokens = NP_REQUEST_BURST;
		box->counts =
			told->slot - 1 < NP_BOXES_MAX ? &worker->ledger->slots[told->slot - 1] : &worker->uncounted;
		box->told_ns = loop_now_ns();
		site->boxes++;
		LIST_INSERT_HEAD(&worker->boxes[told->cgroup_id % BOX_BUCKETS], box, of_worker);
	}
	before = box->rung;
	box->rung = told->rung;
	/* The generation alone says nothing that is open is less. */
	if (!np_rung_is_looser(&before, &box->rung) && !np_rung_is_looser(&box->rung, &before))
		return 0;
	was_proxied = before.mode == NP_PROXIED;
	box->site->proxied += box->rung.mode == NP_PROXIED;
	box->site->proxied -= was_proxied;
	if (!fresh)
		upstream_retire(box->site);
	if (box->rung.mode == NP_PROXIED) {
		box_rejudge(worker, box, NP_R_ENDED_BY_RAISE);
		lookup_cancel_unwanted(worker);
		return 0;
	}
	box_count_cut(worker, box);
	/* With resets, so that not a byte that waits in a socket leaves; sandboxes of one session change together. But one
	 * may be NONE from its start, by its class, while others are PROXIED. */
	box_close_clients(worker, box, NP_R_ENDED_BY_RAISE);
	/* Other sandboxes of the session come next, each with its own rung for the events of what it had open. */
	box->site->raised |= was_proxied;
	if (!box->site->proxied)
		site_raised(box->site);
	lookup_cancel_unwanted(worker);
	return 0;
}
