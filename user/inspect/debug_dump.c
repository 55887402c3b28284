/* SPDX-License-Identifier: MIT */
#include "inspect/debug_dump.h"

#include <stdio.h>
#include <string.h>

#include "base/table.h"
#include "inspect/upstream.h"
#include "inspect/origin_dial.h"

_Static_assert((int)DEBUG_CLIENT_DNS == (int)CLIENT_DNS && (int)DEBUG_CLIENT_TUNNEL == (int)CLIENT_TUNNEL,
	       "states of a client");

/* One page at a time. All is counted; only what is on the page costs more than that. */
struct dump {
	struct worker *worker;
	const struct debug_ask *ask;
	struct debug_page *page;
	uint32_t at; /* entries so far, of all pages */
};

static bool is_wanted(const struct dump *dump, const struct session *session)
{
	return !dump->ask->session[0] || !strcmp(dump->ask->session, session->name);
}

/* NULL: it is on another page. */
static struct debug_entry *entry_add(struct dump *dump, enum debug_kind kind, const struct session *session,
				     uint64_t cgroup_id)
{
	struct debug_page *page = dump->page;
	struct debug_entry *entry = NULL;

	page->sums.count[kind]++;
	if (dump->at++ < page->after)
		return NULL;
	if (page->n == DEBUG_ENTRIES_MAX) {
		page->left++;
		return NULL;
	}
	entry = &page->entries[page->n++];
	*entry = (struct debug_entry){ .kind = (uint8_t)kind, .cgroup_id = cgroup_id };
	memcpy(entry->session, session->name, sizeof(entry->session));
	return entry;
}

static void entry_host(struct debug_entry *entry, const struct host *host, uint16_t port)
{
	char addr[ADDR_TEXT_SIZE] = "";

	if (host->is_addr)
		addr_format(&host->addr, addr);
	snprintf(entry->host, sizeof(entry->host), "%s", host->is_addr ? addr : host->name);
	entry->port = port;
}

static uint32_t since_ms(const struct dump *dump, uint64_t then_ns)
{
	uint64_t ms = dump->worker->now_ns > then_ns ? (dump->worker->now_ns - then_ns) / 1000000 : 0;

	return ms < UINT32_MAX ? (uint32_t)ms : UINT32_MAX;
}

static void dump_sandbox(struct dump *dump, const struct sandbox *sandbox)
{
	struct debug_entry *entry = entry_add(dump, DEBUG_SANDBOX, sandbox->session, sandbox->cgroup_id);

	if (!entry)
		return;
	entry->rung = sandbox->rung;
	entry->n_clients = sandbox->n_clients;
	entry->n_exchanges = sandbox->n_exchanges;
	entry->n_queries = sandbox->dns.n_queries;
	entry->held = sandbox->memory.held;
}

static void entry_leg(struct debug_entry *entry, const struct leg *leg)
{
	entry->life = (uint8_t)leg->life;
	entry->h2 = leg->h2 != NULL;
	entry->held = leg->memory.held;
	entry->unsent = leg_unsent(leg);
}

static void dump_client(struct dump *dump, const struct client *client)
{
	struct debug_entry *entry = entry_add(dump, DEBUG_CLIENT, client->sandbox->session, client->sandbox->cgroup_id);
	const struct exchange *ex;

	dump->page->sums.clients[client->state]++;
	if (!entry)
		return;
	entry->state = (uint8_t)client->state;
	entry->tls = client->tls;
	entry_leg(entry, &client->leg);
	entry_host(entry, &client->host, client->port);
	LIST_FOREACH(ex, &client->exchanges, at_client.of_client)
		entry->n_exchanges++;
}

static enum debug_exchange exchange_state(const struct exchange *ex)
{
	if (hold_is_on(&ex->hold))
		return DEBUG_EXCHANGE_HELD;
	if (ex->at_origin.dial)
		return origin_dial_is_resolving(ex->at_origin.dial) ? DEBUG_EXCHANGE_RESOLVING
								    : DEBUG_EXCHANGE_CONNECTING;
	if (ex->at_origin.handshake)
		return DEBUG_EXCHANGE_HANDSHAKE;
	if (ex->at_origin.awaits)
		return DEBUG_EXCHANGE_CONNECTING;
	if (!ex->at_origin.upstream && ex->response < RESPONSE_GOES)
		return DEBUG_EXCHANGE_JUDGING;
	if (ex->response != RESPONSE_AWAITED)
		return DEBUG_EXCHANGE_RECEIVING;
	return ex->request == REQUEST_SENT ? DEBUG_EXCHANGE_WAITING : DEBUG_EXCHANGE_SENDING;
}

static void dump_exchange(struct dump *dump, const struct exchange *ex)
{
	const struct sandbox *sandbox = ex->client->sandbox;
	struct debug_entry *entry = entry_add(dump, DEBUG_EXCHANGE, sandbox->session, sandbox->cgroup_id);

	if (!entry)
		return;
	entry->state = (uint8_t)exchange_state(ex);
	entry->tls = ex->tls;
	entry->held = exchange_kept(ex);
	entry->idle_ms = since_ms(dump, ex->active_ns);
	entry_host(entry, &ex->host, ex->port);
}

static void dump_origin(struct dump *dump, const struct upstream *up)
{
	struct debug_entry *entry = entry_add(dump, DEBUG_ORIGIN, up->session, 0);

	if (!entry)
		return;
	entry->state = up->handshaking ? DEBUG_ORIGIN_HANDSHAKE : up->idle ? DEBUG_ORIGIN_IDLE : DEBUG_ORIGIN_BUSY;
	entry->tls = up->to->tls;
	entry->n_exchanges = up->n_exchanges;
	entry_leg(entry, &up->leg);
	entry_host(entry, &up->to->host, up->to->port);
}

static void dump_query(void *ctx, const struct dns_sandbox *dns, const struct dns_waiting *query)
{
	const struct sandbox *sandbox = container_of(dns, struct sandbox, dns);
	struct dump *dump = ctx;
	struct debug_entry *entry;

	if (!is_wanted(dump, sandbox->session))
		return;
	entry = entry_add(dump, DEBUG_QUERY, sandbox->session, sandbox->cgroup_id);
	if (!entry)
		return;
	entry->state = query->records ? DEBUG_QUERY_RECORDS : DEBUG_QUERY_NAME;
	entry->type = query->records;
	entry->idle_ms = since_ms(dump, query->since_ns);
	snprintf(entry->host, sizeof(entry->host), "%s", query->name);
}

static void dump_sandboxes(struct dump *dump, enum debug_kind kind)
{
	const struct sandbox *sandbox;
	const struct client *client;
	const struct exchange *ex;

	for (sandbox = sandbox_next(dump->worker, NULL); sandbox; sandbox = sandbox_next(dump->worker, sandbox)) {
		if (!is_wanted(dump, sandbox->session))
			continue;
		if (kind == DEBUG_SANDBOX) {
			dump_sandbox(dump, sandbox);
			continue;
		}
		LIST_FOREACH(client, &sandbox->clients, of_sandbox) {
			if (kind == DEBUG_CLIENT)
				dump_client(dump, client);
			else
				LIST_FOREACH(ex, &client->exchanges, at_client.of_client)
					dump_exchange(dump, ex);
		}
	}
}

static void dump_sessions(struct dump *dump)
{
	const struct session *session;
	const struct upstream *up;

	LIST_FOREACH(session, &dump->worker->sessions, of_worker) {
		if (!is_wanted(dump, session))
			continue;
		dump->page->sums.sessions++;
		LIST_FOREACH(up, &session->pool.upstreams, of_session)
			dump_origin(dump, up);
	}
}

size_t debug_page_make(struct worker *worker, const struct debug_ask *ask, const struct debug_page **ret)
{
	static union {
		struct debug_page page;
		char bytes[LINK_BYTES_MAX];
	} out;
	struct dump dump = { worker, ask, &out.page, 0 };

	out.page = (struct debug_page){ .number = ask->number, .after = ask->after };
	out.page.sums.n_clients = worker->n_clients;
	out.page.sums.held = worker->memory.held;
	if (worker->policy)
		memcpy(out.page.policy, worker->policy->hash, sizeof(out.page.policy));
	dump_sandboxes(&dump, DEBUG_SANDBOX);
	dump_sandboxes(&dump, DEBUG_CLIENT);
	dump_sandboxes(&dump, DEBUG_EXCHANGE);
	dump_sessions(&dump);
	dns_server_each(worker->dns, dump_query, &dump);
	*ret = &out.page;
	return sizeof(out.page) + out.page.n * sizeof(out.page.entries[0]);
}

void debug_answer(struct worker *worker, const struct debug_ask *ask)
{
	const struct debug_page *page;
	size_t len = debug_page_make(worker, ask, &page);

	link_send(worker->link, LINK_DEBUG, page, len, -1); /* lost: the daemon reports that there was no answer */
}
