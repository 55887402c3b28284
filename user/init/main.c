/* SPDX-License-Identifier: MIT */
/*
 * netpawl-init: the first process of a sandbox. Started by netpawl as process 1, it gives up what is left,
 * starts the command, passes signals on and tells how it ended. Linked statically: it needs no file of the
 * sandbox.
 *
 * The order of steps, over the two programs. Each one relies on those before it.
 *
 *  0. netpawl: the process is born in the sandbox's cgroup (CLONE_INTO_CGROUP), not moved there: it never had a
 *     moment outside in which to open a socket that the gate would take for the host's.
 *  1. netpawl: namespaces, and the sandbox's view of the file system (root.c), each mount of which is what was meant when
 *     it was planned. From the moment that its root is entered no name leads to anything else.
 *  2. netpawl: every inherited descriptor goes, but for 0, 1, 2 (made harmless by stdio.c) and those of
 *     orders.h: a directory or a socket of the outside would make all that follows pointless. no_new_privs; the system call
 *     filter: from here on nothing is mounted, no namespace is made, with whatever capability. Then this program.
 *  3. No mount is a window that nobody covered: see mount_check.h.
 *  4. Bounding set, groups, gid, uid, capabilities: bounding set first, so that no exec gives any of them back.
 *  5. The Landlock scopes, which need no_new_privs.
 *  6. Only then is there a second process. It restores the signal mask and becomes the command. Or, of a kept sandbox,
 *     process 1 waits for runs (serve.c).
 *
 * Process 1 itself is as confined as the command, so that getting hold of it gains nothing.
 */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>

#include "base/cleanup.h"
#include "init/caps.h"
#include "init/init.h"
#include "init/landlock.h"
#include "init/mount_check.h"

#define MOUNTINFO_BYTES (1u << 20)

static struct orders orders; /* too large for a stack */

int report_fd = ORDERS_REPORT;

void report_put(const struct init_report *report)
{
	if (write(report_fd, report, sizeof(*report)) < 0)
		_exit(LAUNCH_FAILED); /* whoever would read it is gone */
}

_Noreturn void init_fail(int exit_code, int error, const char *fmt, ...)
{
	struct init_report r = { .kind = REPORT_FAILED, .exit_code = exit_code, .error = error };
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(r.text, sizeof(r.text), fmt, ap);
	va_end(ap);
	report_put(&r);
	_exit(exit_code);
}

static void orders_read(void)
{
	if (pread(ORDERS_FILE, &orders, sizeof(orders), 0) != (ssize_t)sizeof(orders) ||
	    orders.size != sizeof(orders) || orders.n_groups > ARRAY_SIZE(orders.groups))
		init_fail(LAUNCH_FAILED, 0, "netpawl and netpawl-init are not of one build");
}

/* Leaves 0, 1, 2, the report and the control pipe, and these do not outlive an exec. */
static void descriptors_reduce(void)
{
	if (close_range(ORDERS_CONTROL + 1, ~0U, 0) < 0 || fcntl(ORDERS_REPORT, F_SETFD, FD_CLOEXEC) < 0 ||
	    fcntl(ORDERS_CONTROL, F_SETFD, FD_CLOEXEC) < 0)
		init_fail(LAUNCH_FAILED, errno, "cannot close inherited files");
}

static void windows_check(void)
{
	static char table[MOUNTINFO_BYTES + 1];
	_close_ int fd = open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC);
	const char *window;
	size_t len = 0;
	ssize_t n = 0;

	while (fd >= 0 && len < MOUNTINFO_BYTES && (n = read(fd, table + len, MOUNTINFO_BYTES - len)) > 0)
		len += (size_t)n;
	if (fd < 0 || n != 0)
		init_fail(LAUNCH_FAILED, errno, "the mount table cannot be read, or is too long");
	window = windows_find(table);
	if (window)
		init_fail(LAUNCH_FAILED, EAGAIN, "%.300s: something of the kernel was mounted there on the way",
			  window);
}

/* Groups, gid, uid, in that order; after it there is no way back. */
static void identity_assume(void)
{
	if (setgroups(orders.n_groups, orders.groups) < 0 || setresgid(orders.gid, orders.gid, orders.gid) < 0 ||
	    setresuid(orders.uid, orders.uid, orders.uid) < 0)
		init_fail(LAUNCH_FAILED, errno, "cannot become uid %u", (unsigned)orders.uid);
}

static void init_confine(void)
{
	int err;

	if (getpid() != 1 || prctl(PR_GET_SECCOMP, 0, 0, 0, 0) != 2)
		init_fail(LAUNCH_FAILED, 0, "the sandbox is not what it should be");
	windows_check();
	err = caps_drop_bounding();
	if (err < 0)
		init_fail(LAUNCH_FAILED, -err, "cannot empty the bounding set");
	identity_assume();
	err = caps_drop();
	if (err < 0)
		init_fail(LAUNCH_FAILED, -err, "cannot give up capabilities");
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		init_fail(LAUNCH_FAILED, errno, "cannot set no_new_privs");
	err = scope_close();
	if (err < 0)
		init_fail(LAUNCH_FAILED, -err, "cannot enter a Landlock domain");
	/* A change of user takes this back, so it is asked for behind that. */
	if (!orders.kept && prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0)
		init_fail(LAUNCH_FAILED, errno, "cannot end with netpawl");
	/* Not to be traced or looked into by the command, although they share a user. */
	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
		init_fail(LAUNCH_FAILED, errno, "cannot protect process 1");
}

_Noreturn void command_execute(char **argv, const sigset_t *mask)
{
	int err;

	/* An ignored SIGCHLD would be inherited from whoever started netpawl. */
	signal(SIGCHLD, SIG_DFL);
	sigprocmask(SIG_SETMASK, mask, NULL);
	execvp(argv[0], argv);
	err = errno;
	init_fail(err == ENOENT ? LAUNCH_NOT_FOUND : LAUNCH_NOT_EXECUTABLE, err, "%.300s", argv[0]);
}

static _Noreturn void command_main(char **argv)
{
	if (!orders.confined && orders.has_identity)
		identity_assume();
	command_execute(argv, &orders.mask);
}

void status_note(int status, struct init_report *report)
{
	report->signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
	report->exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* True once the command has ended. Reaps orphans on the way. */
static bool children_reap(pid_t command, struct init_report *report)
{
	bool ended = false;
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		if (pid != command)
			continue;
		ended = true;
		status_note(status, report);
	}
	return ended;
}

/* Signals come by the pipe, for nobody outside knows our number. Those of the terminal reach the command by themselves:
 * it is in the same process group. False at its end: netpawl is gone. */
static bool control_read(pid_t command)
{
	unsigned char signals[16];
	ssize_t n = read(ORDERS_CONTROL, signals, sizeof(signals));

	for (ssize_t i = 0; i < n; i++)
		if (command > 0)
			kill(command, signals[i]);
	return n > 0 || (n < 0 && (errno == EINTR || errno == EAGAIN));
}

static void command_wait(pid_t command, int children)
{
	struct init_report report = { .kind = REPORT_ENDED };
	struct pollfd fds[] = { { .fd = children, .events = POLLIN }, { .fd = ORDERS_CONTROL, .events = POLLIN } };
	struct signalfd_siginfo info;

	for (;;) {
		if (poll(fds, ARRAY_SIZE(fds), -1) < 0)
			continue;
		if (fds[0].revents && read(children, &info, sizeof(info)) > 0 && command > 0 &&
		    children_reap(command, &report)) {
			command = 0; /* its number may be another's from now on */
			report_put(&report);
		}
		if (fds[1].revents && !control_read(command))
			break;
	}
	/* As process 1 we take the whole sandbox with us. */
	if (command > 0)
		kill(command, SIGKILL);
	_exit(report.exit_code);
}

int main(int argc, char **argv)
{
	struct init_report ready = { .kind = REPORT_READY };
	sigset_t chld;
	pid_t command;
	int children;

	orders_read();
	if ((argc < 2) != orders.kept || (orders.kept && !orders.confined))
		return LAUNCH_FAILED;
	descriptors_reduce();
	sigemptyset(&chld);
	sigaddset(&chld, SIGCHLD);
	sigprocmask(SIG_BLOCK, &chld, NULL);
	signal(SIGCHLD, SIG_DFL);
	if (orders.confined)
		init_confine();
	children = signalfd(-1, &chld, SFD_CLOEXEC | SFD_NONBLOCK);
	if (children < 0)
		init_fail(LAUNCH_FAILED, errno, "cannot wait for processes");
	report_put(&ready);
	if (orders.kept)
		serve(children);
	command = fork();
	if (command < 0)
		init_fail(LAUNCH_FAILED, errno, "cannot start a process");
	if (command == 0)
		command_main(argv + 1);
	/* Standard input and output are the command's alone: a pipe must end when the command closes it. */
	close_range(0, 2, 0);
	command_wait(command, children);
}
