/* SPDX-License-Identifier: MIT */
/*
 * Process 1 of a kept sandbox: starts a command for each connection, reports how it ended, and lives on.
 *
 * Only netpawl connects, as root, from outside: the socket's file is not visible in the sandbox, and the gate lets no
 * sandbox connect to a socket that it did not make. The socket and the connections stay in this process: they are
 * closed on exec, and no process of the same user can inspect this one (PR_SET_DUMPABLE), or a child of it before its
 * exec. The order on a connection is read by the child that becomes the command.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "init/init.h"
#include "vocab/limits.h"

extern char **environ;

struct run {
	int connection; /* -1: free */
	pid_t command;	/* 0: the order has not come yet */
};

static struct run runs[NP_KEPT_RUNS];

/* -- the child ------------------------------------------------------------------------- */

/* Takes the words apart: pointers to each, and a NULL after those of the command and of the environment. */
static char **words_read(const struct kept_order *order, int fd)
{
	size_t n = (size_t)order->n_words + order->n_environ + 1; /* the directory */
	bool fits = order->n_words && order->bytes <= NP_PLAN_MEMORY && n <= order->bytes;
	char *text = fits ? malloc(order->bytes + 1u) : NULL, **words = fits ? calloc(n + 2, sizeof(*words)) : NULL;
	char *at = text;

	if (!text || !words || pread(fd, text, order->bytes, 0) != (ssize_t)order->bytes)
		init_fail(LAUNCH_FAILED, 0, "the words of the command could not be read");
	text[order->bytes] = '\0';
	for (size_t i = 0, to = 0; i < n; i++) {
		if (at >= text + order->bytes)
			init_fail(LAUNCH_FAILED, 0, "the words of the command are fewer than was said");
		words[to++] = at;
		if (i == order->n_words)
			to++; /* the NULL that ends the command */
		at += strlen(at) + 1;
	}
	return words;
}

static void streams_take(int fds[static 3])
{
	/* They may be at numbers below three: out of the way first. */
	for (int i = 0; i < 3; i++)
		if (fds[i] < 3 && (fds[i] = fcntl(fds[i], F_DUPFD_CLOEXEC, 3)) < 0)
			init_fail(LAUNCH_FAILED, errno, "cannot take standard input and output");
	for (int i = 0; i < 3; i++)
		if (dup2(fds[i], i) < 0)
			init_fail(LAUNCH_FAILED, errno, "cannot take standard input and output");
}

static void signals_take(const sigset_t *ignored)
{
	for (int signo = 1; signo < NSIG; signo++)
		signal(signo, sigismember(ignored, signo) == 1 ? SIG_IGN : SIG_DFL);
}

static _Noreturn void child_main(const struct kept_order *order, int connection, int fds[static KEPT_FDS])
{
	const struct init_report ready = { .kind = REPORT_READY };
	char **words;

	report_fd = connection;
	/* Before anything of the run's own: all that it starts is born there, and dies with it. */
	if (write(fds[4], "0", 1) != 1)
		init_fail(LAUNCH_FAILED, errno, "cannot enter the run's own cgroup");
	words = words_read(order, fds[3]);
	streams_take(fds);
	/* A group of its own, which can be named in here and is nobody else's. */
	if (setsid() < 0)
		init_fail(LAUNCH_FAILED, errno, "cannot leave the session of process 1");
	/* One that netpawl made for this command; anybody else's is another session's, and stays that. */
	if (isatty(STDIN_FILENO))
		ioctl(STDIN_FILENO, TIOCSCTTY, 0);
	umask(order->umask);
	signals_take(&order->ignored);
	if (!words[0] || chdir(words[0]) < 0)
		init_fail(LAUNCH_FAILED, errno, "%.300s", words[0] ? words[0] : "");
	environ = words + order->n_words + 2;
	report_put(&ready);
	command_execute(words + 1, &order->mask);
}

/* -- process 1 -------------------------------------------------------------------------- */

/* Never waits: a reader that is too slow loses it, and sees the end of the connection. */
static void report_send(int connection, const struct init_report *report)
{
	send(connection, report, sizeof(*report), MSG_DONTWAIT | MSG_NOSIGNAL);
}

static void run_free(struct run *run)
{
	close(run->connection);
	run->connection = -1;
}

static void run_refuse(struct run *run, int error, const char *why)
{
	struct init_report report = { .kind = REPORT_FAILED, .exit_code = LAUNCH_FAILED, .error = error };

	strncpy(report.text, why, sizeof(report.text) - 1);
	report_send(run->connection, &report);
	run_free(run);
}

static void run_accept(void)
{
	struct run none = { accept4(ORDERS_CONTROL, NULL, NULL, SOCK_CLOEXEC), 0 };

	if (none.connection < 0)
		return;
	for (size_t i = 0; i < ARRAY_SIZE(runs); i++)
		if (runs[i].connection < 0) {
			runs[i] = none;
			return;
		}
	run_refuse(&none, 0, "as many commands run in the kept sandbox as may at once: try again when one has ended");
}

/* 1 when it has come, 0 when it has not, -1 when it never will. */
static int order_receive(int connection, struct kept_order *order, int fds[static KEPT_FDS])
{
	union {
		struct cmsghdr head;
		char space[CMSG_SPACE(KEPT_FDS * sizeof(int))];
	} control;
	struct iovec iov = { order, sizeof(*order) };
	struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control)
	};
	ssize_t n = recvmsg(connection, &msg, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
	const struct cmsghdr *cmsg = n < 0 ? NULL : CMSG_FIRSTHDR(&msg);
	size_t got;

	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -1;
	if (!cmsg || cmsg->cmsg_level != SOL_SOCKET || cmsg->cmsg_type != SCM_RIGHTS)
		return -1;
	got = (cmsg->cmsg_len - CMSG_LEN(0)) / sizeof(int);
	memcpy(fds, CMSG_DATA(cmsg), got * sizeof(int));
	return n == (ssize_t)sizeof(*order) && order->size == sizeof(*order) && got == KEPT_FDS &&
			       !(msg.msg_flags & (MSG_TRUNC | MSG_CTRUNC))
		       ? 1
		       : -1;
}

static void run_start(struct run *run)
{
	int fds[KEPT_FDS] = { -1, -1, -1, -1, -1 };
	struct kept_order order = { 0 };
	int r = order_receive(run->connection, &order, fds);

	if (r > 0)
		run->command = fork();
	if (r > 0 && run->command == 0)
		child_main(&order, run->connection, fds);
	if (r < 0)
		run_refuse(run, 0, "the kept sandbox was made by another build of netpawl");
	else if (run->command < 0)
		run_refuse(run, errno, "cannot start a process");
	for (int i = 0; i < KEPT_FDS; i++)
		if (fds[i] >= 0)
			close(fds[i]);
}

static void children_reap(void)
{
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
		for (size_t i = 0; i < ARRAY_SIZE(runs); i++) {
			struct init_report report = { .kind = REPORT_ENDED };

			if (runs[i].connection < 0 || runs[i].command != pid)
				continue;
			status_note(status, &report);
			report_send(runs[i].connection, &report);
			run_free(&runs[i]); /* its number may be another's from now on */
		}
}

/* The command is not reaped yet, so the number is its own. Before its setsid() it has no group. */
static void run_signal(const struct run *run, unsigned char byte)
{
	int signo = byte & ~KEPT_GROUP;

	/* A stop from the terminal: the group has no parent that could go on, so the kernel would ignore it. */
	if (byte == (SIGTSTP | KEPT_GROUP))
		signo = SIGSTOP;
	if (!(byte & KEPT_GROUP) || kill(-run->command, signo) < 0)
		kill(run->command, signo);
}

static void run_listen(struct run *run)
{
	unsigned char byte;
	ssize_t n;

	if (!run->command) {
		run_start(run);
		return;
	}
	n = recv(run->connection, &byte, 1, MSG_DONTWAIT);
	if (n == 1)
		run_signal(run, byte);
	if (n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR)))
		return;
	/* netpawl is gone: nobody waits for the command. What it has left in other sessions lives on. */
	run_signal(run, SIGKILL | KEPT_GROUP);
	run_free(run);
}

_Noreturn void serve(int children)
{
	enum { CHILDREN, SOCKET, RUNS };
	struct pollfd fds[RUNS + NP_KEPT_RUNS];
	struct signalfd_siginfo info;

	close(ORDERS_REPORT); /* who made the sandbox knows that it is there */
	close_range(0, 2, 0);
	/* 0, 1, 2 stay taken: a connection must not become a command's by its number. */
	for (int fd = 0; fd < 3; fd++)
		if (open("/dev/null", O_RDWR | O_CLOEXEC) < 0)
			_exit(LAUNCH_FAILED);
	for (size_t i = 0; i < ARRAY_SIZE(runs); i++)
		runs[i].connection = -1;
	for (;;) {
		fds[CHILDREN] = (struct pollfd){ .fd = children, .events = POLLIN };
		fds[SOCKET] = (struct pollfd){ .fd = ORDERS_CONTROL, .events = POLLIN };
		for (size_t i = 0; i < ARRAY_SIZE(runs); i++)
			fds[RUNS + i] = (struct pollfd){ .fd = runs[i].connection, .events = POLLIN };
		if (poll(fds, ARRAY_SIZE(fds), -1) < 0)
			continue;
		/* What was said before the end is heard before the end. */
		for (size_t i = 0; i < ARRAY_SIZE(runs); i++)
			if (fds[RUNS + i].revents && runs[i].connection >= 0)
				run_listen(&runs[i]);
		if (fds[CHILDREN].revents && read(children, &info, sizeof(info)) > 0)
			children_reap();
		if (fds[SOCKET].revents)
			run_accept();
	}
}
