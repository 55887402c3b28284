/* SPDX-License-Identifier: MIT */
#include "api_client/api_http.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>

#include "base/chars.h"
#include "base/cleanup.h"
#include "vocab/limits.h"

#define HEAD_MAX 16384 /* status line and headers of an answer */

struct head {
	int status;
	bool has_length;
	size_t length;
};

void client_answer_free(struct client_answer *answer)
{
	buf_free(&answer->body);
}

static int client_connect(const char *path, int *ret_fd)
{
	/* A follower hears of the daemon every NP_HEARTBEAT_S, so the bound serves it as well. */
	const struct timeval patience = { .tv_sec = NP_REQUEST_S };
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	_close_ int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -errno;
	if (strlen(path) >= sizeof(addr.sun_path))
		return -ENAMETOOLONG;
	memcpy(addr.sun_path, path, strlen(path));
	if (setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)) < 0 ||
	    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience)) < 0)
		return -errno;
	if (connect(fd, (const struct sockaddr *)&addr, sizeof(addr)) < 0)
		return errno == EAGAIN ? -ETIMEDOUT : -errno;
	*ret_fd = take_fd(fd);
	return 0;
}

static int client_send(int fd, const char *method, const char *path, const char *accept, const char *body)
{
	cleanup(buf_free) struct buf request = BUF_INIT(NP_POLICY_BODY + NP_BODY_MAX);
	size_t sent = 0;

	buf_printf(&request, "%s %s HTTP/1.0\r\nHost: netpawl\r\n", method, path);
	if (accept)
		buf_printf(&request, "Accept: %s\r\n", accept);
	if (body)
		buf_printf(&request, "Content-Type: application/json\r\nContent-Length: %zu\r\n", strlen(body));
	buf_puts(&request, "\r\n");
	if (body)
		buf_puts(&request, body);
	if (buf_error(&request))
		return buf_error(&request);
	while (sent < request.len) {
		ssize_t n = send(fd, request.data + sent, request.len - sent, MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EPIPE)
			return 0; /* it has heard enough: the answer says why */
		if (n < 0)
			return errno == EAGAIN ? -ETIMEDOUT : -errno;
		sent += (size_t)n;
	}
	return 0;
}

/* Appends what comes next. 1 when there was something, 0 at the end, else -errno. */
static int client_receive(int fd, struct buf *to)
{
	char chunk[16384];
	ssize_t n;

	do
		n = recv(fd, chunk, sizeof(chunk), 0);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return errno == EAGAIN ? -ETIMEDOUT : -errno;
	buf_append(to, chunk, (size_t)n);
	return buf_error(to) ? buf_error(to) : n > 0;
}

static int length_parse(const char *text, struct head *head)
{
	uint64_t length;

	text += strspn(text, " \t");
	if (number_parse(text, strlen(text), SIZE_MAX, &length) < 0)
		return -EPROTO;
	head->length = (size_t)length;
	head->has_length = true;
	return 0;
}

/* text is the head without its last empty line; it is taken apart. */
static int head_parse(char *text, struct head *ret)
{
	struct head head = { 0 };
	char *save = NULL, *line = strtok_r(text, "\r\n", &save);

	if (!line || strncmp(line, "HTTP/1.", 7) != 0 || !isdigit((unsigned char)line[7]) || line[8] != ' ')
		return -EPROTO;
	for (int i = 9; i < 12; i++) {
		if (!isdigit((unsigned char)line[i]))
			return -EPROTO;
		head.status = head.status * 10 + (line[i] - '0');
	}
	while ((line = strtok_r(NULL, "\r\n", &save))) {
		if (!strncasecmp(line, "Transfer-Encoding:", 18))
			return -EPROTO;
		if (!strncasecmp(line, "Content-Length:", 15) && length_parse(line + 15, &head) < 0)
			return -EPROTO;
	}
	*ret = head;
	return 0;
}

/* Reads up to the end of the head; what came behind it stays in *in. */
static int head_read(int fd, struct buf *in, struct head *ret)
{
	char *end;
	int err;

	while (!in->data || !(end = memmem(in->data, in->len, "\r\n\r\n", 4))) {
		if (in->len > HEAD_MAX)
			return -EPROTO;
		err = client_receive(fd, in);
		if (err <= 0)
			return err < 0 ? err : -ECONNRESET;
	}
	*end = '\0';
	if (strlen(in->data) != (size_t)(end - in->data))
		return -EPROTO;
	err = head_parse(in->data, ret);
	buf_drop(in, (size_t)(end - in->data) + 4);
	return err;
}

static int body_read(int fd, const struct head *head, struct buf *body)
{
	int err = 1;

	while (err > 0 && !(head->has_length && body->len >= head->length))
		err = client_receive(fd, body);
	if (err < 0)
		return err;
	if (head->has_length && body->len != head->length)
		return -ECONNRESET;
	return 0;
}

static int client_open(const char *socket_path, const char *method, const char *path, const char *body, int *ret_fd)
{
	_close_ int fd = -1;
	int err = client_connect(socket_path, &fd);

	if (err < 0)
		return err;
	err = client_send(fd, method, path, NULL, body);
	if (err < 0)
		return err;
	*ret_fd = take_fd(fd);
	return 0;
}

static int answer_read(int fd, struct client_answer *ret)
{
	cleanup(buf_free) struct buf in = BUF_INIT(NP_ANSWER_BYTES);
	struct head head;
	int err = head_read(fd, &in, &head);

	if (err < 0)
		return err;
	err = body_read(fd, &head, &in);
	if (err < 0)
		return err;
	buf_append(&in, "", 0); /* an empty body is a string as well */
	*ret = (struct client_answer){ .status = head.status, .body = in };
	in = BUF_INIT(0);
	return 0;
}

int client_call(const char *socket_path, const char *method, const char *path, const char *body,
		struct client_answer *ret)
{
	_close_ int fd = -1;
	int err = client_open(socket_path, method, path, body, &fd);

	return err < 0 ? err : answer_read(fd, ret);
}

int client_get_by(int fd, const char *path, const char *accept, struct client_answer *ret)
{
	const struct timeval patience = { .tv_sec = NP_REQUEST_S };
	int err = setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)) < 0 ? -errno : 0;

	if (err == 0)
		err = client_send(fd, "GET", path, accept, NULL);
	return err < 0 ? err : answer_read(fd, ret);
}

/* Hands out the whole lines in *in and keeps the rest. */
static int lines_give(struct buf *in, client_line_fn *fn, void *data)
{
	size_t done = 0;
	char *newline;
	int err = 0;

	while (!err && in->len > done && (newline = memchr(in->data + done, '\n', in->len - done))) {
		*newline = '\0';
		if (in->data[done])
			err = fn(data, in->data + done);
		done = (size_t)(newline - in->data) + 1;
	}
	buf_drop(in, done);
	return err;
}

/* A status other than 200 goes into *ret with its whole answer; *ret_fd stays -1 then. */
static int stream_open(const char *socket_path, const char *path, struct buf *in, struct head *head, int *ret_fd,
		       struct client_answer *ret)
{
	_close_ int fd = -1;
	int err = client_open(socket_path, "GET", path, NULL, &fd);

	if (err < 0)
		return err;
	err = head_read(fd, in, head);
	if (err < 0)
		return err;
	if (head->status == 200) {
		*ret_fd = take_fd(fd);
		return 0;
	}
	err = body_read(fd, head, in);
	if (err < 0)
		return err;
	buf_append(in, "", 0);
	*ret = (struct client_answer){ .status = head->status, .body = *in };
	*in = BUF_INIT(0);
	return 0;
}

int client_stream_open(const char *socket_path, const char *path, struct buf *rest, int *ret_fd,
		       struct client_answer *ret)
{
	struct head head;

	return stream_open(socket_path, path, rest, &head, ret_fd, ret);
}

int client_stream(const char *socket_path, const char *path, client_line_fn *fn, void *data, struct client_answer *ret)
{
	cleanup(buf_free) struct buf in = BUF_INIT(CLIENT_LINE_MAX);
	_close_ int fd = -1;
	struct head head;
	size_t got;
	int err = stream_open(socket_path, path, &in, &head, &fd, ret);

	if (err < 0 || fd < 0)
		return err;
	got = in.len;
	for (;;) {
		size_t before;

		err = lines_give(&in, fn, data);
		if (err)
			return err;
		if (head.has_length && got >= head.length)
			break;
		before = in.len;
		err = client_receive(fd, &in);
		if (err < 0)
			return err;
		if (err == 0)
			break;
		got += in.len - before;
	}
	if (in.len || (head.has_length && got != head.length))
		return -ECONNRESET; /* it broke off within a line */
	*ret = (struct client_answer){ .status = head.status };
	return 0;
}
