/* SPDX-License-Identifier: MIT */
#include "launch/launch.h"

#include <errno.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/cleanup.h"
#include "launch/kept.h"
#include "launch/launch_internal.h"
#include "vocab/limits.h"

#define SLOW_MS 1000 /* less than NP_RUN_LOST_S by far: what nobody tells of until then counts as failed */
_Static_assert(SLOW_MS * 3 < NP_RUN_LOST_S * 1000, "a slow reader is told of in time");

static const int forwarded[] = { SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGWINCH, SIGCONT, SIGTSTP };

static void forwarded_set(sigset_t *set)
{
	sigemptyset(set);
	for (size_t i = 0; i < ARRAY_SIZE(forwarded); i++)
		sigaddset(set, forwarded[i]);
}

void launch_hold_signals(sigset_t *ret_mask)
{
	sigset_t set;

	forwarded_set(&set);
	sigaddset(&set, SIGCHLD); /* netpawl-init waits for it and inherits the mask */
	sigaddset(&set, SIGPIPE); /* a relay's reader may be gone: EPIPE says so */
	sigprocmask(SIG_BLOCK, &set, ret_mask);
}

/* -- while it runs ---------------------------------------------------------------------- */

/* What the shell does for its own jobs when they end: the terminal goes back to who had it. */
static void terminal_take_back(const struct launch *l)
{
	sigset_t ttou, old;

	if (!l->foreground)
		return;
	sigemptyset(&ttou);
	sigaddset(&ttou, SIGTTOU);
	sigprocmask(SIG_BLOCK, &ttou, &old);
	tcsetpgrp(STDIN_FILENO, l->foreground);
	sigprocmask(SIG_SETMASK, &old, NULL);
}

/*
 * The command is in our process group, so the terminal's signals (SI_KERNEL) reach it without us; passing them on would deliver
 * them twice. What a process sent to us alone is passed on. For the shell to see a stopped job we stop as well.
 */
static void signal_forward(const struct launch *l, const struct signalfd_siginfo *info)
{
	unsigned char signo = (unsigned char)info->ssi_signo, byte = signo;
	bool pass = info->ssi_code != SI_KERNEL;

	/* In a kept sandbox the command has a group of its own. */
	if (l->within && !pass) {
		byte |= KEPT_GROUP;
		pass = true;
	}
	if (pass && l->control >= 0 && write(l->control, &byte, 1) < 0)
		return; /* it is gone, and poll() will say so */
	if (signo == SIGTSTP)
		kill(getpid(), SIGSTOP);
}

/* True when a signal came that would have ended a process without a handler. */
static bool signals_read(const struct launch *l, bool running)
{
	struct signalfd_siginfo info;
	bool end = false;

	while (read(l->signals, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
		if (running)
			signal_forward(l, &info);
		if (info.ssi_signo == SIGWINCH)
			stdio_resize(&l->stdio);
		end = end || (info.ssi_signo != SIGWINCH && info.ssi_signo != SIGCONT && info.ssi_signo != SIGTSTP);
	}
	return end;
}

static bool path_exists(const char *path)
{
	return access(path, F_OK) == 0;
}

/* Finds the command as execvp() does, to tell "not there" from "not to be seen from in there". */
static bool command_exists(const struct plan *plan, const char *name)
{
	const char *path = "/bin:/usr/bin";
	char full[4096];

	if (strchr(name, '/'))
		return path_exists(name);
	for (char **e = plan->environ; *e; e++)
		if (!strncmp(*e, "PATH=", 5))
			path = *e + 5;
	for (; *path; path += strcspn(path, ":"), path += *path == ':') {
		int len = (int)strcspn(path, ":");

		snprintf(full, sizeof(full), "%.*s/%s", len, path, name);
		if (path_exists(full))
			return true;
	}
	return false;
}

static void failure_note(struct launch *l, const struct init_report *report)
{
	const struct plan *plan = l->order->plan;
	const char *name = plan->argv[0];

	l->failed = true;
	l->result->unmade = report->error == EAGAIN;
	l->result->exit_code = report->exit_code;
	if (report->exit_code == LAUNCH_NOT_FOUND && plan->isolation == ISOLATION_FULL && command_exists(plan, name))
		launch_problem(l->result, 0,
			       "%s: it exists, but it or its interpreter is not to be seen in the sandbox "
			       "(only the system, /workspace and what --bind adds is), or the interpreter is missing",
			       name);
	else if (report->exit_code == LAUNCH_NOT_FOUND)
		launch_problem(l->result, 0, "%s: command not found", name);
	else
		launch_problem(l->result, l->result->unmade ? 0 : report->error, "%s", report->text);
}

/* The command has ended; what it left behind in the sandbox ends when netpawl-init does, which waits for our word. */
static void end_note(struct launch *l, const struct init_report *report)
{
	l->ended = true;
	l->result->exit_code = report->exit_code;
	l->result->signal = report->signal;
	groups_usage(&l->groups, &l->result->usage);
	if (l->order->on_ended)
		l->order->on_ended(l->order->data);
	close(take_fd(l->control));
}

/* At most this many at once, so that a flood of them keeps us from nothing. There are three of a kind. */
#define REPORTS_MAX 8

void reports_read(struct launch *l)
{
	struct init_report raw, report;

	for (unsigned i = 0; i < REPORTS_MAX; i++) {
		ssize_t n = read(l->report, &raw, sizeof(raw));

		if (n == 0) {
			l->gone = true;
			close(take_fd(l->report)); /* or poll() would say so again and again */
		}
		if (n <= 0 || !report_read(&raw, (size_t)n, &report))
			return;
		if (report.kind == REPORT_READY)
			l->ready = true;
		else if (report.kind == REPORT_FAILED && !l->failed)
			failure_note(l, &report);
		else if (report.kind == REPORT_ENDED && l->control >= 0)
			end_note(l, &report);
	}
}

/* Milliseconds until the time is over; -1: there is no such time. */
static int time_left(const struct launch *l)
{
	uint64_t now = now_ms(), end = l->ends_ms;

	if (l->ready_ms && !l->ready && (!end || l->ready_ms < end))
		end = l->ready_ms;
	if (!end || l->result->timed_out || l->ended)
		return -1;
	if (now >= end)
		return 0;
	return end - now > INT32_MAX ? INT32_MAX : (int)(end - now);
}

static void time_check(struct launch *l)
{
	if (time_left(l) != 0)
		return;
	if (l->ready_ms && !l->ready) { /* process 1 says nothing: as good as dead */
		l->gone = l->result->silent = true;
		return;
	}
	l->result->timed_out = true;
	groups_usage(&l->groups, &l->result->usage);
	if (l->order->on_ended)
		l->order->on_ended(l->order->data);
	/* In a kept sandbox the run's own processes die, and nobody has to tell us: process 1 may be slow, or the sandbox's. */
	if (l->within) {
		l->gone = run_group_kill(&l->group) == 0 || groups_kill(&l->groups) == 0;
		return;
	}
	/* A cgroup of a kernel before 5.14 has no such file: then the first process takes its namespace with it. */
	if (groups_kill(&l->groups) < 0)
		syscall(SYS_pidfd_send_signal, l->child, SIGKILL, NULL, 0);
}

/* In a kept sandbox the end is a word of process 1; else it is that of our child. */
static bool is_over(const struct launch *l)
{
	return l->within && (l->ended || l->failed || l->gone);
}

bool launch_settle(struct launch *l)
{
	struct pollfd fds[] = { { .fd = l->child, .events = POLLIN }, { .fd = l->report, .events = POLLIN } };

	while (!l->ready && !l->failed && !is_over(l)) {
		fds[1].fd = l->report;
		if (poll(fds, ARRAY_SIZE(fds), time_left(l)) < 0 && errno != EINTR)
			return true;
		reports_read(l);
		time_check(l);
		if (fds[0].revents)
			return (l->ready || l->failed) && !l->result->unmade;
	}
	return !l->result->unmade;
}

static void streams_end(struct launch *l)
{
	l->slow_ms = now_ms() + SLOW_MS;
	stdio_end_input(&l->stdio);
	if (l->within) /* what the command has left there may hold its output for ever */
		stdio_end_output(&l->stdio);
}

static void launch_over(struct launch *l)
{
	if (l->over)
		return;
	l->over = true;
	(l->within ? launch_leave : launch_reap)(l);
}

/* Milliseconds until its reader is a slow one; -1: that was told. */
static int slow_left(const struct launch *l)
{
	uint64_t now = now_ms();

	return !l->slow_ms ? -1 : now >= l->slow_ms ? 0 : (int)(l->slow_ms - now);
}

static void slow_report(struct launch *l)
{
	l->slow_ms = 0;
	stdio_settle(&l->stdio);
	for (int fd = STDOUT_FILENO; fd <= STDERR_FILENO; fd++)
		l->result->truncated[fd] = l->stdio.relays[fd].truncated;
	launch_over(l);
	if (l->order->on_slow_reader)
		l->order->on_slow_reader(l->order->data);
}

void launch_serve(struct launch *l)
{
	enum { CHILD, SIGNALS, REPORT, RELAYS };
	struct pollfd fds[RELAYS + STDIO_POLLFDS];
	bool running = !is_over(l);

	if (!running)
		streams_end(l);
	while (running || stdio_busy(&l->stdio)) {
		fds[CHILD] = (struct pollfd){ .fd = running ? l->child : -1, .events = POLLIN };
		fds[SIGNALS] = (struct pollfd){ .fd = l->signals, .events = POLLIN };
		fds[REPORT] = (struct pollfd){ .fd = running ? l->report : -1, .events = POLLIN };
		stdio_watch(&l->stdio, fds + RELAYS);
		if (poll(fds, ARRAY_SIZE(fds), running ? time_left(l) : slow_left(l)) < 0) {
			if (errno == EINTR)
				continue;
			break;
		}
		stdio_move(&l->stdio, fds + RELAYS);
		if (signals_read(l, running) && !running)
			break;
		if (fds[REPORT].revents)
			reports_read(l);
		if (running)
			time_check(l);
		if (running && (fds[CHILD].revents || is_over(l))) {
			running = false;
			streams_end(l);
		} else if (!running && slow_left(l) == 0) {
			slow_report(l);
		}
	}
	launch_over(l);
}

/* -- the end ------------------------------------------------------------------------------- */

void launch_reap(struct launch *l)
{
	struct launch_result *result = l->result;
	struct rusage used = { 0 };
	siginfo_t info = { 0 };

	if (syscall(SYS_waitid, P_PIDFD, l->child, &info, WEXITED, &used) < 0) {
		launch_problem(result, errno, "cannot wait for the command");
		return;
	}
	reports_read(l);
	/* Where no group counts memory: the largest of the processes. */
	if (!result->usage.memory_peak)
		result->usage.memory_peak = (uint64_t)used.ru_maxrss * 1024;
	if (!result->usage.cpu_us)
		result->usage.cpu_us = (uint64_t)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1000000 +
				       (uint64_t)(used.ru_utime.tv_usec + used.ru_stime.tv_usec);
	if (result->timed_out) {
		result->started = l->ready;
		result->exit_code = LAUNCH_TIMED_OUT;
		result->problem[0] = '\0';
	} else if (l->failed) {
		result->started = false;
	} else if (!l->ready) {
		result->exit_code = LAUNCH_FAILED;
		launch_problem(result, 0, "the sandbox was killed before its command started");
	} else {
		result->started = true;
		if (!l->ended) { /* killed from outside, with all that was in the sandbox */
			result->signal = info.si_code == CLD_EXITED ? 0 : info.si_status;
			result->exit_code = info.si_code == CLD_EXITED ? info.si_status : 128 + info.si_status;
		}
	}
}

static void output_take(struct launch *l)
{
	for (int fd = STDOUT_FILENO; fd <= STDERR_FILENO; fd++) {
		l->result->output[fd] = l->stdio.kept[fd];
		l->stdio.kept[fd] = BUF_INIT(0);
		l->result->truncated[fd] = l->stdio.relays[fd].truncated;
	}
}

static int streams_prepare(struct launch *l)
{
	const uint64_t limit = l->order->plan->limits.output_limit;

	l->stdio.keep = l->order->keep_output;
	l->stdio.lasting = l->order->lasting;
	l->stdio.confined = l->order->plan->isolation == ISOLATION_FULL;
	l->stdio.user = l->order->plan->identity ? identity_outside(l->order->plan->identity) : 0;
	/* In the background it would be stopped for it; with its output elsewhere it is no dialogue. */
	l->stdio.terminal = l->order->lasting && l->foreground && isatty(STDOUT_FILENO) && !l->stdio.keep && !limit;
	l->stdio.outlive = l->order->outlive_reader;
	l->stdio.left = limit ? limit : STDIO_UNLIMITED;
	for (int fd = 0; fd < 3; fd++)
		l->stdio.kept[fd] = BUF_INIT(!limit ? NP_OUTPUT_KEPT : limit > NP_OUTPUT_MAX ? NP_OUTPUT_MAX : limit);
	return stdio_prepare(&l->stdio);
}

bool launch_prepare(struct launch *l, const struct launch_order *order, struct launch_result *ret)
{
	sigset_t set;
	int err;

	*l = (struct launch){ .order = order,
			      .result = ret,
			      .child = -1,
			      .signals = -1,
			      .report = -1,
			      .control = -1,
			      .listener = -1,
			      .group = { .entry = -1 } };
	*ret = (struct launch_result){ .exit_code = LAUNCH_FAILED };
	signal(SIGCHLD, SIG_DFL); /* ignored, it would throw the exit code away */
	if (isatty(STDIN_FILENO) && tcgetpgrp(STDIN_FILENO) == getpgrp())
		l->foreground = getpgrp();
	forwarded_set(&set);
	l->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	err = streams_prepare(l);
	if (err == -EACCES)
		return launch_problem(ret, 0,
				      "standard output or error is a file of the kernel (cgroupfs, procfs, ...), "
				      "which a sandbox may not write");
	if (l->signals < 0 || err < 0)
		return launch_problem(ret, err < 0 ? -err : errno, "cannot prepare standard input and output");
	return true;
}

void launch_finish(struct launch *l)
{
	output_take(l);
	stdio_free(&l->stdio);
	handover_free(&l->handover);
	cleanup_close(&l->child);
	cleanup_close(&l->signals);
	cleanup_close(&l->report);
	cleanup_close(&l->control);
	run_group_end(&l->group);
}

void launch_run(const struct launch_order *order, struct launch_result *ret)
{
	static struct launch l; /* too large for a stack */

	if (launch_prepare(&l, order, ret) && launch_start(&l)) {
		bool settled;

		stdio_leave(&l.stdio);
		settled = launch_settle(&l);
		handover_free(&l.handover); /* while the command starts */
		if (settled)
			launch_serve(&l);
		else
			launch_reap(&l);
		terminal_take_back(&l);
	}
	launch_finish(&l);
	groups_remove(&l.groups);
}

void launch_result_free(struct launch_result *result)
{
	for (int fd = 0; fd < 3; fd++)
		buf_free(&result->output[fd]);
}
