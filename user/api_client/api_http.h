/* SPDX-License-Identifier: MIT */
/*
 * HTTP over the control socket. Requests are HTTP/1.0, so that an answer ends
 * where the connection ends and never comes in chunks.
 */
#pragma once

#include "base/buf.h"

struct client_answer {
	int status;	 /* HTTP */
	struct buf body; /* at most NP_ANSWER_BYTES */
};
void client_answer_free(struct client_answer *answer);

/* body may be NULL. 0 when there is an answer, whatever its status; else -errno:
 *   what connect() says (-ENOENT, -ECONNREFUSED, -EACCES); -ETIMEDOUT no answer in NP_REQUEST_S;
 *   -ECONNRESET the answer broke off; -EPROTO it is not HTTP as we speak it; -E2BIG it is too large. */
int client_call(const char *socket_path, const char *method, const char *path, const char *body,
		struct client_answer *ret);

/* GET over a connection that the caller has opened, and that serves this one call. accept: the media type that is asked for, or NULL.
 * Returns as above. */
int client_get_by(int fd, const char *path, const char *accept, struct client_answer *ret);

/* One line of the answer, NUL-terminated, without its newline; empty lines are left out. Nonzero stops. */
typedef int client_line_fn(void *data, char *line);

/* GET, with fn called for each line as it comes when the status is 200; any other answer goes into *ret whole.
 * 0 at the end of the stream, what fn returned, or -errno as above (-E2BIG: a line over CLIENT_LINE_MAX). */
#define CLIENT_LINE_MAX (256u << 10) /* an event has up to NP_EVENT_LINE_MAX bytes, 192 KiB */
int client_stream(const char *socket_path, const char *path, client_line_fn *fn, void *data, struct client_answer *ret);

/* The same for callers that read the stream themselves: *ret_fd is theirs, and rest (made and freed by the caller) has the bytes that
 * came with the head. When the status is not 200, *ret_fd is left alone. */
int client_stream_open(const char *socket_path, const char *path, struct buf *rest, int *ret_fd,
		       struct client_answer *ret);
