/* SPDX-License-Identifier: MIT */
#include "exporter/scrape.h"

#include <errno.h>
#include <microhttpd.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/exposition.h"
#include "base/loopback.h"
#include "exporter/daemon_calls.h"
#include "vocab/limits.h"

static enum MHD_Result text_answer(struct MHD_Connection *connection, unsigned status, const char *type,
				   const char *text, size_t len)
{
	struct MHD_Response *response = MHD_create_response_from_buffer(len, (void *)text, MHD_RESPMEM_MUST_COPY);
	enum MHD_Result result = MHD_NO;

	if (!response)
		return MHD_NO;
	if (MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, type) == MHD_YES &&
	    MHD_add_response_header(response, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store") == MHD_YES &&
	    MHD_add_response_header(response, "X-Content-Type-Options", "nosniff") == MHD_YES)
		result = MHD_queue_response(connection, status, response);
	MHD_destroy_response(response);
	return result;
}

static enum MHD_Result words_answer(struct MHD_Connection *connection, unsigned status, const char *words)
{
	return text_answer(connection, status, "text/plain; charset=utf-8", words, strlen(words));
}

static enum MHD_Result metrics_answer(struct MHD_Connection *connection)
{
	const char *accept = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_ACCEPT);
	const bool open = exposition_wants_open(accept);
	cleanup(client_answer_free) struct client_answer answer = { 0 };
	int r = daemon_get("/v1/metrics", open ? OPENMETRICS_TYPE : NULL, &answer);

	if (r < 0 || answer.status != 200)
		return words_answer(connection, MHD_HTTP_SERVICE_UNAVAILABLE, "netpawld does not answer\n");
	return text_answer(connection, MHD_HTTP_OK, open ? OPENMETRICS_TYPE : EXPOSITION_TYPE, answer.body.data,
			   answer.body.len);
}

/* No client has to authenticate: there is nothing of any session in it. But web pages of other origins are refused. */
static enum MHD_Result on_request(void *data, struct MHD_Connection *connection, const char *url, const char *method,
				  const char *version, const char *body, size_t *body_len, void **context)
{
	const char *host = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_HOST);

	(void)data;
	(void)version;
	(void)body;
	if (!*context) { /* with the head: a body would come after this */
		*context = connection;
		return MHD_YES;
	}
	if (*body_len) {
		*body_len = 0;
		return MHD_NO;
	}
	if (!host || !loopback_is_host(host))
		return words_answer(connection, MHD_HTTP_FORBIDDEN, "the Host is no name of loopback\n");
	if (strcmp(url, "/metrics") != 0)
		return words_answer(connection, MHD_HTTP_NOT_FOUND, "there is /metrics, and nothing else\n");
	if (strcmp(method, "GET") != 0 && strcmp(method, "HEAD") != 0)
		return words_answer(connection, MHD_HTTP_METHOD_NOT_ALLOWED, "it takes GET\n");
	return metrics_answer(connection);
}

int scrape_serve(int listener)
{
	/* clang-format off */
	struct MHD_Daemon *server = MHD_start_daemon(
		MHD_USE_EPOLL, 0, NULL, NULL, on_request, NULL,
		MHD_OPTION_LISTEN_SOCKET, listener,
		MHD_OPTION_CONNECTION_LIMIT, (unsigned)NP_METRICS_CONNECTIONS,
		MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)NP_METRICS_TIMEOUT_S,
		MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)(16u << 10),
		MHD_OPTION_END);
	/* clang-format on */
	int r = server ? 0 : -EIO;

	while (r == 0 && daemon_wait(0))
		if (MHD_run_wait(server, 1000) != MHD_YES)
			r = -EIO;
	if (server)
		MHD_stop_daemon(server);
	return r;
}
