/* SPDX-License-Identifier: MIT */
/* Sandboxes and their sessions: whose connection is whose. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "inspect/exchange.h"
#include "inspect/tunnel.h"
#include "policy/credential.h"
#include "tls/ca.h"
#include "tls/origin.h"

struct sandbox *sandbox_find(struct worker *worker, uint64_t cgroup_id)
{
	return TABLE_FIND(&worker->sandboxes, hash_number(&worker->key, cgroup_id), struct sandbox, node, it,
			  it->cgroup_id == cgroup_id);
}

struct sandbox *sandbox_next(const struct worker *worker, const struct sandbox *sandbox)
{
	struct table_node *n = table_walk(&worker->sandboxes, sandbox ? &sandbox->node : NULL);

	return n ? container_of(n, struct sandbox, node) : NULL;
}

struct session *session_find(struct worker *worker, const char *name)
{
	return TABLE_FIND(&worker->sessions_by_name, hash_text(&worker->key, name), struct session, node, it,
			  !strcmp(it->name, name));
}

static struct session *session_get(struct worker *worker, const char *name)
{
	struct session *session = session_find(worker, name);

	if (session)
		return session;
	session = table_reserve(&worker->sessions_by_name) == 0 ? calloc(1, sizeof(*session)) : NULL;
	if (!session || dns_session_init(&session->dns, &worker->key) < 0) {
		free(session);
		return NULL;
	}
	memcpy(session->name, name, strnlen(name, sizeof(session->name) - 1));
	session->dns.name = session->name;
	pool_init(&session->pool);
	token_watch_come(worker, session);
	LIST_INSERT_HEAD(&worker->sessions, session, of_worker);
	table_add(&worker->sessions_by_name, &session->node, hash_text(&worker->key, session->name));
	return session;
}

static void session_drop_kept_ca(struct session *session)
{
	if (session->ca_data)
		explicit_bzero(session->ca_data, session->ca_len);
	free(session->ca_data);
	session->ca_data = NULL;
}

static bool policy_captures(const struct policy *policy)
{
	for (size_t i = 0; i < policy->n_credentials; i++)
		if (policy->credentials[i].capture)
			return true;
	return false;
}

const struct placeholder_set *session_placeholders(const struct worker *worker, struct session *session)
{
	if (session->placeholders || !worker->policy->n_credentials ||
	    placeholder_set_new(worker->policy, &worker->placeholder_key, session->name, &session->placeholders) < 0)
		return session->placeholders;
	if (worker->sealer && policy_captures(worker->policy) &&
	    placeholder_set_add_tokens(session->placeholders, worker->sealer, worker->policy, session->name) < 0)
		session_drop_placeholders(session);
	return session->placeholders;
}

void session_drop_placeholders(struct session *session)
{
	placeholder_set_free(session->placeholders);
	session->placeholders = NULL;
}

static void session_free(struct worker *worker, struct session *session, enum np_reason by)
{
	upstream_close_all(session, by, "the sandbox was removed");
	pool_free(&session->pool, worker->loop);
	origins_free(session->origins);
	ca_free(session->ca);
	session_drop_kept_ca(session);
	session_drop_placeholders(session);
	dns_session_free(&session->dns);
	token_watch_go(session);
	LIST_REMOVE(session, of_worker);
	table_remove(&worker->sessions_by_name, &session->node);
	loop_forget(worker->loop, &session->lane);
	free(session);
	if (LIST_EMPTY(&worker->sessions))
		token_watch_free(worker);
}

/* Reading it takes most of a millisecond, and a node has thousands of sessions of which few speak TLS: the first that does
 * pays for it, and a worker that starts has not to read them all. */
struct ca *session_ca(struct session *session)
{
	int r;

	if (session->ca || !session->ca_data) {
		session->ca_awaited |= !session->ca;
		return session->ca;
	}
	r = ca_import(session->ca_data, session->ca_len, &session->ca);
	session_drop_kept_ca(session);
	if (r < 0)
		log_error("a CA was not understood: %s", strerror(-r)); /* its session's TLS is reset, no more */
	return session->ca;
}

int session_set_ca(struct worker *worker, struct session *session, const char *data, size_t len)
{
	struct sandbox *sandbox;

	if (session->ca || session->ca_data)
		return 0;
	session->ca_data = malloc(len);
	if (!session->ca_data)
		return -ENOMEM;
	memcpy(session->ca_data, data, len);
	session->ca_len = len;
	if (!session->ca_awaited || !session_ca(session))
		return 0;
	for (sandbox = sandbox_next(worker, NULL); sandbox; sandbox = sandbox_next(worker, sandbox)) {
		struct client *client, *next;

		if (sandbox->session != session)
			continue;
		for (client = LIST_FIRST(&sandbox->clients); client; client = next) {
			next = LIST_NEXT(client, of_sandbox);
			client_ca_ready(client);
		}
	}
	return 0;
}

struct origins *session_origins(const struct worker *worker, struct session *session)
{
	if (!session->origins && origins_new(worker_roots(worker), &session->origins) < 0)
		return NULL;
	return session->origins;
}

void session_renew_origins(struct session *session)
{
	upstream_close_all(session, NP_R_ORIGIN_UNTRUSTED, "the policy's extra_roots have changed");
	origins_free(session->origins);
	session->origins = NULL;
}

static void sandbox_close_clients(struct worker *worker, struct sandbox *sandbox, enum np_reason by)
{
	struct client *client, *next;

	dns_server_forget(worker->dns, &sandbox->dns, NULL);
	for (client = LIST_FIRST(&sandbox->clients); client; client = next) {
		next = LIST_NEXT(client, of_sandbox);
		client_end_by(client, by);
	}
}

void sandbox_free(struct worker *worker, struct sandbox *sandbox, enum np_reason by)
{
	sandbox_close_clients(worker, sandbox, by);
	table_remove(&worker->sandboxes, &sandbox->node);
	sandbox->session->proxied -= sandbox->rung.mode == NP_PROXIED;
	if (--sandbox->session->sandboxes == 0)
		session_free(worker, sandbox->session, by);
	free(sandbox);
	worker_cancel_unwanted(worker);
}

/* Bytes on their way to origins that its programs handed over. Kept connections are the session's: they end with its last
 * sandbox. */
bool sandbox_has_unsent(const struct sandbox *sandbox)
{
	const struct exchange *ex;
	const struct client *client;

	LIST_FOREACH(client, &sandbox->clients, of_sandbox) {
		if (client->tunnel && tunnel_owes(client->tunnel))
			return true;
		LIST_FOREACH(ex, &client->exchanges, at_client.of_client)
			if (upstream_owes(ex))
				return true;
	}
	return sandbox->session->sandboxes == 1 && upstreams_owe(sandbox->session);
}

bool sandbox_has_unheard(const struct sandbox *sandbox)
{
	const struct client *client;

	LIST_FOREACH(client, &sandbox->clients, of_sandbox)
		if (client_is_unheard(client))
			return true;
	return false;
}

void sandbox_rejudge(struct worker *worker, struct sandbox *sandbox, enum np_reason by)
{
	struct client *client, *next;

	dns_server_rejudge(worker->dns, &sandbox->dns);
	worker->rejudging = by;
	for (client = LIST_FIRST(&sandbox->clients); client; client = next) {
		next = LIST_NEXT(client, of_sandbox);
		client_rejudge(client, by);
	}
	worker->rejudging = 0;
}

static void sandbox_count_cut(struct worker *worker, const struct sandbox *sandbox)
{
	const struct client *client;
	const struct exchange *ex;

	LIST_FOREACH(client, &sandbox->clients, of_sandbox) {
		if (client->tunnel)
			reporter_count_cut(&worker->reporter);
		LIST_FOREACH(ex, &client->exchanges, at_client.of_client)
			reporter_count_cut(&worker->reporter);
	}
}

static void session_raised(struct session *session)
{
	if (session->raised)
		upstream_close_all(session, NP_R_ENDED_BY_RAISE, "the session was raised");
	session->raised = false;
}

void sessions_raised(struct worker *worker)
{
	struct session *session;

	LIST_FOREACH(session, &worker->sessions, of_worker)
		session_raised(session);
}

int sandbox_learn(struct worker *worker, const struct link_sandbox *message)
{
	struct sandbox *sandbox = sandbox_find(worker, message->cgroup_id);
	bool fresh = !sandbox, was_proxied;
	struct np_rung before;
	struct session *session;

	if (fresh) {
		if (table_reserve(&worker->sandboxes) < 0)
			return -ENOMEM;
		session = session_get(worker, message->session);
		sandbox = session ? calloc(1, sizeof(*sandbox)) : NULL;
		if (!sandbox)
			return -ENOMEM;
		sandbox->cgroup_id = message->cgroup_id;
		sandbox->session = session;
		sandbox->dns = (struct dns_sandbox){ .session = &session->dns, .rung = &sandbox->rung };
		sandbox->counts = reporter_slot(&worker->reporter, message->slot);
		report_rate_init(&sandbox->rate);
		session->sandboxes++;
		table_add(&worker->sandboxes, &sandbox->node, hash_number(&worker->key, message->cgroup_id));
	}
	before = sandbox->rung;
	sandbox->rung = message->rung;
	sandbox->ending = message->ending;
	/* The generation alone says nothing that is open is less. */
	if (!np_rung_is_looser(&before, &sandbox->rung) && !np_rung_is_looser(&sandbox->rung, &before))
		return 0;
	was_proxied = before.mode == NP_PROXIED;
	sandbox->session->proxied += sandbox->rung.mode == NP_PROXIED;
	sandbox->session->proxied -= was_proxied;
	if (!fresh)
		upstream_retire(sandbox->session);
	if (sandbox->rung.mode == NP_PROXIED) {
		sandbox_rejudge(worker, sandbox, NP_R_ENDED_BY_RAISE);
		worker_cancel_unwanted(worker);
		return 0;
	}
	sandbox_count_cut(worker, sandbox);
	/* With resets, so that not a byte that waits in a socket leaves; sandboxes of one session change together. But one
	 * may be NONE from its start, by its class, while others are PROXIED. */
	sandbox_close_clients(worker, sandbox, NP_R_ENDED_BY_RAISE);
	/* Other sandboxes of the session come next, each with its own rung for the events of what it had open. */
	sandbox->session->raised |= was_proxied;
	if (!sandbox->session->proxied)
		session_raised(sandbox->session);
	worker_cancel_unwanted(worker);
	return 0;
}
