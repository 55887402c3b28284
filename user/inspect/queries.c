/* SPDX-License-Identifier: MIT */
/* DNS queries of sandboxes: judged by dns/judge.h, answered here. The daemon gives names their addresses, and the resolvers
 * records where a rule says so. */
#include <arpa/nameser.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dns/judge.h"
#include "inspect/client.h"
#include "inspect/daemon_link.h"
#include "inspect/judge.h"
#include "inspect/queries.h"
#include "net/channel.h"
#include "net/dial.h"
#include "resolver/records.h"
#include "synth.h"
#include "vocab/limits.h"

#define QUERIES_TURN   32		     /* queries over TCP, then it is someone else's turn */
#define REPORT_WAIT_MS (NP_NAME_REST_MS / 6) /* after so long the daemon hears that a name is still in use */

/* A query that waits. */
struct waiting {
	TAILQ_ENTRY(waiting) of_worker, of_session;
	struct sandbox *sandbox;
	struct client *client; /* over TCP; else */
	struct dns_client origin;
	uint64_t since_ns;
	uint16_t type; /* of the records that it waits for; 0: it waits for an address */
	char name[NAME_SIZE];
	size_t len;
	char data[];
};

static uint64_t now_ms(const struct worker *worker)
{
	return worker->now_ns / 1000000;
}

/* -- names -------------------------------------------------------------------------- */

static void name_want(struct worker *worker, const struct session *session, const char *name)
{
	struct link_name want = { 0 };

	memcpy(want.session, session->name, sizeof(want.session));
	memcpy(want.name, name, strlen(name) + 1);
	link_send(worker->link, LINK_NAME, &want, sizeof(want), -1); /* lost: the client asks again */
}

/* It is in use: now and then the daemon is told, so that nobody else gets its addresses. */
static void name_use(struct worker *worker, const struct session *session, uint32_t index)
{
	if (now_ms(worker) - names_used_ms(session->names, index) < REPORT_WAIT_MS)
		return;
	names_touch(session->names, index, now_ms(worker));
	name_want(worker, session, names_find(session->names, index));
}

const char *query_reverse(struct worker *worker, struct session *session, const struct np_addr *addr)
{
	uint32_t index = np_synth_number(addr);

	if (names_find(session->names, index))
		name_use(worker, session, index);
	return names_find(session->names, index);
}

/* -- answers ------------------------------------------------------------------------ */

static void query_report(struct worker *worker, const struct sandbox *sandbox, const struct dns_judged *judged)
{
	struct link_request report = { .reason = judged->reason, .port = NS_DEFAULTPORT };
	char name[DNS_TEXT_SIZE], type[DNS_TYPE_SIZE];

	if (NP_REASON_ALLOWS(judged->reason) && !judged->rule)
		return; /* nothing has left; what is done with the address is told */
	dns_query_text(&judged->query, name);
	report_decide(&report, worker, sandbox);
	if (judged->rule)
		place_format(worker->policy, &judged->rule->at, report.place);
	dns_type_text(judged->query.type, type);
	snprintf(report.text, sizeof(report.text), "%s", type);
	report_send(worker, &report, &(struct report_texts){ .query = *name ? name : "?" });
}

static void query_reply(struct worker *worker, struct sandbox *sandbox, struct client *client,
			const struct dns_client *origin, const struct dns_judged *judged)
{
	static uint8_t out[DNS_FRAME_SIZE + DNS_TCP_MAX];
	size_t len = dns_answer_write(&judged->query, &judged->answer, out + DNS_FRAME_SIZE,
				      dns_answer_limit(&judged->query, client != NULL));

	query_report(worker, sandbox, judged);
	if (!client) {
		dns_socket_reply(worker->dns, origin, out + DNS_FRAME_SIZE, len);
		return;
	}
	dns_frame_write(out, len);
	client_send(client, out, DNS_FRAME_SIZE + len);
	client_wait(client, NP_IDLE_MS);
}

/* As judge_query(), but records that are known are in the answer. */
static int query_judge(struct worker *worker, const struct sandbox *sandbox, const char *data, size_t len,
		       struct dns_judged *ret)
{
	const struct names *names = sandbox->session->names;
	int r = judge_query(worker, sandbox, data, len, ret);
	struct records_known known;

	if (r == -EINPROGRESS && records_get(worker->records, ret->query.name, ret->query.type, &known)) {
		dns_judged_records(ret, known.error, known.words, &known.records, known.ttl_s);
		return 0;
	}
	if (r == 0 && ret->answer.n_addrs && names_index(names, ret->query.name))
		name_use(worker, sandbox->session, names_index(names, ret->query.name));
	return r;
}

static void waiting_free(struct worker *worker, struct waiting *waiting)
{
	TAILQ_REMOVE(&worker->queries, waiting, of_worker);
	TAILQ_REMOVE(&waiting->sandbox->session->queries, waiting, of_session);
	waiting->sandbox->n_queries--;
	free(waiting);
}

/* False: there is no room. */
static bool query_wait(struct worker *worker, struct sandbox *sandbox, struct client *client,
		       const struct dns_client *origin, const struct dns_judged *judged, const char *data, size_t len)
{
	struct waiting *waiting = sandbox->n_queries < NP_QUERIES_PER_SANDBOX ? malloc(sizeof(*waiting) + len) : NULL;

	if (!waiting)
		return false;
	*waiting = (struct waiting){ .sandbox = sandbox, .client = client, .since_ns = worker->now_ns, .len = len };
	if (origin)
		waiting->origin = *origin;
	memcpy(waiting->name, judged->query.name, sizeof(waiting->name));
	memcpy(waiting->data, data, len);
	TAILQ_INSERT_TAIL(&worker->queries, waiting, of_worker);
	TAILQ_INSERT_TAIL(&sandbox->session->queries, waiting, of_session);
	sandbox->n_queries++;
	if (judged->rule)
		waiting->type = judged->query.type;
	else
		name_want(worker, sandbox->session, waiting->name);
	return true;
}

static void query_take(struct worker *worker, struct sandbox *sandbox, struct client *client,
		       const struct dns_client *origin, const char *data, size_t len)
{
	struct dns_judged judged;
	int r = query_judge(worker, sandbox, data, len, &judged);

	if (r != -EBADMSG)
		ledger_add(&sandbox->counts->queries, 1);
	if ((r == -EAGAIN || r == -EINPROGRESS) && !query_wait(worker, sandbox, client, origin, &judged, data, len)) {
		dns_judged_full(&judged, NP_R_TOO_MANY_QUERIES);
		r = 0;
	}
	if (r == 0)
		query_reply(worker, sandbox, client, origin, &judged);
}

/* It has waited long enough: with what is known now, or because nothing more will be. */
static void waiting_answer(struct worker *worker, struct waiting *waiting)
{
	struct dns_judged judged;
	int r = query_judge(worker, waiting->sandbox, waiting->data, waiting->len, &judged);

	if (r == -EAGAIN)
		dns_judged_full(&judged, NP_R_TOO_MANY_NAMES);
	else if (r == -EINPROGRESS)
		dns_judged_records(&judged, -ETIMEDOUT, "the resolvers did not answer in time", NULL, 0);
	else if (r == 0 && judged.answer.records && waiting->client && client_is_deaf(waiting->client))
		dns_judged_full(&judged, NP_R_TOO_MANY_QUERIES); /* it asked for more at once than it may have unread */
	if (r != -EBADMSG)
		query_reply(worker, waiting->sandbox, waiting->client, &waiting->origin, &judged);
	waiting_free(worker, waiting);
}

/* -- queries ------------------------------------------------------------------------ */

void query_start(void *ctx, const struct dns_client *origin, const char *data, size_t len)
{
	struct worker *worker = ctx;
	struct sandbox *sandbox = sandbox_find(worker, origin->cgroup_id);

	if (!sandbox ||
	    (int32_t)(origin->generation - sandbox->rung.generation) > 0) { /* the daemon's word is still on its way */
		worker_drain(worker);
		sandbox = sandbox_find(worker, origin->cgroup_id);
	}
	if (sandbox && sandbox->rung.mode == NP_PROXIED)
		query_take(worker, sandbox, NULL, origin, data, len);
}

size_t query_feed(struct client *client, const char *data, size_t len)
{
	unsigned turn = 0;
	size_t used = 0, n;
	const uint8_t *message;
	int r = 0;

	/* As many as a turn has, and none from whom does not read. */
	while (r == 0 && !leg_is_dead(&client->leg) && turn++ < QUERIES_TURN && !client_is_deaf(client)) {
		r = dns_frame_read((const uint8_t *)data + used, len - used, &message, &n);
		if (r == 0) {
			query_take(client->worker, client->sandbox, client, NULL, (const char *)message, n);
			used += DNS_FRAME_SIZE + n;
		}
	}
	if (client_is_deaf(client))
		client_hold(client);
	else if ((r == -EAGAIN || r == 0) && used < len)
		channel_resume(client->leg.channel); /* the rest, with what comes behind it */
	else if (r < 0 && r != -EAGAIN)
		client_reset(client);
	return used;
}

void query_named(struct worker *worker, const struct link_name *message)
{
	struct session *session = session_find(worker, message->session);
	struct waiting *waiting, *next;

	if (!session || message->name[sizeof(message->name) - 1])
		return;
	if (message->index && names_restore(session->names, message->index, message->name, now_ms(worker)) < 0)
		return;
	for (waiting = TAILQ_FIRST(&session->queries); waiting; waiting = next) {
		next = TAILQ_NEXT(waiting, of_session);
		if (!waiting->type && strcmp(waiting->name, message->name) == 0)
			waiting_answer(worker, waiting);
	}
}

void query_records(void *ctx, const char *name, uint16_t type)
{
	struct worker *worker = ctx;
	struct waiting *waiting, *next;

	for (waiting = TAILQ_FIRST(&worker->queries); waiting; waiting = next) {
		next = TAILQ_NEXT(waiting, of_worker);
		if (waiting->type == type && strcmp(waiting->name, name) == 0)
			waiting_answer(worker, waiting);
	}
	worker_flush(worker);
}

void queries_tick(struct worker *worker)
{
	struct waiting *waiting;

	while ((waiting = TAILQ_FIRST(&worker->queries)) &&
	       worker->now_ns - waiting->since_ns > NP_QUERY_MS * 1000000ull) {
		if (waiting->type)
			waiting_answer(worker, waiting);
		else
			waiting_free(worker, waiting);
	}
}

void queries_forget(struct worker *worker, const struct sandbox *sandbox, const struct client *client)
{
	struct waiting *waiting, *next;

	for (waiting = TAILQ_FIRST(&worker->queries); waiting; waiting = next) {
		next = TAILQ_NEXT(waiting, of_worker);
		if (waiting->sandbox == sandbox || (client && waiting->client == client))
			waiting_free(worker, waiting);
	}
}

void queries_rejudge(struct worker *worker, const struct sandbox *sandbox)
{
	struct waiting *waiting, *next;
	struct dns_judged judged;

	for (waiting = TAILQ_FIRST(&worker->queries); waiting; waiting = next) {
		next = TAILQ_NEXT(waiting, of_worker);
		if (waiting->sandbox == sandbox && waiting->type &&
		    judge_query(worker, sandbox, waiting->data, waiting->len, &judged) != -EINPROGRESS)
			waiting_answer(worker, waiting);
	}
}

static bool records_are_wanted(void *ctx, const char *name, uint16_t type)
{
	const struct worker *worker = ctx;
	const struct waiting *waiting;

	TAILQ_FOREACH(waiting, &worker->queries, of_worker)
		if (waiting->type == type && strcmp(waiting->name, name) == 0)
			return true;
	return false;
}

void queries_cancel_unwanted(struct worker *worker)
{
	if (worker->dialer)
		dialer_cancel(worker->dialer);
	if (worker->records)
		records_cancel(worker->records, records_are_wanted);
}
