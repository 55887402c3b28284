/* SPDX-License-Identifier: MIT */
#include "sandbox/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/sched.h>
#include <poll.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <sys/wait.h>

#include "base/cleanup.h"
#include "base/fs.h"
#include "sandbox/filter.h"
#include "sandbox/init.h"
#include "sandbox/stdio.h"

struct launch {
	const struct launch_plan *plan;
	struct launch_result *result;
	struct stdio stdio;
	int child;	  /* pidfd of process 1 of the sandbox */
	int signals;	  /* signalfd */
	int report;	  /* read end */
	pid_t foreground; /* process group that had the terminal at the start; 0 without one */
};

static void forwarded_set(sigset_t *set)
{
	sigemptyset(set);
	for (unsigned i = 0; i < init_forwarded_count; i++)
		sigaddset(set, init_forwarded[i]);
}

void launch_hold_signals(sigset_t *ret_mask)
{
	sigset_t set;

	forwarded_set(&set);
	sigaddset(&set, SIGCHLD); /* process 1 waits for it and inherits the mask */
	sigaddset(&set, SIGPIPE); /* a relay's reader may be gone: EPIPE says so */
	sigprocmask(SIG_BLOCK, &set, ret_mask);
}

/* Returns false, to be the last word of a step that failed. */
__attribute__((format(printf, 3, 4))) static bool launch_problem(struct launch_result *result, int error,
								 const char *fmt, ...)
{
	size_t len;
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(result->problem, sizeof(result->problem), fmt, ap);
	va_end(ap);
	len = strlen(result->problem);
	if (error)
		snprintf(result->problem + len, sizeof(result->problem) - len, ": %s", strerror(error));
	return false;
}

static bool cgroup_open(const struct launch_plan *plan, struct launch_result *result, int *ret_fd)
{
	_close_ int fd = open(plan->cgroup, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct statfs fs;

	if (fd < 0)
		return launch_problem(result, errno, "cannot open the cgroup %s", plan->cgroup);
	if (fstatfs(fd, &fs) < 0 || (unsigned long)fs.f_type != CGROUP2_SUPER_MAGIC)
		return launch_problem(result, 0, "%s is not a cgroup v2 directory", plan->cgroup);
	*ret_fd = take_fd(fd);
	return true;
}

static bool directory_read(struct init_setup *setup, struct launch_result *result)
{
	if (!getcwd(setup->cwd, sizeof(setup->cwd)) || setup->cwd[0] != '/' || stat(".", &setup->cwd_stat) < 0)
		return launch_problem(result, 0, "the working directory does not exist any more");
	return true;
}

/*
 * A raw clone3, like fork(): the child gets a copy of our memory and goes on here. The cgroup namespace is
 * not made here but by the child: at this point it would have the launcher's cgroup as its root.
 */
static pid_t sandbox_clone(int cgroup, int *ret_pidfd)
{
	struct clone_args args = {
		.flags = CLONE_INTO_CGROUP | CLONE_PIDFD | CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWIPC,
		.pidfd = (uint64_t)(uintptr_t)ret_pidfd,
		.exit_signal = SIGCHLD,
		.cgroup = (uint64_t)cgroup,
	};

	return (pid_t)syscall(SYS_clone3, &args, sizeof(args));
}

static bool launch_start(struct launch *l)
{
	struct init_setup setup = { .plan = l->plan, .stdio = &l->stdio };
	cleanup(filter_freep) struct filter *filter = NULL;
	_close_ int cgroup = -1, parent = -1, write_end = -1;
	int ends[2], err;
	pid_t pid;

	if (!cgroup_open(l->plan, l->result, &cgroup) || !directory_read(&setup, l->result))
		return false;
	err = filter_new(&filter);
	if (err < 0)
		return launch_problem(l->result, -err, "cannot build the system call filter");
	parent = pidfd_open(getpid(), 0);
	if (parent < 0)
		return launch_problem(l->result, errno, "cannot open a pidfd");
	if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) < 0)
		return launch_problem(l->result, errno, "cannot make a pipe");
	l->report = ends[0];
	write_end = ends[1];
	setup.report = write_end;
	setup.parent = parent;
	setup.filter = filter;
	pid = sandbox_clone(cgroup, &l->child);
	if (pid < 0)
		return launch_problem(l->result, errno, "cannot start a process in %s", l->plan->cgroup);
	if (pid == 0)
		init_main(&setup);
	return true;
}

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
 * The command is in our process group, so the terminal's signals (SI_KERNEL) reach it without us; passing
 * them on would deliver them twice. What a process sent to us alone is passed on. For the shell to see a
 * stopped job we stop as well.
 */
static void signal_forward(const struct launch *l, const struct signalfd_siginfo *info)
{
	int signo = (int)info->ssi_signo;

	if (info->ssi_code != SI_KERNEL)
		syscall(SYS_pidfd_send_signal, l->child, signo, NULL, 0);
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
		end = end || (info.ssi_signo != SIGWINCH && info.ssi_signo != SIGCONT && info.ssi_signo != SIGTSTP);
	}
	return end;
}

/* Until process 1 is gone, and with it every process of the sandbox. Then until their last output is
 * delivered, or a signal says that nobody waits for it. */
static void launch_serve(struct launch *l)
{
	enum { CHILD, SIGNALS, RELAYS };
	struct pollfd fds[RELAYS + STDIO_POLLFDS];
	bool running = true;

	while (running || stdio_busy(&l->stdio)) {
		fds[CHILD] = (struct pollfd){ .fd = running ? l->child : -1, .events = POLLIN };
		fds[SIGNALS] = (struct pollfd){ .fd = l->signals, .events = POLLIN };
		stdio_watch(&l->stdio, fds + RELAYS);
		if (poll(fds, ARRAY_SIZE(fds), -1) < 0) {
			if (errno == EINTR)
				continue;
			break;
		}
		stdio_move(&l->stdio, fds + RELAYS);
		if (signals_read(l, running) && !running)
			break;
		if (fds[CHILD].revents) {
			running = false;
			stdio_end_input(&l->stdio);
		}
	}
}

static bool exists(const char *path)
{
	return access(path, F_OK) == 0;
}

/* Finds the command as execvpe() does, to tell "not there" from "not to be seen from in there". */
static bool command_exists(const struct launch_plan *plan, const char *name)
{
	const char *path = "/bin:/usr/bin";
	char full[4096];

	if (strchr(name, '/'))
		return exists(name);
	for (char **e = plan->envp; *e; e++)
		if (!strncmp(*e, "PATH=", 5))
			path = *e + 5;
	for (; *path; path += strcspn(path, ":"), path += *path == ':') {
		int len = (int)strcspn(path, ":");

		snprintf(full, sizeof(full), "%.*s/%s", len, path, name);
		if (exists(full))
			return true;
	}
	return false;
}

/* Reads what process 1 had to say; nothing when the command was started. */
static void launch_read_report(struct launch *l)
{
	struct init_report report;
	const char *name = l->plan->argv[0];

	if (read(l->report, &report, sizeof(report)) != (ssize_t)sizeof(report))
		return;
	l->result->started = false;
	l->result->exit_code = report.exit_code;
	report.text[sizeof(report.text) - 1] = '\0';
	if (report.exit_code == LAUNCH_NOT_FOUND && command_exists(l->plan, name))
		launch_problem(l->result, 0,
			       "%s: it exists, but it or its interpreter is hidden from sandboxes "
			       "(as /run, /dev, /proc and cgroups are), or the interpreter is missing",
			       name);
	else if (report.exit_code == LAUNCH_NOT_FOUND)
		launch_problem(l->result, 0, "%s: command not found", name);
	else
		launch_problem(l->result, report.error, "%s", report.text);
}

static void launch_reap(struct launch *l)
{
	siginfo_t info = { 0 };

	l->result->started = true;
	if (waitid(P_PIDFD, (id_t)l->child, &info, WEXITED) < 0) {
		launch_problem(l->result, errno, "cannot wait for the command");
		return;
	}
	l->result->exit_code = info.si_code == CLD_EXITED ? info.si_status : 128 + info.si_status;
	launch_read_report(l);
}

void launch_run(const struct launch_plan *plan, struct launch_result *ret)
{
	struct launch l = { .plan = plan, .result = ret, .child = -1, .signals = -1, .report = -1 };
	sigset_t forwarded;
	int err;

	*ret = (struct launch_result){ .exit_code = LAUNCH_FAILED };
	l.stdio.keep_stdout = plan->keep_stdout;
	signal(SIGCHLD, SIG_DFL); /* ignored, it would throw the exit code away */
	if (isatty(STDIN_FILENO) && tcgetpgrp(STDIN_FILENO) == getpgrp())
		l.foreground = getpgrp();
	forwarded_set(&forwarded);
	l.signals = signalfd(-1, &forwarded, SFD_CLOEXEC | SFD_NONBLOCK);
	err = stdio_prepare(&l.stdio);
	if (err == -EACCES) {
		launch_problem(ret, 0,
			       "standard output or error is a file of the kernel (cgroupfs, procfs, ...), "
			       "which a sandbox may not write");
	} else if (l.signals < 0 || err < 0) {
		launch_problem(ret, err < 0 ? -err : errno, "cannot prepare standard input and output");
	} else if (launch_start(&l)) {
		stdio_leave(&l.stdio);
		launch_serve(&l);
		launch_reap(&l);
		terminal_take_back(&l);
	}
	stdio_free(&l.stdio);
	cleanup_close(&l.child);
	cleanup_close(&l.signals);
	cleanup_close(&l.report);
}
