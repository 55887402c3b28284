/* SPDX-License-Identifier: MIT */
#include "exporter/otlp_post.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "exporter/otlp.h"
#include "exporter/post_answer.h"
#include "vocab/limits.h"

static uint64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* Until it is ready; -ETIMEDOUT when the time for the whole is over. */
static int fd_wait(int fd, short events, uint64_t until_ms)
{
	struct pollfd p = { .fd = fd, .events = events };
	const uint64_t now = now_ms();
	int n = now < until_ms ? poll(&p, 1, (int)(until_ms - now)) : 0;

	return n > 0 ? 0 : n == 0 ? -ETIMEDOUT : -errno;
}

static int post_connect(const struct otlp_target *target, uint64_t until_ms, int *ret)
{
	_close_ int fd = socket(target->to.sa.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	socklen_t len = sizeof(int);
	int error = 0, r;

	if (fd < 0)
		return -errno;
	if (connect(fd, &target->to.sa, sockaddr_len(&target->to)) < 0) {
		if (errno != EINPROGRESS)
			return -errno;
		r = fd_wait(fd, POLLOUT, until_ms);
		if (r < 0)
			return r;
		if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len) < 0 || error)
			return error ? -error : -errno;
	}
	*ret = take_fd(fd);
	return 0;
}

/* A receiver that has heard enough may have answered. */
static int post_send(int fd, const char *data, size_t len, uint64_t until_ms)
{
	while (len) {
		const ssize_t n = send(fd, data, len, MSG_NOSIGNAL);
		int r = 0;

		if (n < 0 && (errno == EPIPE || errno == ECONNRESET))
			return 0;
		if (n < 0 && errno != EAGAIN && errno != EINTR)
			return -errno;
		if (n < 0)
			r = fd_wait(fd, POLLOUT, until_ms);
		if (r < 0)
			return r;
		data += n > 0 ? n : 0;
		len -= n > 0 ? (size_t)n : 0;
	}
	return 0;
}

static int post_receive(int fd, uint64_t until_ms, struct post_answer *ret)
{
	_buf_ struct buf in = BUF_INIT(NP_EXPORT_ANSWER);
	char chunk[4096];
	int r = 0;

	for (;;) {
		const ssize_t n = recv(fd, chunk, sizeof(chunk), 0);

		if (n == 0)
			return -ECONNRESET;
		if (n < 0 && errno != EAGAIN && errno != EINTR)
			return -errno;
		if (n < 0) {
			r = fd_wait(fd, POLLIN, until_ms);
			if (r < 0)
				return r;
			continue;
		}
		buf_append(&in, chunk, (size_t)n);
		if (buf_error(&in))
			return -EPROTO;
		r = post_answer_read(in.data, in.len, ret);
		if (r)
			return r < 0 ? r : 0;
		if (now_ms() >= until_ms) /* a byte every few seconds is no answer either */
			return -ETIMEDOUT;
	}
}

static int post_body(const struct otlp_target *target, const struct buf *body, struct post_answer *ret)
{
	const uint64_t until_ms = now_ms() + target->ms;
	_buf_ struct buf head = BUF_INIT(8192);
	_close_ int fd = -1;
	int r = post_connect(target, until_ms, &fd);

	buf_printf(&head,
		   "POST %s HTTP/1.1\r\nHost: %s\r\nUser-Agent: netpawl/" NETPAWL_VERSION
		   "\r\nContent-Type: application/json\r\nContent-Length: %zu\r\nConnection: close\r\n\r\n",
		   target->path, target->host_port, body->len);
	if (r == 0)
		r = buf_error(&head);
	if (r == 0)
		r = post_send(fd, head.data, head.len, until_ms);
	if (r == 0)
		r = post_send(fd, body->data, body->len, until_ms);
	return r == 0 ? post_receive(fd, until_ms, ret) : r;
}

/*
 * OTLP has 400 for data that cannot be read, and says not to send it again; 413 and 422 are about the data, too. All other answers
 * are about the receiver, or the way to it (a wrong path, a proxy, a login), and may be others tomorrow: nothing is thrown away for them.
 */
static enum delivery answer_judge(const struct post_answer *answer)
{
	if (answer->status / 100 == 2)
		return DELIVERED;
	return answer->status == 400 || answer->status == 413 || answer->status == 422 ? DELIVERY_REFUSED
										       : DELIVERY_LATER;
}

static enum delivery otlp_deliver(void *data, json_t *const *events, size_t n, unsigned *ret_wait_ms,
				  char why[static 128])
{
	const struct otlp_target *target = data;
	_buf_ struct buf body = BUF_INIT(NP_EXPORT_BYTES);
	struct post_answer answer = { 0 };
	int r;

	otlp_put(events, n, target->host, &body);
	r = buf_error(&body);
	if (r == -E2BIG) {
		snprintf(why, 128, "it is too long");
		return DELIVERY_REFUSED;
	}
	if (r == 0)
		r = post_body(target, &body, &answer);
	if (r < 0) {
		snprintf(why, 128, "no answer: %s", strerror(-r));
		return DELIVERY_LATER;
	}
	snprintf(why, 128, "the answer is %u", answer.status);
	*ret_wait_ms = answer.retry_after_ms;
	return answer_judge(&answer);
}

struct receiver otlp_receiver(struct otlp_target *target)
{
	return (struct receiver){ .deliver = otlp_deliver, .data = target, .name = "OTLP" };
}
