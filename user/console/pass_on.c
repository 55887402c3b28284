/* SPDX-License-Identifier: MIT */
/* Calls of the control API that are passed on. The daemon sees this process, and judges it by who has started it. */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "api_client/api_http.h"
#include "base/cleanup.h"
#include "console/console.h"
#include "reason.h"
#include "vocab/limits.h"

struct stream {
	struct console *console;
	int fd;	     /* of the daemon */
	int browser; /* MHD's, to see whether it is gone */
	struct buf rest;
};

static void stream_free(void *data)
{
	struct stream *stream = data;

	close(stream->fd);
	buf_free(&stream->rest);
	atomic_fetch_sub(&stream->console->streams, 1);
	free(stream);
}

/* Blocks: each connection has a thread. The daemon speaks every NP_HEARTBEAT_S at least. */
static ssize_t stream_read(void *data, uint64_t at, char *out, size_t max)
{
	struct stream *stream = data;
	struct pollfd ends[] = { { .fd = stream->fd, .events = POLLIN },
				 { .fd = stream->browser, .events = POLLRDHUP } };
	ssize_t n;

	(void)at;
	if (stream->rest.len) {
		size_t part = stream->rest.len < max ? stream->rest.len : max;

		memcpy(out, stream->rest.data, part);
		buf_drop(&stream->rest, part);
		return (ssize_t)part;
	}
	do
		n = poll(ends, ARRAY_SIZE(ends), NP_REQUEST_S * 1000);
	while (n < 0 && errno == EINTR);
	if (n <= 0 || ends[1].revents)
		return MHD_CONTENT_READER_END_WITH_ERROR;
	n = recv(stream->fd, out, max, 0);
	return n > 0 ? n : n == 0 ? MHD_CONTENT_READER_END_OF_STREAM : MHD_CONTENT_READER_END_WITH_ERROR;
}

static enum MHD_Result daemon_unreachable(struct visit *visit, int error)
{
	return visit_fail(visit, error == -ETIMEDOUT ? 504 : 503, NP_R_NO_DAEMON, strerror(-error));
}

static enum MHD_Result answer_pass_on(struct visit *visit, struct client_answer *answer, const char *type)
{
	size_t len = answer->body.len;

	return visit_text(visit, (unsigned)answer->status, answer->status == 200 ? type : "application/json",
			  buf_take(&answer->body), len);
}

static enum MHD_Result stream_start(struct visit *visit, const char *path)
{
	cleanup(client_answer_free) struct client_answer answer = { 0 };
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(visit->connection, MHD_CONNECTION_INFO_CONNECTION_FD);
	struct stream *stream = calloc(1, sizeof(*stream));
	struct MHD_Response *response;
	int r;

	if (!stream || !info) {
		free(stream);
		return MHD_NO;
	}
	*stream = (struct stream){
		.console = visit->console, .fd = -1, .browser = info->connect_fd, .rest = BUF_INIT(CLIENT_LINE_MAX)
	};
	if (atomic_fetch_add(&visit->console->streams, 1) >= NP_CONSOLE_STREAMS) {
		stream_free(stream);
		return visit_fail(visit, 429, NP_R_TOO_MANY, "too many pages follow at once");
	}
	r = client_stream_open(visit->console->socket, path, &stream->rest, &stream->fd, &answer);
	if (r < 0 || stream->fd < 0) {
		stream_free(stream);
		return r < 0 ? daemon_unreachable(visit, r) : answer_pass_on(visit, &answer, "application/json");
	}
	response = MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, 64u << 10, stream_read, stream, stream_free);
	if (!response)
		stream_free(stream);
	return visit_send(visit, 200, "application/x-ndjson", response);
}

enum MHD_Result visit_pass_on(struct visit *visit)
{
	cleanup(client_answer_free) struct client_answer answer = { 0 };
	_buf_ struct buf path = BUF_INIT(NP_CONSOLE_URI + 2);
	enum call_kind kind;
	int r = call_find(&visit->console->rights, visit->method, visit->path, visit->query, &kind);

	if (r == -EACCES)
		return visit_fail(visit, 403, NP_R_NOT_PERMITTED,
				  visit->console->rights.read_only ? "this console only shows"
								   : "this console is for answers alone");
	if (r < 0)
		return visit_fail(visit, r == -ENOENT ? 404 : 400, r == -ENOENT ? NP_R_NO_SUCH_PATH : NP_R_BAD_REQUEST,
				  "the console does not pass that on");
	if (visit->body.len > NP_CONSOLE_BODY || (visit->body.len && strlen(visit->body.data) != visit->body.len))
		return visit_fail(visit, 413, NP_R_TOO_LARGE, "the body is too large, or has a NUL");
	buf_puts(&path, visit->path);
	if (visit->query)
		buf_printf(&path, "?%s", visit->query);
	if (buf_error(&path))
		return MHD_NO;
	if (kind == CALL_READS && call_streams(visit->query))
		return stream_start(visit, path.data);
	r = client_call(visit->console->socket, visit->method, path.data, visit->body.len ? visit->body.data : NULL,
			&answer);
	if (r < 0)
		return daemon_unreachable(visit, r);
	return answer_pass_on(visit, &answer,
			      !strcmp(visit->path, "/v1/events") ? "application/x-ndjson" : "application/json");
}
