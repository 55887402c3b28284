/* SPDX-License-Identifier: MIT */
#include "http/connect.h"

#include <errno.h>
#include <nettle/base64.h>
#include <stdlib.h>
#include <string.h>

#include "http/h1.h"
#include "vocab/limits.h"

struct connect {
	struct h1 *h1;
	unsigned status;
	size_t taken; /* bytes of the answer */
	bool too_long;
};

/* Informational ones are passed over. Behind a failure comes a page for people, which nobody here reads. */
static int on_head(void *ctx, struct head *head)
{
	struct connect *connect = ctx;

	if (head->status < 200)
		return 0;
	connect->status = head->status;
	return connect_is_open(connect) ? 0 : -ECANCELED;
}

static int on_body(void *ctx, const char *data, size_t len)
{
	(void)ctx, (void)data, (void)len;
	return -ECANCELED;
}

static int on_end(void *ctx, const struct fields *trailers)
{
	(void)ctx, (void)trailers;
	return 0;
}

static const struct h1_events connect_events = { .head = on_head, .body = on_body, .end = on_end };

int connect_new(struct connect **ret)
{
	struct connect *connect = calloc(1, sizeof(*connect));
	int r = connect ? h1_new(H1_CLIENT, &connect_events, connect, &connect->h1) : -ENOMEM;

	if (r < 0) {
		free(connect);
		return r;
	}
	*ret = connect;
	return 0;
}

void connect_free(struct connect *connect)
{
	if (!connect)
		return;
	h1_free(connect->h1);
	free(connect);
}

/* The last line of a head, and the empty one behind it. Not by way of struct head, whose memory nobody wipes. */
static size_t authorization_put(const char *credentials, char *out)
{
	static const char field[] = "proxy-authorization: Basic ";
	size_t len = strlen(credentials), n = strlen(field);

	memcpy(out, field, n);
	base64_encode_raw(out + n, len, (const uint8_t *)credentials);
	n += BASE64_ENCODE_RAW_LENGTH(len);
	memcpy(out + n, "\r\n\r\n", 4);
	return n + 4;
}

ssize_t connect_write(struct connect *connect, const char *authority, const char *credentials,
		      char out[static CONNECT_REQUEST_SIZE])
{
	_buf_ struct buf text = BUF_INIT(CONNECT_REQUEST_SIZE - BASE64_ENCODE_RAW_LENGTH(NP_PROXY_LOGIN_SIZE) - 64);
	struct head head;
	size_t n;
	int r;

	if (credentials && strlen(credentials) >= NP_PROXY_LOGIN_SIZE)
		return -E2BIG;
	head_init(&head);
	head.method = "CONNECT";
	head.authority = authority;
	head.target = "";
	r = h1_write_head(connect->h1, &head, false, &text);
	if (r < 0)
		return r;
	h1_expect_tunnel(connect->h1);
	memcpy(out, text.data, text.len);
	n = text.len;
	if (credentials)
		n += authorization_put(credentials, out + n - 2) - 2;
	return (ssize_t)n;
}

ssize_t connect_read(struct connect *connect, const char *data, size_t len)
{
	ssize_t n = h1_read(connect->h1, data, len);

	if (n == -ECANCELED)
		return (ssize_t)len;
	if (n < 0)
		return n;
	connect->taken += (size_t)n;
	connect->too_long = connect->taken > NP_PROXY_ANSWER_BYTES;
	return connect->too_long ? -E2BIG : n;
}

unsigned connect_status(const struct connect *connect)
{
	return connect->too_long ? 0 : connect->status;
}

bool connect_is_open(const struct connect *connect)
{
	return connect->status >= 200 && connect->status < 300 && !connect->too_long;
}

const char *connect_problem(const struct connect *connect)
{
	return connect->too_long ? "the head is too large" : h1_problem(connect->h1);
}
