/* SPDX-License-Identifier: MIT */
#include "decider/decider_channel.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/json.h"
#include "base/log.h"
#include "decider/frame.h"
#include "link/decide_message.h"

#define LINK_MS 1000 /* a daemon that does not take an answer for so long is gone */

struct channel {
	const char *name;
	bool ready;	   /* the decider has said hello */
	struct buf in;	   /* the line that is not whole yet */
	struct buf out;	   /* what it has not read */
	struct buf stderr; /* likewise a line */
	bool stderr_open;
	unsigned lines; /* of it that were logged in this second */
	time_t second;
	uint64_t since_ms;
	struct unanswered unanswered;
};

static uint64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* -- to the decider ------------------------------------------------------------------- */

static const char *out_flush(struct channel *c)
{
	while (c->out.len) {
		ssize_t n = send(DECIDE_FD_CHANNEL, c->out.data, c->out.len, MSG_DONTWAIT | MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return errno == EAGAIN ? NULL : "it is gone";
		buf_drop(&c->out, (size_t)n);
	}
	return NULL;
}

static const char *out_line(struct channel *c, const char *line, size_t len)
{
	buf_append(&c->out, line, len);
	buf_append(&c->out, "\n", 1);
	return buf_error(&c->out) ? "it does not read what it is asked" : out_flush(c);
}

static const char *hello_send(struct channel *c)
{
	_buf_ struct buf line = BUF_INIT(1024);

	json_open_object(&line, NULL);
	json_put_text(&line, "type", "hello", SIZE_MAX);
	json_put_number(&line, "version", FRAME_VERSION);
	json_put_text(&line, "decider", c->name, SIZE_MAX);
	json_close_object(&line);
	return buf_error(&line) ? "out of memory" : out_line(c, line.data, line.len);
}

/* -- from the daemon ------------------------------------------------------------------- */

static const char *withdraw_send(struct channel *c, uint64_t id)
{
	_buf_ struct buf line = BUF_INIT(1024);

	json_open_object(&line, NULL);
	json_put_text(&line, "type", "withdrawn", SIZE_MAX);
	json_put_number(&line, "id", id);
	json_close_object(&line);
	return buf_error(&line) ? "out of memory" : out_line(c, line.data, line.len);
}

static const char *daemon_read(struct channel *c)
{
	static char data[LINK_BYTES_MAX] __attribute__((aligned(16)));
	struct link_decide ask;
	enum link_type type;
	size_t len;
	int r = link_receive(LINK_FD, &type, data, &len, NULL);

	if (r == -EAGAIN)
		return NULL;
	if (r < 0 || len < sizeof(ask))
		return "netpawld is gone";
	memcpy(&ask, data, sizeof(ask));
	if (type == LINK_WITHDRAW)
		return withdraw_send(c, ask.id);
	if ((type != LINK_DECIDE && type != LINK_DECIDE_BODY) || !c->ready)
		return "netpawld is of another build";
	if (type == LINK_DECIDE && unanswered_add(&c->unanswered, ask.id) < 0)
		return "it leaves too much unanswered";
	return out_line(c, data + sizeof(ask), len - sizeof(ask));
}

/* -- from the decider -------------------------------------------------------------------- */

static const char *line_take(struct channel *c, const char *line, size_t len)
{
	const char *problem = NULL;
	struct frame frame;

	if (frame_read(line, len, &frame, &problem) < 0)
		return problem;
	if ((frame.type == FRAME_HELLO) == c->ready)
		return c->ready ? "it says hello twice" : "its first frame is no hello";
	if (frame.type == FRAME_HELLO) {
		c->ready = true;
		return link_send_patiently(LINK_FD, LINK_READY, NULL, 0, -1, LINK_MS) < 0 ? "netpawld is gone" : NULL;
	}
	if (frame.decision.kind == DECISION_NEED_BODY) {
		if (!unanswered_need_body(&c->unanswered, frame.decision.id))
			return "it needs a body that it was not asked about, or needs it twice";
	} else if (!unanswered_take(&c->unanswered, frame.decision.id)) {
		return "it answers what it was not asked, or twice";
	}
	return link_send_patiently(LINK_FD, LINK_DECIDED, &frame.decision, sizeof(frame.decision), -1, LINK_MS) < 0
		       ? "netpawld is gone"
		       : NULL;
}

static const char *channel_read(struct channel *c)
{
	char data[16384], *end;
	ssize_t n = recv(DECIDE_FD_CHANNEL, data, sizeof(data), MSG_DONTWAIT);
	const char *problem = NULL;

	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? NULL : "it is gone";
	if (n == 0)
		return c->in.len ? "it ended in the middle of a frame" : "it is gone";
	buf_append(&c->in, data, (size_t)n);
	if (buf_error(&c->in))
		return "it sends more than a frame may have";
	while (!problem && (end = memchr(c->in.data, '\n', c->in.len))) {
		size_t len = (size_t)(end - c->in.data);

		problem = len > NP_DECIDER_FRAME ? "a frame is too long" : line_take(c, c->in.data, len);
		buf_drop(&c->in, len + 1);
	}
	return problem ? problem : c->in.len > NP_DECIDER_FRAME ? "a frame is too long" : NULL;
}

/* What it has to say to the operator: lines, a few a second; log_line() sees to their characters. */
static void stderr_read(struct channel *c)
{
	char data[1024], *end;
	ssize_t n = read(DECIDE_FD_STDERR, data, sizeof(data));

	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return;
	if (n <= 0) {
		c->stderr_open = false;
		return;
	}
	buf_append(&c->stderr, data, (size_t)n);
	if (buf_error(&c->stderr)) { /* a line that does not end */
		buf_clear(&c->stderr);
		return;
	}
	while ((end = memchr(c->stderr.data, '\n', c->stderr.len))) {
		time_t now = (time_t)(now_ms() / 1000);

		if (now != c->second)
			c->lines = 0;
		c->second = now;
		if (c->lines++ < NP_DECIDER_LOG_LINES)
			log_info("%s: %.*s", c->name, (int)(end - c->stderr.data), c->stderr.data);
		buf_drop(&c->stderr, (size_t)(end - c->stderr.data) + 1);
	}
}

static const char *channel_turn(struct channel *c)
{
	struct pollfd fds[] = { { .fd = LINK_FD, .events = POLLIN },
				{ .fd = DECIDE_FD_CHANNEL, .events = (short)(c->out.len ? POLLIN | POLLOUT : POLLIN) },
				{ .fd = c->stderr_open ? DECIDE_FD_STDERR : -1, .events = POLLIN } };
	const char *problem = NULL;

	if (poll(fds, 3, c->ready ? -1 : 500) < 0 && errno != EINTR)
		return "poll() fails";
	if (!c->ready && now_ms() - c->since_ms > NP_DECIDER_HELLO_MS)
		return "it does not say hello";
	if (fds[2].revents)
		stderr_read(c);
	if (fds[0].revents)
		problem = daemon_read(c);
	if (!problem && fds[1].revents & POLLOUT)
		problem = out_flush(c);
	if (!problem && fds[1].revents & (POLLIN | POLLHUP | POLLERR))
		problem = channel_read(c);
	return problem;
}

const char *channel_serve(const char *name)
{
	static struct channel c;
	const char *problem;

	c.name = name;
	c.in = BUF_INIT(NP_DECIDER_FRAME + 32768);
	c.out = BUF_INIT(NP_DECIDER_UNREAD);
	c.stderr = BUF_INIT(4096);
	c.stderr_open = true;
	c.since_ms = now_ms();
	problem = hello_send(&c);
	while (!problem)
		problem = channel_turn(&c);
	while (c.stderr_open && poll(&(struct pollfd){ .fd = DECIDE_FD_STDERR, .events = POLLIN }, 1, 0) > 0)
		stderr_read(&c); /* its last words */
	buf_free(&c.in);
	buf_free(&c.out);
	buf_free(&c.stderr);
	return problem;
}
