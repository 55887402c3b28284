/* SPDX-License-Identifier: MIT */
#include "cli/ask_stream.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>

#include "api_client/api_http.h"
#include "base/cleanup.h"

static void line_write(FILE *to, char kind, const char *text)
{
	if (kind)
		fputc(kind, to);
	fputs(text, to);
	fputc('\n', to);
	if (fflush(to) < 0)
		_exit(0);
}

static int on_line(void *data, char *line)
{
	line_write(data, 0, line);
	return 0;
}

static void follow_child(const char *socket, const char *path, int fd, pid_t parent)
{
	const struct timespec pause = { .tv_nsec = 500000000 };
	FILE *to = fdopen(fd, "w");
	sigset_t none;

	signal(SIGINT, SIG_DFL);
	signal(SIGTERM, SIG_DFL);
	signal(SIGHUP, SIG_DFL);
	signal(SIGWINCH, SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	if (!to || prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != parent)
		_exit(1);
	for (;;) {
		cleanup(client_answer_free) struct client_answer answer = { 0 };
		int r;

		line_write(to, '+', "");
		r = client_stream(socket, path, on_line, to, &answer);
		if (r == 0 && answer.status != 200) {
			for (char *at = answer.body.data; at && *at; at++)
				*at = *at == '\n' ? ' ' : *at;
			line_write(to, '!', answer.body.data ? answer.body.data : "");
			_exit(0);
		}
		line_write(to, '-', strerror(r < 0 ? -r : ECONNRESET));
		nanosleep(&pause, NULL);
	}
}

int ask_stream_start(const char *socket, const char *path, struct ask_stream *ret)
{
	const pid_t parent = getpid();
	int ends[2];
	pid_t pid;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return -errno;
	pid = fork();
	if (pid == 0) {
		close(ends[0]);
		follow_child(socket, path, ends[1], parent);
	}
	close(ends[1]);
	if (pid < 0 || fcntl(ends[0], F_SETFL, O_NONBLOCK) < 0) {
		close(ends[0]);
		return -EAGAIN;
	}
	*ret = (struct ask_stream){ .pid = pid, .fd = ends[0] };
	return 0;
}

void ask_stream_end(struct ask_stream *stream)
{
	if (stream->pid <= 0)
		return;
	kill(stream->pid, SIGKILL);
	while (waitpid(stream->pid, NULL, 0) < 0 && errno == EINTR)
		;
	close(stream->fd);
	*stream = (struct ask_stream){ .fd = -1 };
}
