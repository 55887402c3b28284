/* SPDX-License-Identifier: MIT */
/*
 * The order of steps. Each one relies on those before it.
 *
 *  0. The process was born in the sandbox's cgroup (CLONE_INTO_CGROUP), not moved there: it never had a
 *     moment outside in which to open a socket that the gate would take for the host's.
 *  1. It dies with the launching process. Asked for first, so that no failure below leaves it behind.
 *  2. Every inherited descriptor goes, but for 0, 1, 2 (made harmless by stdio.c) and the report: a
 *     directory or a socket of the outside would make all that follows pointless.
 *  3. The cgroup namespace, now that the process is where it belongs: it hides the names above.
 *  4. Mounts. They need CAP_SYS_ADMIN and mount(2), so before 6 and 8.
 *  5. The working directory is entered anew, by its path: the inherited one would still see what is now
 *     covered. This is also why nothing else may hold a path from before.
 *  6. Capabilities: bounding set first, so that no exec gives any of them back.
 *  7. no_new_privs, which the next two need and which takes away set-uid programs; then the Landlock scopes.
 *  8. The system call filter, last of what process 1 does to itself, because it forbids steps 3 to 5.
 *  9. Only then is there a second process. It changes its user, which the kept CAP_SETUID and CAP_SETGID
 *     still allow, restores the signal mask and becomes the command.
 *
 * Process 1 itself stays as confined as the command, so that getting hold of it gains nothing.
 */
#include "sandbox/init.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <poll.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "base/cleanup.h"
#include "sandbox/caps.h"
#include "sandbox/mounts.h"
#include "sandbox/scope.h"

#define REPORT_FD 3

const int init_forwarded[] = { SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGWINCH, SIGCONT, SIGTSTP };
const unsigned init_forwarded_count = ARRAY_SIZE(init_forwarded);

__attribute__((format(printf, 4, 5))) static _Noreturn void init_fail(int report, int exit_code, int error,
								      const char *fmt, ...)
{
	struct init_report r = { .exit_code = exit_code, .error = error };
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(r.text, sizeof(r.text), fmt, ap);
	va_end(ap);
	if (write(report, &r, sizeof(r)) < 0)
		_exit(LAUNCH_FAILED); /* whoever would read it is gone */
	_exit(exit_code);
}

/* getppid() is 0 here, whether the parent lives or not: its pidfd tells. */
static void die_with_parent(const struct init_setup *setup)
{
	struct pollfd parent = { .fd = setup->parent, .events = POLLIN };

	if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0)
		init_fail(setup->report, LAUNCH_FAILED, errno, "cannot tie the sandbox to netpawl");
	if (poll(&parent, 1, 0) != 0)
		_exit(LAUNCH_FAILED);
}

/* Leaves 0, 1, 2 and the report, which moves to a known place and does not outlive an exec. */
static int descriptors_reduce(const struct init_setup *setup)
{
	int report, err;

	/* Out of the way first: any number above 2 may be the report's or a pipe's. */
	report = fcntl(setup->report, F_DUPFD_CLOEXEC, REPORT_FD + 1);
	if (report < 0)
		return -errno;
	err = stdio_enter(setup->stdio);
	if (err < 0)
		return err;
	if (dup3(report, REPORT_FD, O_CLOEXEC) < 0)
		return -errno;
	if (close_range(REPORT_FD + 1, ~0U, 0) < 0)
		return -errno;
	/* A terminal that was opened without O_NOCTTY and the like are the caller's affair; the flags are not. */
	for (int fd = 0; fd < 3; fd++)
		if (fcntl(fd, F_SETFD, 0) < 0)
			return -errno;
	return 0;
}

static void enter_directory(const struct init_setup *setup)
{
	struct stat st;

	if (chdir(setup->cwd) == 0 && stat(".", &st) == 0 && st.st_dev == setup->cwd_stat.st_dev &&
	    st.st_ino == setup->cwd_stat.st_ino)
		return;
	init_fail(REPORT_FD, LAUNCH_FAILED, 0,
		  "the working directory %s is hidden from sandboxes (as /run, /dev, /proc and cgroups are)",
		  setup->cwd);
}

static void init_confine(const struct init_setup *setup)
{
	const struct launch_plan *plan = setup->plan;
	const struct mounts_plan mounts = {
		.cwd = setup->cwd,
		.readonly = plan->identity ? plan->identity->uid == 0 : getuid() == 0,
		.hidden = plan->hidden,
		.notices = plan->notices,
	};
	const char *place = "";
	int err;

	die_with_parent(setup);
	err = descriptors_reduce(setup);
	if (err < 0)
		init_fail(setup->report, LAUNCH_FAILED, -err, "cannot close inherited files");
	if (unshare(CLONE_NEWCGROUP) < 0)
		init_fail(REPORT_FD, LAUNCH_FAILED, errno, "cannot make a cgroup namespace");
	err = mounts_confine(&mounts, &place);
	if (err < 0)
		init_fail(REPORT_FD, LAUNCH_FAILED, -err, "cannot make the sandbox's view of %s", place);
	enter_directory(setup);
	err = caps_reduce();
	if (err < 0)
		init_fail(REPORT_FD, LAUNCH_FAILED, -err, "cannot give up capabilities");
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		init_fail(REPORT_FD, LAUNCH_FAILED, errno, "cannot set no_new_privs");
	err = scope_close();
	if (err < 0)
		init_fail(REPORT_FD, LAUNCH_FAILED, -err, "cannot enter a Landlock domain");
	err = filter_load(setup->filter);
	if (err < 0)
		init_fail(REPORT_FD, LAUNCH_FAILED, -err, "cannot load the system call filter");
	/* Not to be traced or looked into by the command, although they share a user. */
	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
		init_fail(REPORT_FD, LAUNCH_FAILED, errno, "cannot protect process 1");
}

static _Noreturn void command_main(const struct launch_plan *plan)
{
	int err;

	if (plan->identity) {
		err = identity_assume(plan->identity);
		if (err < 0)
			init_fail(REPORT_FD, LAUNCH_FAILED, -err, "cannot become uid %u",
				  (unsigned)plan->identity->uid);
	}
	/* An ignored SIGCHLD would be inherited from whoever started netpawl. */
	signal(SIGCHLD, SIG_DFL);
	sigprocmask(SIG_SETMASK, plan->mask, NULL);
	execvpe(plan->argv[0], plan->argv, plan->envp);
	err = errno;
	init_fail(REPORT_FD, err == ENOENT ? LAUNCH_NOT_FOUND : LAUNCH_NOT_EXECUTABLE, err, "%s", plan->argv[0]);
}

/* Exit code of the command once it has ended; -1 as long as it runs. Reaps orphans on the way. */
static int children_reap(pid_t command)
{
	int status, code = -1;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
		if (pid == command)
			code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
	return code;
}

/*
 * Signals from outside have pid 0 here and go on to the command. Those of the terminal (SI_KERNEL) reach
 * the command by themselves, for it is in the same process group; those that the sandbox sends to its own
 * process 1 mean nothing.
 */
static _Noreturn void command_wait(pid_t command)
{
	sigset_t set;
	siginfo_t info;
	int code = -1;

	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	for (unsigned i = 0; i < init_forwarded_count; i++)
		sigaddset(&set, init_forwarded[i]);
	for (;;) {
		int signo = sigwaitinfo(&set, &info);

		if (signo == SIGCHLD)
			code = children_reap(command);
		else if (signo > 0 && info.si_code == SI_USER && info.si_pid == 0)
			kill(command, signo);
		if (code >= 0)
			_exit(code); /* the kernel kills whatever is left in the pid namespace */
	}
}

void init_main(const struct init_setup *setup)
{
	pid_t command;

	signal(SIGCHLD, SIG_DFL);
	init_confine(setup);
	command = fork();
	if (command < 0)
		init_fail(REPORT_FD, LAUNCH_FAILED, errno, "cannot start a process");
	if (command == 0)
		command_main(setup->plan);
	/* Standard input and output are the command's alone: a pipe must end when the command closes it. */
	close_range(0, ~0U, 0);
	command_wait(command);
}
