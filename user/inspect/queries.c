/* SPDX-License-Identifier: MIT */
#include "inspect/queries.h"

#include <arpa/nameser.h>
#include <stdio.h>
#include <string.h>

#include "base/table.h"
#include "inspect/client.h"
#include "inspect/daemon_link.h"
#include "net/channel.h"
#include "vocab/limits.h"

static struct sandbox *sandbox_of(struct dns_sandbox *dns)
{
	return container_of(dns, struct sandbox, dns);
}

static struct dns_sandbox *query_sandbox(void *ctx, const struct dns_client *origin)
{
	struct worker *worker = ctx;
	struct sandbox *sandbox = sandbox_find(worker, origin->cgroup_id);

	if (!sandbox ||
	    (int32_t)(origin->generation - sandbox->rung.generation) > 0) { /* the daemon's word is still on its way */
		worker_drain(worker);
		sandbox = sandbox_find(worker, origin->cgroup_id);
	}
	return sandbox && sandbox->rung.mode == NP_PROXIED ? &sandbox->dns : NULL;
}

static void query_want(void *ctx, struct dns_session *dns, const char *name, bool refused)
{
	const struct worker *worker = ctx;
	const struct session *session = container_of(dns, struct session, dns);
	struct link_name want = { .refused = refused };

	memcpy(want.session, session->name, sizeof(want.session));
	memcpy(want.name, name, strlen(name) + 1);
	link_send(worker->link, LINK_NAME, &want, sizeof(want), -1);
}

static void query_count(void *ctx, struct dns_sandbox *dns)
{
	(void)ctx;
	ledger_add(&sandbox_of(dns)->counts->queries, 1);
}

static void query_report(void *ctx, struct dns_sandbox *dns, const struct dns_judged *judged)
{
	struct link_request report = { .reason = judged->reason, .port = NS_DEFAULTPORT };
	char name[DNS_TEXT_SIZE], type[DNS_TYPE_SIZE];
	struct worker *worker = ctx;

	if (NP_REASON_ALLOWS(judged->reason) && !judged->rule)
		return; /* nothing has left; what is done with the address is reported */
	dns_query_text(&judged->query, name);
	report_decide(&report, worker, sandbox_of(dns));
	report_rule(&report, worker, judged->rule, judged->pattern);
	dns_type_text(judged->query.type, type);
	snprintf(report.text, sizeof(report.text), "%s", type);
	report_send(worker, &report, &(struct report_texts){ .query = *name ? name : "?" });
}

static void query_write(void *ctx, void *connection, const void *data, size_t len)
{
	(void)ctx;
	client_send(connection, data, len);
	client_wait(connection, NP_IDLE_MS);
}

static bool query_takes(void *ctx, void *connection)
{
	const struct client *client = connection;

	(void)ctx;
	return !leg_is_dead(&client->leg) && !client_is_deaf(client);
}

static void query_answered(void *ctx)
{
	worker_flush(ctx);
}

int queries_new(struct worker *worker, const struct worker_fds *fds, struct dns_server **ret)
{
	const struct dns_server_config config = {
		.loop = worker->loop,
		.sockets = { fds->dns[0], fds->dns[1] },
		.dns_origins = fds->dns_origins,
		.now_ns = worker->now_ns,
		.ctx = worker,
		.sandbox = query_sandbox,
		.want = query_want,
		.count = query_count,
		.report = query_report,
		.send = query_write,
		.takes = query_takes,
		.answered = query_answered,
	};

	return dns_server_new(&config, ret);
}

size_t query_feed(struct client *client, const char *data, size_t len)
{
	ssize_t used = dns_server_feed(client->worker->dns, &client->sandbox->dns, client, data, len);

	if (client_is_deaf(client))
		client_hold(client);
	else if (used < 0)
		client_reset(client);
	else if ((size_t)used < len)
		channel_resume(client->leg.channel); /* the rest, with what comes behind it */
	return used < 0 ? 0 : (size_t)used;
}
