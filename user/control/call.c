/* SPDX-License-Identifier: MIT */
#include "control/call.h"

#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "control/access.h"
#include "control/reply.h"
#include "control/routes.h"
#include "control/url_text.h"
#include "vocab/limits.h"
#include "loop/loop.h"

struct exchange {
	struct buf body;
	size_t body_max;
	uint64_t body_seen; /* bytes, kept or thrown away */
	char *path;
	char *query[REQUEST_QUERY_MAX];
	struct route_match match;
	uint64_t began_ns; /* when the request was complete */
	unsigned mark;
	struct session_name place;
};

int exchange_new(struct exchange **ret)
{
	struct exchange *ex = calloc(1, sizeof(*ex));

	if (!ex)
		return -ENOMEM;
	ex->body_max = NP_BODY_MAX;
	ex->body = BUF_INIT(ex->body_max);
	*ret = ex;
	return 0;
}

void exchange_free(struct exchange *ex)
{
	if (!ex)
		return;
	buf_free(&ex->body);
	free(ex->path);
	for (size_t i = 0; i < ARRAY_SIZE(ex->query); i++)
		free(ex->query[i]);
	free(ex);
}

static int body_too_large(const struct exchange *ex, struct failure *ret_failure)
{
	return failure_put(ret_failure, -E2BIG, NP_R_TOO_LARGE, "the body has more than %zu bytes", ex->body_max);
}

static int exchange_route(struct exchange *ex, const char *method, const char *url, struct failure *ret_failure)
{
	int r;

	free(ex->path); /* of the time before, when the handler waits */
	ex->path = strdup(url);
	if (!ex->path)
		return failure_put(ret_failure, -ENOMEM, NP_R_FAILED, "out of memory");
	if (url_decode(ex->path) < 0)
		return failure_put(ret_failure, -EINVAL, NP_R_BAD_REQUEST, "the path is not encoded well");
	r = route_find(method, ex->path, &ex->match);
	if (r == -ENOENT)
		return failure_put(ret_failure, r, NP_R_NO_SUCH_PATH, "%.200s", ex->path);
	if (r < 0)
		return failure_put(ret_failure, r, NP_R_BAD_METHOD, "%.32s; it takes %s", method, ex->match.allow);
	if (ex->body_seen > 0 && !route_takes_body(ex->match.route))
		return failure_put(ret_failure, -EINVAL, NP_R_BAD_REQUEST, "%.32s takes no body", method);
	return 0;
}

/* A large body is read where the call takes one, and for those who may make it. */
static bool body_is_welcome(struct exchange *ex, struct MHD_Connection *connection, const char *method, const char *url,
			    const struct server_config *config, uint64_t len)
{
	const union MHD_ConnectionInfo *info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
	struct peer peer = { 0 };
	struct failure failure;

	if (!info || exchange_route(ex, method, url, &failure) < 0 || len > route_body_max(ex->match.route) ||
	    peer_read(info->connect_fd, &peer) < 0 || !peer_is_outside(&peer, config))
		return false;
	access_find(config->access, config, &peer);
	if (!(peer.roles & (ROLE_OPERATOR | ex->match.route->roles)))
		return false;
	ex->body_max = route_body_max(ex->match.route);
	ex->body = BUF_INIT(ex->body_max);
	return true;
}

enum MHD_Result exchange_begin(struct exchange *ex, struct MHD_Connection *connection, const char *method,
			       const char *url, const struct server_config *config)
{
	const char *length = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_CONTENT_LENGTH);
	struct answer answer = { 0 };
	struct failure failure;
	uint64_t n;

	if (!length || url_number(length, NP_BODY_MAX, &n) == 0)
		return MHD_YES;
	if (url_number(length, NP_POLICY_BODY, &n) == 0 && body_is_welcome(ex, connection, method, url, config, n))
		return MHD_YES;
	/* An answer now, instead of at the end, makes MHD close the connection without reading the body. What is
	 * no number did not get past MHD, so the number is too large. */
	body_too_large(ex, &failure);
	answer_failure(&answer, &failure);
	return answer_send(&answer, connection);
}

enum MHD_Result exchange_take(struct exchange *ex, const char *data, size_t len)
{
	/* A body of unannounced length: MHD takes no answer before its end, so the rest is thrown away until
	 * then, as long as that is not silly. */
	ex->body_seen += len;
	buf_append(&ex->body, data, len);
	if (buf_error(&ex->body))
		buf_free(&ex->body);
	return ex->body_seen > ex->body_max + NP_BODY_DISCARD ? MHD_NO : MHD_YES;
}

struct query_reader {
	struct exchange *ex;
	struct failure *failure;
	int result;
};

static int query_take(struct query_reader *reader, const char *key, const char *value)
{
	const struct route *route = reader->ex->match.route;

	for (size_t i = 0; i < REQUEST_QUERY_MAX && route->query[i]; i++) {
		char **slot = &reader->ex->query[i];

		if (strcmp(route->query[i], key) != 0)
			continue;
		if (*slot)
			return failure_put(reader->failure, -EINVAL, NP_R_BAD_REQUEST,
					   "the parameter \"%s\" is there twice", key);
		*slot = strdup(value ? value : "");
		if (!*slot)
			return failure_put(reader->failure, -ENOMEM, NP_R_FAILED, "out of memory");
		if (url_decode(*slot) < 0)
			return failure_put(reader->failure, -EINVAL, NP_R_BAD_REQUEST,
					   "the parameter \"%s\" is not encoded well", key);
		return 0;
	}
	return failure_put(reader->failure, -EINVAL, NP_R_BAD_REQUEST, "unknown parameter \"%.64s\"", key);
}

static enum MHD_Result query_iterate(void *data, enum MHD_ValueKind kind, const char *key, size_t key_len,
				     const char *value, size_t value_len)
{
	struct query_reader *reader = data;

	(void)kind;
	if (strlen(key) != key_len || strlen(value ? value : "") != value_len)
		reader->result = failure_put(reader->failure, -EINVAL, NP_R_BAD_REQUEST, "NUL in a parameter");
	else
		reader->result = query_take(reader, key, value);
	return reader->result < 0 ? MHD_NO : MHD_YES;
}

static int exchange_query(struct exchange *ex, struct MHD_Connection *connection, struct failure *ret_failure)
{
	struct query_reader reader = { .ex = ex, .failure = ret_failure };

	MHD_get_connection_values_n(connection, MHD_GET_ARGUMENT_KIND, query_iterate, &reader);
	return reader.result;
}

/* The order matters: a peer inside a sandbox learns nothing, not even which paths there are. It is checked for
 * each request, and when the request is complete: a process may be moved at any time. */
static int exchange_run(struct exchange *ex, struct request *rq, const char *method, const char *url,
			struct answer *ret, struct failure *ret_failure)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(rq->connection, MHD_CONNECTION_INFO_CONNECTION_FD);
	int r;

	for (size_t i = 0; i < REQUEST_QUERY_MAX; i++)
		free(take_ptr(ex->query[i]));
	if (!info || peer_read(info->connect_fd, &rq->peer) < 0 || !peer_is_outside(&rq->peer, rq->config))
		return failure_put(ret_failure, -EACCES, NP_R_FROM_SANDBOX, "%s", rq->peer.who);
	access_find(rq->config->access, rq->config, &rq->peer);
	if (!rq->peer.roles)
		return failure_put(ret_failure, -EACCES, NP_R_NO_ROLE, "%s", rq->peer.who);
	if (ex->body_seen > ex->body_max)
		return body_too_large(ex, ret_failure);
	r = exchange_route(ex, method, url, ret_failure);
	if (r < 0)
		return r;
	r = exchange_query(ex, rq->connection, ret_failure);
	if (r < 0)
		return r;
	memcpy(rq->args, ex->match.args, sizeof(rq->args));
	for (size_t i = 0; i < REQUEST_QUERY_MAX; i++)
		rq->query[i] = ex->query[i];
	rq->body = ex->body.data;
	rq->body_len = ex->body.len;
	rq->mark = ex->mark;
	rq->place = ex->place;
	r = access_check(rq, ex->match.route, ret_failure);
	if (r < 0)
		return r;
	rq->may_wait = loop_now_ns() - ex->began_ns < NP_WAIT_S * UINT64_C(1000000000);
	service_sessions_reserve(rq->config->service, rq->peer.roles & ROLE_OPERATOR ? 0 : NP_SESSIONS_RESERVE);
	r = ex->match.route->fn(rq, ret, ret_failure);
	service_sessions_reserve(rq->config->service, 0);
	ex->mark = rq->mark;
	ex->place = rq->place;
	return r;
}

enum MHD_Result exchange_finish(struct exchange *ex, struct MHD_Connection *connection, const char *method,
				const char *url, const struct server_config *config, struct follow_set *follows,
				struct output_set *outputs, enum exchange_outcome *ret_outcome)
{
	struct request rq = {
		.config = config,
		.follows = follows,
		.outputs = outputs,
		.connection = connection,
		.head = strcmp(method, "HEAD") == 0,
	};
	struct answer answer = { 0 };
	struct failure failure = { .reason = NP_R_FAILED };

	if (!ex->began_ns)
		ex->began_ns = loop_now_ns();
	*ret_outcome = EXCHANGE_ANSWERED;
	if (exchange_run(ex, &rq, method, url, &answer, &failure) < 0) {
		answer_failure(&answer, &failure);
		if (ex->match.allow[0])
			answer.allow = ex->match.allow;
	}
	if (answer.wait || answer.goes_on) {
		*ret_outcome = answer.wait ? EXCHANGE_WAITS : EXCHANGE_GOES_ON;
		MHD_suspend_connection(connection);
		return MHD_YES;
	}
	if (answer.stream)
		*ret_outcome = EXCHANGE_STREAMS;
	return answer_send(&answer, connection);
}
