/* SPDX-License-Identifier: MIT */
/* The bytes between the caller's descriptors and the command's, while it runs. */
#include <errno.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "launch/stdio.h"

#define DRAIN_TRIES 256 /* of STDIO_BUFFER bytes */
#define DRAIN_MS    10

/* Lets go of one end. Our own 0, 1, 2 become /dev/null instead of free: a number below three that the
 * next open() could get would be somebody's standard output by mistake. */
static void end_close(int *end)
{
	_close_ int null = -1;
	int fd = take_fd(*end);

	if (fd > STDERR_FILENO) {
		close(fd);
	} else if (fd >= 0) {
		null = open("/dev/null", O_RDWR | O_CLOEXEC);
		if (null >= 0)
			dup2(null, fd);
	}
}

/* What would happen to the command if it held the outer descriptor itself: its peer sees the end when the
 * last holder closes, so we close. Standard error stays: we have messages of our own. */
static void relay_end_output(struct stdio *stdio, struct relay *relay)
{
	bool keep = relay->to == STDERR_FILENO || (relay->to == STDOUT_FILENO && stdio->keep_stdout);

	if (keep)
		relay->to = -1;
	else
		end_close(&relay->to);
}

/* Our 1 or 2 leads nowhere from now on. */
static bool relay_discard(struct relay *relay)
{
	_close_ int null = open("/dev/null", O_WRONLY | O_CLOEXEC);

	if (null < 0 || relay->from_outer || dup2(null, relay->to) < 0)
		return false;
	relay->len = 0;
	relay->truncated = true;
	return true;
}

static void relay_stop(struct stdio *stdio, struct relay *relay)
{
	if (stdio->outlive && relay->to >= 0 && relay_discard(relay))
		return;
	relay->eof = true;
	relay->len = 0;
	end_close(&relay->from);
	relay_end_output(stdio, relay);
}

/* The caller's descriptors may be shared: they are asked not to block per call, where that is possible.
 * Others are touched only when poll() said so. */
static ssize_t relay_fill(struct relay *relay)
{
	size_t room = relay->bounded && relay->last < sizeof(relay->data) ? relay->last : sizeof(relay->data);
	ssize_t n = -1;

	errno = ENOTSOCK;
	if (relay->from_outer)
		n = recv(relay->from, relay->data, room, MSG_DONTWAIT);
	if (n < 0 && errno == ENOTSOCK)
		n = read(relay->from, relay->data, room);
	if (relay->bounded && n > 0)
		relay->last -= (size_t)n;
	return n;
}

static ssize_t relay_flush(const struct relay *relay)
{
	size_t len = relay->by_page && relay->len > PIPE_BUF ? PIPE_BUF : relay->len;
	ssize_t n = -1;

	errno = ENOTSOCK;
	if (!relay->from_outer)
		n = send(relay->to, relay->data + relay->start, len, MSG_DONTWAIT | MSG_NOSIGNAL);
	if (n < 0 && errno == ENOTSOCK)
		n = write(relay->to, relay->data + relay->start, len);
	return n;
}

static bool is_interrupted(void)
{
	return errno == EAGAIN || errno == EINTR;
}

/* Takes back what is above the limits. */
static void relay_admit(struct stdio *stdio, struct relay *relay)
{
	struct buf *kept = &stdio->kept[relay - stdio->relays];
	size_t len = relay->len;

	if (relay->from_outer)
		return;
	if (len > stdio->left)
		len = (size_t)stdio->left;
	if (relay->keep && len > kept->max - kept->len)
		len = kept->max - kept->len;
	relay->truncated = relay->truncated || len < relay->len;
	if (stdio->left != STDIO_UNLIMITED)
		stdio->left -= len;
	relay->len = len;
	if (relay->keep) {
		buf_append(kept, relay->data, len);
		relay->len = 0;
	}
}

static void relay_move(struct stdio *stdio, struct relay *relay, short from_events, short to_events)
{
	ssize_t n;

	if (relay->from >= 0 && !relay->len && from_events) {
		n = relay_fill(relay);
		if (n > 0) {
			relay->start = 0;
			relay->len = (size_t)n;
			relay_admit(stdio, relay);
			if (!relay->by_page)
				to_events |= POLLOUT; /* try at once; EAGAIN only costs a call */
		} else if (n == 0 || !is_interrupted()) {
			relay->eof = true;
			end_close(&relay->from);
		}
	}
	if (relay->bounded && !relay->last && relay->from >= 0) {
		relay->eof = true;
		end_close(&relay->from);
	}
	if (relay->to >= 0 && relay->len && to_events & (POLLOUT | POLLERR | POLLHUP | POLLNVAL)) {
		n = relay_flush(relay);
		if (n > 0) {
			relay->start += (size_t)n;
			relay->len -= (size_t)n;
		} else if (n < 0 && !is_interrupted()) {
			relay_stop(stdio, relay); /* the writer gets EPIPE in turn */
		}
	} else if (relay->to >= 0 && to_events & (POLLERR | POLLHUP | POLLNVAL)) {
		relay_stop(stdio, relay);
	}
	if (relay->eof && !relay->len && relay->to >= 0)
		relay_end_output(stdio, relay);
}

void stdio_watch(const struct stdio *stdio, struct pollfd fds[static STDIO_POLLFDS])
{
	for (int i = 0; i < 3; i++) {
		const struct relay *relay = &stdio->relays[i];

		/* No POLLIN while there are bytes to deliver: that is the back-pressure. The target is watched
		 * even when there are none, for poll() tells of its end by itself. */
		fds[2 * i] = (struct pollfd){ .fd = relay->len ? -1 : relay->from, .events = POLLIN };
		fds[2 * i + 1] = (struct pollfd){ .fd = relay->to, .events = relay->len ? POLLOUT : 0 };
	}
}

void stdio_move(struct stdio *stdio, const struct pollfd fds[static STDIO_POLLFDS])
{
	for (int i = 0; i < 3; i++)
		relay_move(stdio, &stdio->relays[i], fds[2 * i].revents, fds[2 * i + 1].revents);
}

void stdio_end_input(struct stdio *stdio)
{
	struct relay *input = &stdio->relays[STDIN_FILENO];

	if (input->to >= 0)
		relay_stop(stdio, input);
}

/* What was written to a terminal is on its way through the kernel for a moment: until nothing comes any more. */
static void terminal_drain(struct stdio *stdio)
{
	struct relay *relay = &stdio->relays[STDOUT_FILENO];

	for (unsigned i = 0; i < DRAIN_TRIES && relay->from >= 0; i++) {
		struct pollfd fd = { .fd = relay->from, .events = POLLIN };

		if (poll(&fd, 1, DRAIN_MS) <= 0)
			break;
		relay_move(stdio, relay, POLLIN, POLLOUT);
	}
}

void stdio_end_output(struct stdio *stdio)
{
	if (stdio->terminal)
		terminal_drain(stdio);
	for (int fd = STDOUT_FILENO; fd <= STDERR_FILENO; fd++) {
		struct relay *relay = &stdio->relays[fd];
		int n = 0;

		if (relay->from < 0)
			continue;
		relay->bounded = true;
		relay->last = ioctl(relay->from, FIONREAD, &n) == 0 && n > 0 ? (size_t)n : 0;
		relay_move(stdio, relay, 0, 0); /* where there is nothing, this is the end */
	}
}

void stdio_settle(struct stdio *stdio)
{
	uint64_t left = stdio->left;

	/* Without a sandbox around it, what the command has started may go on and write. */
	if (left == STDIO_UNLIMITED || (!stdio->confined && !stdio->lasting))
		return;
	for (int fd = STDOUT_FILENO; fd <= STDERR_FILENO; fd++) {
		struct relay *relay = &stdio->relays[fd];
		size_t waits = relay->last;
		int n = 0;

		if (relay->from < 0)
			continue;
		if (!relay->bounded)
			waits = ioctl(relay->from, FIONREAD, &n) == 0 && n > 0 ? (size_t)n : 0;
		relay->truncated = relay->truncated || waits > left;
		relay->last = waits < left ? waits : (size_t)left;
		relay->bounded = true;
		left -= relay->last;
		relay_move(stdio, relay, 0, 0);
	}
}

bool stdio_busy(const struct stdio *stdio)
{
	for (int fd = STDOUT_FILENO; fd <= STDERR_FILENO; fd++)
		if (stdio->relays[fd].to >= 0 || (stdio->relays[fd].keep && stdio->relays[fd].from >= 0))
			return true;
	return false;
}
