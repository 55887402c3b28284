/* SPDX-License-Identifier: MIT */
/* The channel of one decider: its command, or a connection to its socket, and the process that reads what comes from there. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "supervisor/deciders_internal.h"
#include "supervisor/spawn.h"

#define BACKOFF_MS     100 /* before the second channel; doubled up to the next */
#define BACKOFF_MAX_MS 5000
#define HEALTHY_MS     10000 /* a channel that lasted so long has a clean record */

/*
 * Whoever listens there must not be in a sandbox: it would decide about itself, and what it sends would be led to where it is
 * decided about. The daemon dials, since the reader has no files; a unix socket is connected at once or not at all.
 */
static int socket_dial(struct decider_line *line, int *ret)
{
	_close_ int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	struct ucred peer;
	socklen_t len = sizeof(peer);

	if (fd < 0)
		return -errno;
	snprintf(to.sun_path, sizeof(to.sun_path), "%s", line->socket);
	if (connect(fd, (struct sockaddr *)&to, sizeof(to)) < 0 ||
	    getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) < 0)
		return -errno;
	if (kernel_is_sandboxed(line->deciders->config.kernel, peer.pid)) {
		log_warning("the decider %s: %s is served by a process in a sandbox", line->name, line->socket);
		return -EPERM;
	}
	*ret = take_fd(fd);
	return 0;
}

static int command_start(struct decider_line *line, int *ret, int *ret_stderr)
{
	const struct spawn_user user = { .uid = line->deciders->config.command_uid, .network = line->is.network };
	_close_ int near = -1, far = -1, read_end = -1, write_end = -1;
	int pair[2], pipe[2], r;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	near = pair[0];
	far = pair[1];
	if (pipe2(pipe, O_CLOEXEC | O_NONBLOCK) < 0)
		return -errno;
	read_end = pipe[0];
	write_end = pipe[1];
	r = spawn_apart(&user, (const char *const *)line->words, far, write_end, &line->command);
	if (r < 0)
		return r;
	*ret = take_fd(near);
	*ret_stderr = take_fd(read_end);
	return 0;
}

static void on_link(void *data, uint32_t events)
{
	struct decider_line *line = data;
	int r = 0;

	(void)events;
	for (unsigned i = 0; i < 64 && line->reader && r == 0; i++)
		r = line_receive(line);
	if (line->reader && r < 0 && r != -EAGAIN)
		line_end(line, r == -EPIPE ? NULL : strerror(-r));
}

static int reader_start(struct decider_line *line, int channel, int of_stderr)
{
	struct deciders *deciders = line->deciders;
	char uid[16];
	const char *argv[] = { deciders->exe, uid, deciders->root, line->name, NULL };
	int pair[2], r = spawn_pair(pair);

	if (r < 0)
		return r;
	snprintf(uid, sizeof(uid), "%u", deciders->config.uid);
	r = spawn_into(kernel_inspector_cgroup(deciders->config.kernel), argv,
		       (const int[]){ pair[1], channel, of_stderr }, DECIDE_FD_END - LINK_FD, &line->reader);
	close(pair[1]);
	line->link = pair[0];
	if (r == 0) {
		r = loop_watch(deciders->config.loop, line->link, EPOLLIN, on_link, line);
		if (r < 0)
			spawn_end(line->reader);
	}
	if (r < 0) {
		close(line->link);
		line->reader = 0;
	}
	return r;
}

void line_start(struct decider_line *line)
{
	_close_ int channel = -1, of_stderr = -1;
	uint64_t now = loop_now_ns(), wait = line->failures ? BACKOFF_MS : 0;
	int r;

	if (line->ready && now - line->start_ns > HEALTHY_MS * 1000000ull)
		line->failures = 0;
	for (unsigned i = 1; i < line->failures && wait < BACKOFF_MAX_MS; i++)
		wait *= 2;
	if (line->reader || line->command || now - line->start_ns < wait * 1000000)
		return;
	line->start_ns = now;
	if (line->words) {
		r = command_start(line, &channel, &of_stderr);
	} else {
		r = socket_dial(line, &channel);
		of_stderr = r == 0 ? open("/dev/null", O_RDONLY | O_CLOEXEC) : -1;
	}
	if (r == 0)
		r = reader_start(line, channel, of_stderr);
	if (r == 0) {
		line->starts++;
		return;
	}
	if (!line->failures++) /* once: it is tried again and again */
		log_warning("the decider %s: %s: %s", line->name, line->words ? line->words[0] : line->socket,
			    strerror(-r));
	line_drop(line);
}

void line_drop(struct decider_line *line)
{
	if (line->reader) {
		loop_unwatch(line->deciders->config.loop, line->link);
		close(line->link);
		spawn_end(line->reader); /* it has no files and no children: it dies at once */
		line->reader = 0;
	}
	line->ready = false;
	if (line->command)
		kill(line->command, SIGKILL); /* and with it all that it started: it is the first of their namespace */
}

bool line_reap(struct decider_line *line)
{
	if (line->command && !line->reader && waitpid(line->command, NULL, WNOHANG) != 0)
		line->command = 0;
	return !line->command && !line->reader;
}
