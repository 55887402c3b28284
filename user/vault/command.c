/* SPDX-License-Identifier: MIT */
/* A program of the operator's that prints a value. It has a time limit, and what it prints has a bound. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "secrets/locked.h"
#include "supervisor/spawn.h"
#include "vault/vault_internal.h"

#define END_MS 1000 /* that a command has to end, when it has closed its output */

static void on_output(void *data, uint32_t events);

int command_start(struct kept *kept)
{
	struct command *command = &kept->command;
	const struct spawn_user user = { .uid = kept->vault->config.command_uid, .network = true };
	_close_ int near = -1, far = -1, errors = -1;
	int pair[2], r;

	if (command->pid)
		return 0;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	near = pair[0];
	far = pair[1];
	errors = open("/dev/null", O_WRONLY | O_CLOEXEC); /* it may print the value there, too */
	if (errors < 0 || fcntl(near, F_SETFL, O_NONBLOCK) < 0)
		return -errno;
	shutdown(near, SHUT_WR); /* its stdin is at its end */
	command->text = locked_alloc(SOURCE_ROOM);
	command->len = 0;
	if (!command->text)
		return -ENOMEM;
	r = spawn_apart(&user, kept->credential->source.command, far, errors, &command->pid);
	if (r == 0) {
		r = loop_watch(kept->vault->config.loop, near, EPOLLIN, on_output, kept);
		if (r < 0)
			spawn_end(command->pid);
	}
	if (r < 0) {
		command->pid = 0;
		locked_free(command->text, SOURCE_ROOM);
		command->text = NULL;
		return r;
	}
	command->output = take_fd(near);
	command->until_ns = loop_now_ns() + NP_SECRET_COMMAND_MS * 1000000ull;
	return 0;
}

/* Takes the process and its descriptor away; how it ended, or -1 when it had to be killed. */
static int command_close(struct kept *kept)
{
	struct command *command = &kept->command;
	siginfo_t info = { 0 };
	int status = -1;

	loop_unwatch(kept->vault->config.loop, command->output);
	close(command->output);
	command->output = -1;
	if (waitid(P_PID, (id_t)command->pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid &&
	    info.si_code == CLD_EXITED)
		status = info.si_status;
	spawn_end(command->pid);
	command->pid = 0;
	return status;
}

static void command_over(struct kept *kept, const char *problem)
{
	struct command *command = &kept->command;
	char *text = command->text, words[64];
	size_t len = command->len;
	int status = command_close(kept);

	command->text = NULL;
	if (!problem && status != 0) {
		snprintf(words, sizeof(words),
			 status < 0 ? "its command did not end" : "its command ended with status %d", status);
		problem = words;
	}
	if (!problem)
		problem = value_problem(text, &len);
	kept_fetched(kept, problem ? NULL : text, len, problem);
	locked_free(text, SOURCE_ROOM);
}

static void on_end(void *data, uint32_t events)
{
	(void)events;
	command_over(data, NULL);
}

/* It has said all: how it ends is all that is wanted of it, and it gets a moment for that, which nobody waits for. */
static void command_finish(struct kept *kept)
{
	struct command *command = &kept->command;
	const uint64_t soon = loop_now_ns() + END_MS * 1000000ull;
	int fd = (int)syscall(SYS_pidfd_open, command->pid, 0);

	if (fd < 0) {
		command_over(kept, strerror(errno));
		return;
	}
	loop_unwatch(kept->vault->config.loop, command->output);
	close(command->output);
	command->output = fd;
	if (soon < command->until_ns)
		command->until_ns = soon;
	if (loop_watch(kept->vault->config.loop, fd, EPOLLIN, on_end, kept) < 0)
		command_over(kept, "out of memory");
}

static void on_output(void *data, uint32_t events)
{
	struct kept *kept = data;
	struct command *command = &kept->command;
	ssize_t n = read(command->output, command->text + command->len, SOURCE_ROOM - command->len);

	(void)events;
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n > 0)
		command->len += (size_t)n;
	if (command->len == SOURCE_ROOM)
		command_over(kept, "its command prints too much");
	else if (n < 0 && errno != ECONNRESET)
		command_over(kept, strerror(errno));
	else if (n <= 0)
		command_finish(kept);
}

void command_stop(struct kept *kept)
{
	struct command *command = &kept->command;

	if (!command->pid)
		return;
	loop_unwatch(kept->vault->config.loop, command->output);
	close(command->output);
	spawn_end(command->pid);
	locked_free(command->text, SOURCE_ROOM);
	*command = (struct command){ .output = -1 };
}

void command_tick(struct kept *kept, uint64_t now_ns)
{
	if (!kept->command.pid || now_ns < kept->command.until_ns)
		return;
	kill(kept->command.pid, SIGKILL);
	command_over(kept, "its command did not end in time");
}
