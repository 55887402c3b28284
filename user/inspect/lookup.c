/* SPDX-License-Identifier: MIT */
/* DNS queries of sandboxes: judged by dns/gate.h, answered here. The daemon gives names their addresses, and the resolvers
 * records where a rule says so. */
#include <arpa/nameser.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dns/gate.h"
#include "inspect/worker.h"
#include "synth.h"

#define LOOKUPS_TURN 32			   /* queries over TCP, then it is someone else's turn */
#define TOLD_MS	     (NP_NAME_REST_MS / 6) /* after so long the daemon hears that a name is still in use */

/* A query that waits. */
struct waiting {
	TAILQ_ENTRY(waiting) of_worker, of_site;
	struct box *box;
	struct client *client; /* over TCP; else */
	struct dns_asker asker;
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

static void name_want(struct worker *worker, const struct site *site, const char *name)
{
	struct link_name want = { 0 };

	memcpy(want.session, site->session, sizeof(want.session));
	memcpy(want.name, name, strlen(name) + 1);
	link_send(worker->link, LINK_NAME, &want, sizeof(want), -1); /* lost: the client asks again */
}

/* It is in use: now and then the daemon is told, so that nobody else gets its addresses. */
static void name_use(struct worker *worker, const struct site *site, uint32_t index)
{
	if (now_ms(worker) - names_used_ms(site->names, index) < TOLD_MS)
		return;
	names_touch(site->names, index, now_ms(worker));
	name_want(worker, site, names_find(site->names, index));
}

const char *lookup_back(struct worker *worker, struct site *site, const struct np_addr *addr)
{
	uint32_t index = np_synth_number(addr);

	if (names_find(site->names, index))
		name_use(worker, site, index);
	return names_find(site->names, index);
}

static bool is_deaf(const struct client *client)
{
	return channel_backlog(client->channel) + client->out.len > NP_BACKLOG_HIGH;
}

/* -- answers ------------------------------------------------------------------------ */

static void lookup_tell(struct worker *worker, const struct box *box, const struct dns_judged *judged)
{
	struct link_request report = { .reason = judged->reason, .port = NS_DEFAULTPORT };
	char name[DNS_TEXT_SIZE], type[DNS_TYPE_SIZE];

	if (NP_REASON_ALLOWS(judged->reason) && !judged->rule)
		return; /* nothing has left; what is done with the address is told */
	dns_query_text(&judged->query, name);
	report_decide(&report, worker, box);
	if (judged->rule)
		place_format(worker->policy, &judged->rule->at, report.place);
	dns_type_text(judged->query.type, type);
	snprintf(report.text, sizeof(report.text), "%s", type);
	report_tell(worker, &report, &(struct report_texts){ .lookup = *name ? name : "?" });
}

static void lookup_reply(struct worker *worker, struct box *box, struct client *client, const struct dns_asker *asker,
			 const struct dns_judged *judged)
{
	static uint8_t out[DNS_FRAME_SIZE + DNS_TCP_MAX];
	size_t len = dns_answer_write(&judged->query, &judged->answer, out + DNS_FRAME_SIZE,
				      dns_answer_limit(&judged->query, client != NULL));

	lookup_tell(worker, box, judged);
	if (!client) {
		dns_port_reply(worker->dns, asker, out + DNS_FRAME_SIZE, len);
		return;
	}
	dns_frame_write(out, len);
	client_dirty(client);
	buf_append(&client->out, out, DNS_FRAME_SIZE + len);
	client_wait(client, NP_IDLE_MS);
}

/* As dns_judge(), but records that are known are in the answer. */
static int lookup_judge(struct worker *worker, const struct box *box, const char *data, size_t len,
			struct dns_judged *ret)
{
	struct dns_facts facts = { .policy = worker->policy, .rung = box->rung, .names = box->site->names };
	int r = dns_judge(&facts, data, len, ret);
	struct records_known known;

	if (r == -EINPROGRESS && records_ask(worker->records, ret->query.name, ret->query.type, &known)) {
		dns_judged_records(ret, known.error, known.words, &known.records, known.ttl_s);
		return 0;
	}
	if (r == 0 && ret->answer.n_addrs && names_index(facts.names, ret->query.name))
		name_use(worker, box->site, names_index(facts.names, ret->query.name));
	return r;
}

static void waiting_free(struct worker *worker, struct waiting *waiting)
{
	TAILQ_REMOVE(&worker->lookups, waiting, of_worker);
	TAILQ_REMOVE(&waiting->box->site->lookups, waiting, of_site);
	waiting->box->n_lookups--;
	free(waiting);
}

/* False: there is no room. */
static bool lookup_wait(struct worker *worker, struct box *box, struct client *client, const struct dns_asker *asker,
			const struct dns_judged *judged, const char *data, size_t len)
{
	struct waiting *waiting = box->n_lookups < NP_LOOKUPS_PER_BOX ? malloc(sizeof(*waiting) + len) : NULL;

	if (!waiting)
		return false;
	*waiting = (struct waiting){ .box = box, .client = client, .since_ns = worker->now_ns, .len = len };
	if (asker)
		waiting->asker = *asker;
	memcpy(waiting->name, judged->query.name, sizeof(waiting->name));
	memcpy(waiting->data, data, len);
	TAILQ_INSERT_TAIL(&worker->lookups, waiting, of_worker);
	TAILQ_INSERT_TAIL(&box->site->lookups, waiting, of_site);
	box->n_lookups++;
	if (judged->rule)
		waiting->type = judged->query.type;
	else
		name_want(worker, box->site, waiting->name);
	return true;
}

static void lookup_take(struct worker *worker, struct box *box, struct client *client, const struct dns_asker *asker,
			const char *data, size_t len)
{
	struct dns_judged judged;
	int r = lookup_judge(worker, box, data, len, &judged);

	if (r != -EBADMSG)
		ledger_add(&box->counts->queries, 1);
	if ((r == -EAGAIN || r == -EINPROGRESS) && !lookup_wait(worker, box, client, asker, &judged, data, len)) {
		dns_judged_full(&judged, NP_R_TOO_MANY_QUERIES);
		r = 0;
	}
	if (r == 0)
		lookup_reply(worker, box, client, asker, &judged);
}

/* It has waited long enough: with what is known now, or because nothing more will be. */
static void waiting_answer(struct worker *worker, struct waiting *waiting)
{
	struct dns_judged judged;
	int r = lookup_judge(worker, waiting->box, waiting->data, waiting->len, &judged);

	if (r == -EAGAIN)
		dns_judged_full(&judged, NP_R_TOO_MANY_NAMES);
	else if (r == -EINPROGRESS)
		dns_judged_records(&judged, -ETIMEDOUT, "the resolvers did not answer in time", NULL, 0);
	else if (r == 0 && judged.answer.records && waiting->client && is_deaf(waiting->client))
		dns_judged_full(&judged, NP_R_TOO_MANY_QUERIES); /* it asked for more at once than it may have unread */
	if (r != -EBADMSG)
		lookup_reply(worker, waiting->box, waiting->client, &waiting->asker, &judged);
	waiting_free(worker, waiting);
}

/* -- queries ------------------------------------------------------------------------ */

void lookup_ask(void *ctx, const struct dns_asker *asker, const char *data, size_t len)
{
	struct worker *worker = ctx;
	struct box *box = box_find(worker, asker->cgroup_id);

	if (!box ||
	    (int32_t)(asker->generation - box->rung.generation) > 0) { /* the daemon's word is still on its way */
		worker_drain(worker);
		box = box_find(worker, asker->cgroup_id);
	}
	if (box && box->rung.mode == NP_PROXIED)
		lookup_take(worker, box, NULL, asker, data, len);
}

size_t lookup_feed(struct client *client, const char *data, size_t len)
{
	unsigned turn = 0;
	size_t used = 0, n;
	const uint8_t *message;
	int r = 0;

	/* As many as a turn has, and none from whom does not read. */
	while (r == 0 && !client->dead && turn++ < LOOKUPS_TURN && !is_deaf(client)) {
		r = dns_frame_read((const uint8_t *)data + used, len - used, &message, &n);
		if (r == 0) {
			lookup_take(client->worker, client->box, client, NULL, (const char *)message, n);
			used += DNS_FRAME_SIZE + n;
		}
	}
	if (is_deaf(client))
		client->paused = true; /* client_flush() goes on */
	else if ((r == -EAGAIN || r == 0) && used < len)
		channel_resume(client->channel); /* the rest, with what comes behind it */
	else if (r < 0 && r != -EAGAIN)
		client_reset(client);
	return used;
}

void lookup_name(struct worker *worker, const struct link_name *told)
{
	struct site *site = site_find(worker, told->session);
	struct waiting *waiting, *next;

	if (!site || told->name[sizeof(told->name) - 1])
		return;
	if (told->index && names_restore(site->names, told->index, told->name, now_ms(worker)) < 0)
		return;
	for (waiting = TAILQ_FIRST(&site->lookups); waiting; waiting = next) {
		next = TAILQ_NEXT(waiting, of_site);
		if (!waiting->type && strcmp(waiting->name, told->name) == 0)
			waiting_answer(worker, waiting);
	}
}

void lookup_records(void *ctx, const char *name, uint16_t type)
{
	struct worker *worker = ctx;
	struct waiting *waiting, *next;

	for (waiting = TAILQ_FIRST(&worker->lookups); waiting; waiting = next) {
		next = TAILQ_NEXT(waiting, of_worker);
		if (waiting->type == type && strcmp(waiting->name, name) == 0)
			waiting_answer(worker, waiting);
	}
	worker_flush(worker);
}

void lookup_tick(struct worker *worker)
{
	struct waiting *waiting;

	while ((waiting = TAILQ_FIRST(&worker->lookups)) &&
	       worker->now_ns - waiting->since_ns > NP_LOOKUP_MS * 1000000ull) {
		if (waiting->type)
			waiting_answer(worker, waiting);
		else
			waiting_free(worker, waiting);
	}
}

void lookup_forget(struct worker *worker, const struct box *box, const struct client *client)
{
	struct waiting *waiting, *next;

	for (waiting = TAILQ_FIRST(&worker->lookups); waiting; waiting = next) {
		next = TAILQ_NEXT(waiting, of_worker);
		if (waiting->box == box || (client && waiting->client == client))
			waiting_free(worker, waiting);
	}
}

void lookup_rejudge(struct worker *worker, const struct box *box)
{
	struct dns_facts facts = { .policy = worker->policy, .rung = box->rung, .names = box->site->names };
	struct waiting *waiting, *next;
	struct dns_judged judged;

	for (waiting = TAILQ_FIRST(&worker->lookups); waiting; waiting = next) {
		next = TAILQ_NEXT(waiting, of_worker);
		if (waiting->box == box && waiting->type &&
		    dns_judge(&facts, waiting->data, waiting->len, &judged) != -EINPROGRESS)
			waiting_answer(worker, waiting);
	}
}

static bool records_are_wanted(void *ctx, const char *name, uint16_t type)
{
	const struct worker *worker = ctx;
	const struct waiting *waiting;

	TAILQ_FOREACH(waiting, &worker->lookups, of_worker)
		if (waiting->type == type && strcmp(waiting->name, name) == 0)
			return true;
	return false;
}

void lookup_cancel_unwanted(struct worker *worker)
{
	if (worker->dialer)
		dialer_cancel(worker->dialer);
	if (worker->records)
		records_cancel(worker->records, records_are_wanted);
}
