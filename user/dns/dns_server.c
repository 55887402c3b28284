/* SPDX-License-Identifier: MIT */
#include "dns/dns_server.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "resolver/records.h"
#include "synth.h"
#include "vocab/limits.h"

#define QUERIES_TURN   32		     /* queries over TCP, then it is someone else's turn */
#define REPORT_WAIT_MS (NP_NAME_REST_MS / 6) /* after so long the owner hears that a name is still in use */

/* A query that waits. */
struct waiting {
	TAILQ_ENTRY(waiting) of_server, of_session;
	struct dns_sandbox *sandbox;
	void *connection; /* over TCP; else */
	struct dns_client origin;
	uint64_t since_ns;
	uint16_t type; /* of the records that it waits for; 0: it waits for an address */
	bool refused;  /* an address of the refused ones: it has an answer in any case */
	char name[NAME_SIZE];
	size_t len;
	char data[];
};

struct dns_server {
	struct dns_server_config config;
	struct dns_socket *socket;
	struct records *records; /* that rules let sandboxes look up */
	const struct policy *policy;
	uint64_t now_ns;	      /* of the last tick: deadlines need no better */
	struct waiting_queue queries; /* the oldest first */
};

static uint64_t now_ms(const struct dns_server *server)
{
	return server->now_ns / 1000000;
}

/* -- names -------------------------------------------------------------------------- */

/* It is in use: the daemon, which gives out indexes, is told so from time to time, so that no other name gets its
 * addresses. */
static void name_use(struct dns_server *server, struct dns_session *session, uint32_t index)
{
	if (now_ms(server) - names_used_ms(session->names, index) < REPORT_WAIT_MS)
		return;
	names_touch(session->names, index, now_ms(server));
	server->config.want(server->config.ctx, session, names_find(session->names, index),
			    index > NP_NAMES_PER_SESSION);
}

const char *dns_server_reverse(struct dns_server *server, struct dns_session *session, const struct np_addr *addr)
{
	uint32_t index = np_synth_number(addr);

	if (names_find(session->names, index))
		name_use(server, session, index);
	return names_find(session->names, index);
}

/* -- answers ------------------------------------------------------------------------ */

static void query_reply(struct dns_server *server, struct dns_sandbox *sandbox, void *connection,
			const struct dns_client *origin, const struct dns_judged *judged)
{
	static uint8_t out[DNS_FRAME_SIZE + DNS_TCP_MAX];
	size_t len = dns_answer_write(&judged->query, &judged->answer, out + DNS_FRAME_SIZE,
				      dns_answer_limit(&judged->query, connection != NULL));

	server->config.report(server->config.ctx, sandbox, judged);
	if (!connection) {
		dns_socket_reply(server->socket, origin, out + DNS_FRAME_SIZE, len);
		return;
	}
	dns_frame_write(out, len);
	server->config.send(server->config.ctx, connection, out, DNS_FRAME_SIZE + len);
}

/* As dns_judge(). */
static int query_judge(const struct dns_server *server, const struct dns_sandbox *sandbox, const char *data, size_t len,
		       struct dns_judged *ret)
{
	const struct dns_facts facts = { server->policy, *sandbox->rung, sandbox->session->name,
					 sandbox->session->names };

	return dns_judge(&facts, data, len, ret);
}

/* As query_judge(), but records that are known are in the answer. */
static int query_resolve(struct dns_server *server, const struct dns_sandbox *sandbox, const char *data, size_t len,
			 struct dns_judged *ret)
{
	int r = query_judge(server, sandbox, data, len, ret);
	struct records_known known;

	if (r == -EINPROGRESS && records_get(server->records, ret->query.name, ret->query.type, &known)) {
		dns_judged_records(ret, known.error, known.words, &known.records, known.ttl_s);
		return 0;
	}
	if (r == 0 && ret->answer.n_addrs && np_addr_is_synthetic(&ret->addrs[0]))
		name_use(server, sandbox->session, np_synth_number(&ret->addrs[0]));
	return r;
}

static void waiting_free(struct dns_server *server, struct waiting *waiting)
{
	TAILQ_REMOVE(&server->queries, waiting, of_server);
	TAILQ_REMOVE(&waiting->sandbox->session->queries, waiting, of_session);
	waiting->sandbox->n_queries--;
	free(waiting);
}

/* False: there is no room. */
static bool query_wait(struct dns_server *server, struct dns_sandbox *sandbox, void *connection,
		       const struct dns_client *origin, const struct dns_judged *judged, const char *data, size_t len)
{
	struct waiting *waiting = sandbox->n_queries < NP_QUERIES_PER_SANDBOX ? malloc(sizeof(*waiting) + len) : NULL;

	if (!waiting)
		return false;
	*waiting = (struct waiting){
		.sandbox = sandbox, .connection = connection, .since_ns = server->now_ns, .len = len
	};
	if (origin)
		waiting->origin = *origin;
	memcpy(waiting->name, judged->query.name, sizeof(waiting->name));
	memcpy(waiting->data, data, len);
	TAILQ_INSERT_TAIL(&server->queries, waiting, of_server);
	TAILQ_INSERT_TAIL(&sandbox->session->queries, waiting, of_session);
	sandbox->n_queries++;
	waiting->refused = judged->refused;
	if (judged->rule && !judged->refused)
		waiting->type = judged->query.type;
	else
		server->config.want(server->config.ctx, sandbox->session, waiting->name, judged->refused);
	return true;
}

/* There is no room for it, or no index is free. What is refused anyway is just that, for its own reason. */
static void judged_full(struct dns_judged *judged, enum np_reason reason)
{
	if (judged->refused)
		dns_judged_unnamed(judged);
	else
		dns_judged_full(judged, reason);
}

static void query_take(struct dns_server *server, struct dns_sandbox *sandbox, void *connection,
		       const struct dns_client *origin, const char *data, size_t len)
{
	struct dns_judged judged;
	int r = query_resolve(server, sandbox, data, len, &judged);

	if (r != -EBADMSG)
		server->config.count(server->config.ctx, sandbox);
	if ((r == -EAGAIN || r == -EINPROGRESS) &&
	    !query_wait(server, sandbox, connection, origin, &judged, data, len)) {
		judged_full(&judged, NP_R_TOO_MANY_QUERIES);
		r = 0;
	}
	if (r == 0)
		query_reply(server, sandbox, connection, origin, &judged);
}

/* It has waited long enough: with what is known now, or because nothing more will be. */
static void waiting_answer(struct dns_server *server, struct waiting *waiting)
{
	struct dns_judged judged;
	int r = query_resolve(server, waiting->sandbox, waiting->data, waiting->len, &judged);

	if (r == -EAGAIN)
		judged_full(&judged, NP_R_TOO_MANY_NAMES);
	else if (r == -EINPROGRESS)
		dns_judged_records(&judged, -ETIMEDOUT, "the resolvers did not answer in time", NULL, 0);
	else if (r == 0 && judged.answer.records && waiting->connection &&
		 !server->config.takes(server->config.ctx, waiting->connection))
		dns_judged_full(&judged, NP_R_TOO_MANY_QUERIES); /* it asked for more at once than it may have unread */
	if (r != -EBADMSG)
		query_reply(server, waiting->sandbox, waiting->connection, &waiting->origin, &judged);
	waiting_free(server, waiting);
}

/* -- queries ------------------------------------------------------------------------ */

static void on_datagram(void *ctx, const struct dns_client *origin, const char *data, size_t len)
{
	struct dns_server *server = ctx;
	struct dns_sandbox *sandbox = server->config.sandbox(server->config.ctx, origin);

	if (sandbox)
		query_take(server, sandbox, NULL, origin, data, len);
}

ssize_t dns_server_feed(struct dns_server *server, struct dns_sandbox *sandbox, void *connection, const char *data,
			size_t len)
{
	unsigned turn = 0;
	size_t used = 0, n;
	const uint8_t *message;
	int r = 0;

	while (r == 0 && turn++ < QUERIES_TURN && server->config.takes(server->config.ctx, connection)) {
		r = dns_frame_read((const uint8_t *)data + used, len - used, &message, &n);
		if (r == 0) {
			query_take(server, sandbox, connection, NULL, (const char *)message, n);
			used += DNS_FRAME_SIZE + n;
		}
	}
	return r == 0 || r == -EAGAIN ? (ssize_t)used : -EPROTO;
}

void dns_server_named(struct dns_server *server, struct dns_session *session, uint32_t index, const char *name)
{
	struct waiting *waiting, *next;

	if (index && names_restore(session->names, index, name, now_ms(server)) < 0)
		return;
	for (waiting = TAILQ_FIRST(&session->queries); waiting; waiting = next) {
		next = TAILQ_NEXT(waiting, of_session);
		if (!waiting->type && strcmp(waiting->name, name) == 0)
			waiting_answer(server, waiting);
	}
}

static void on_records(void *ctx, const char *name, uint16_t type)
{
	struct dns_server *server = ctx;
	struct waiting *waiting, *next;

	for (waiting = TAILQ_FIRST(&server->queries); waiting; waiting = next) {
		next = TAILQ_NEXT(waiting, of_server);
		if (waiting->type == type && strcmp(waiting->name, name) == 0)
			waiting_answer(server, waiting);
	}
	server->config.answered(server->config.ctx);
}

void dns_server_tick(struct dns_server *server, uint64_t now_ns)
{
	struct waiting *waiting;

	server->now_ns = now_ns;
	if (server->records)
		records_tick(server->records);
	while ((waiting = TAILQ_FIRST(&server->queries)) && now_ns - waiting->since_ns > NP_QUERY_MS * 1000000ull) {
		if (waiting->type || waiting->refused)
			waiting_answer(server, waiting);
		else
			waiting_free(server, waiting);
	}
}

void dns_server_forget(struct dns_server *server, const struct dns_sandbox *sandbox, const void *connection)
{
	struct waiting *waiting, *next;

	for (waiting = TAILQ_FIRST(&server->queries); waiting; waiting = next) {
		next = TAILQ_NEXT(waiting, of_server);
		if (waiting->sandbox == sandbox || (connection && waiting->connection == connection))
			waiting_free(server, waiting);
	}
}

void dns_server_rejudge(struct dns_server *server, const struct dns_sandbox *sandbox)
{
	struct waiting *waiting, *next;
	struct dns_judged judged;

	for (waiting = TAILQ_FIRST(&server->queries); waiting; waiting = next) {
		next = TAILQ_NEXT(waiting, of_server);
		if (waiting->sandbox == sandbox && waiting->type &&
		    query_judge(server, sandbox, waiting->data, waiting->len, &judged) != -EINPROGRESS)
			waiting_answer(server, waiting);
	}
}

void dns_server_each(const struct dns_server *server,
		     void (*fn)(void *ctx, const struct dns_sandbox *sandbox, const struct dns_waiting *query),
		     void *ctx)
{
	const struct waiting *waiting;

	TAILQ_FOREACH(waiting, &server->queries, of_server)
		fn(ctx, waiting->sandbox, &(struct dns_waiting){ waiting->name, waiting->type, waiting->since_ns });
}

static bool records_are_wanted(void *ctx, const char *name, uint16_t type)
{
	const struct dns_server *server = ctx;
	const struct waiting *waiting;

	TAILQ_FOREACH(waiting, &server->queries, of_server)
		if (waiting->type == type && strcmp(waiting->name, name) == 0)
			return true;
	return false;
}

void dns_server_cancel_unwanted(struct dns_server *server)
{
	if (server->records)
		records_cancel(server->records, records_are_wanted);
}

/* -- life --------------------------------------------------------------------------- */

int dns_session_init(struct dns_session *session, const struct hash_key *key)
{
	TAILQ_INIT(&session->queries);
	return names_new(key, &session->names);
}

void dns_session_free(struct dns_session *session)
{
	names_free(session->names);
}

int dns_server_new(const struct dns_server_config *config, struct dns_server **ret)
{
	struct dns_server *server = calloc(1, sizeof(*server));
	const struct dns_socket_config socket = {
		.loop = config->loop,
		.sockets = { config->sockets[0], config->sockets[1] },
		.dns_origins = config->dns_origins,
		.query = on_datagram,
		.ctx = server,
	};
	int r = server ? dns_socket_new(&socket, &server->socket) : -ENOMEM;

	if (r < 0) {
		free(server);
		return r;
	}
	server->config = *config;
	server->now_ns = config->now_ns;
	TAILQ_INIT(&server->queries);
	*ret = server;
	return 0;
}

void dns_server_free(struct dns_server *server)
{
	if (!server)
		return;
	records_free(server->records);
	dns_socket_free(server->socket);
	free(server);
}

int dns_server_resolvers(struct dns_server *server, const char *resolvers)
{
	return records_new(server->config.loop, resolvers, on_records, server, &server->records);
}

void dns_server_policy(struct dns_server *server, const struct policy *policy)
{
	server->policy = policy;
}

int dns_server_open(struct dns_server *server)
{
	return server->policy && server->records ? dns_socket_open(server->socket) : -EPROTO;
}

int dns_server_listen(struct dns_server *server, uint64_t netns, bool v6, int fd)
{
	return dns_socket_listen(server->socket, netns, v6, fd);
}

void dns_server_unlisten(struct dns_server *server, uint64_t netns)
{
	dns_socket_unlisten(server->socket, netns);
}
