/* SPDX-License-Identifier: MIT */
/* Up to the first process of a sandbox. */
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <time.h>

#include "base/cleanup.h"
#include "launch/launch_internal.h"
#include "launch/quota.h"

uint64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

bool launch_problem(struct launch_result *result, int error, const char *fmt, ...)
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

static bool cgroup_open(const char *path, struct launch_result *result, int *ret_fd)
{
	_close_ int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct statfs fs;

	if (fd < 0)
		return launch_problem(result, errno, "cannot open the cgroup %s", path);
	if (fstatfs(fd, &fs) < 0 || (unsigned long)fs.f_type != CGROUP2_SUPER_MAGIC)
		return launch_problem(result, 0, "%s is not a cgroup v2 directory", path);
	*ret_fd = take_fd(fd);
	return true;
}

static bool pipe_make(int flags, int *ret_read, int *ret_write)
{
	int ends[2];

	if (pipe2(ends, O_CLOEXEC | flags) < 0)
		return false;
	*ret_read = ends[0];
	*ret_write = ends[1];
	return true;
}

/*
 * A raw clone3, like fork(): the child gets a copy of our memory and goes on here. The other namespaces are not made
 * here but by bubblewrap: at this point the cgroup namespace would have the launcher's cgroup as its root.
 */
static pid_t sandbox_clone(int cgroup, uint64_t namespaces, int *ret_pidfd)
{
	struct clone_args args = {
		.flags = CLONE_INTO_CGROUP | CLONE_PIDFD | namespaces,
		.pidfd = (uint64_t)(uintptr_t)ret_pidfd,
		.exit_signal = SIGCHLD,
		.cgroup = (uint64_t)cgroup,
	};

	return (pid_t)syscall(SYS_clone3, &args, sizeof(args));
}

/* A sandbox that outlives us has nothing of our terminal, and holds nobody's output. */
static int streams_leave(void)
{
	_close_ int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	if (null < 0 || setsid() < 0)
		return -errno;
	for (int fd = 0; fd < 3; fd++)
		if (dup2(null, fd) < 0)
			return -errno;
	if (null < 3)
		take_fd(null);
	return 0;
}

static int userns_map(pid_t pid, const char *map)
{
	static const char *const files[] = { "gid_map", "uid_map" };
	char path[64];
	int r = 0;

	for (size_t i = 0; i < ARRAY_SIZE(files) && r == 0; i++) {
		snprintf(path, sizeof(path), "/proc/%d/%s", pid, files[i]);
		r = fs_write_at(AT_FDCWD, path, map);
	}
	return r;
}

/* Every number means what it means outside, so that files show their owners; what a capability is worth ends at the
 * namespace. bubblewrap would map one number only, so its process is born in one that we map. */
#define MAP_ALL "0 0 4294967295"

/*
 * A command that is root inside must not be the host's root outside, whose files (keys, password hashes) it would own,
 * capabilities or not. bubblewrap has to be that root to see and mount what it is told to, so it enters a second namespace
 * at the end, in which root is the session's own user and the host's root is nobody. The namespace lives on by its
 * descriptor alone. The descriptor, or -errno.
 */
static int userns_nested(uid_t root)
{
	char map[128], path[64];
	pid_t pid = (pid_t)syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0);
	int r, fd = -1;

	if (pid < 0)
		return -errno;
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			pause();
	}
	snprintf(map, sizeof(map), "0 %u 1\n1 1 %u\n%u %u %u", root, root - 1, root + 1, root + 1,
		 UINT32_MAX - root - 1);
	r = userns_map(pid, map);
	if (r == 0) {
		snprintf(path, sizeof(path), "/proc/%d/ns/user", pid);
		fd = open(path, O_RDONLY | O_CLOEXEC);
		r = fd < 0 ? -errno : fd;
	}
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	return r;
}

/*
 * Mounts of the host are mostly shared, and bubblewrap has what is mounted later come in. Below what --bind shows, that
 * would open a window that nobody covered: there the sources get a mount of their own that takes part in nothing. All
 * others stay as they are, so that what the host unmounts is not held by us.
 */
static int binds_still(const struct plan *plan)
{
	for (size_t i = 0; i < plan->n_steps; i++) {
		const char *source = plan->steps[i].source;

		if (plan->steps[i].still && (mount(source, source, NULL, MS_BIND | MS_REC, NULL) < 0 ||
					     mount(NULL, source, NULL, MS_REC | MS_PRIVATE, NULL) < 0))
			return -errno;
	}
	return 0;
}

static uint64_t namespaces_of(const struct plan *plan)
{
	if (plan->isolation != ISOLATION_BWRAP)
		return 0;
	for (size_t i = 0; i < plan->n_steps; i++)
		if (plan->steps[i].still)
			return CLONE_NEWUSER | CLONE_NEWNS;
	return CLONE_NEWUSER;
}

static _Noreturn void child_main(const struct launch *l, int report, int control, int ready)
{
	const struct plan *plan = l->order->plan;
	struct init_report failed = { .kind = REPORT_FAILED, .exit_code = LAUNCH_FAILED };
	const char *what = "cannot enter the limits";
	int err, userns = -1;
	char byte;

	/* Until then we are nobody in our user namespace. At the end of the pipe netpawl is gone. */
	if (read(ready, &byte, 1) != 1)
		_exit(LAUNCH_FAILED);
	err = groups_enter(&l->groups);
	if (err == 0) {
		what = "cannot keep later mounts out of what is shown";
		err = binds_still(plan);
	}
	if (err == 0 && l->bwrap.as_root) {
		what = "cannot map root to a user of the session's own";
		userns = userns_nested(plan->identity->root);
		err = userns < 0 ? userns : 0;
	}
	if (err == 0 && plan->isolation == ISOLATION_NONE && plan->directory && chdir(plan->directory) < 0) {
		what = plan->directory;
		err = -errno;
	}
	if (err == 0) {
		what = "cannot pass on standard input and output";
		err = l->listener >= 0 ? streams_leave() : stdio_enter(&l->stdio);
	}
	/* Above 2 and so not among what was just closed; execute() closes the rest. */
	if (err == 0) {
		what = l->bwrap.program[0] ? l->bwrap.program : l->bwrap.init;
		err = bwrap_execute(&l->bwrap, report, control, l->written, userns);
	}
	failed.error = -err;
	snprintf(failed.text, sizeof(failed.text), "%.390s", what);
	if (write(report, &failed, sizeof(failed)) < 0)
		_exit(LAUNCH_FAILED);
	_exit(LAUNCH_FAILED);
}

/* What is in memory has its size from the plan. */
static bool disk_limit(struct launch *l)
{
	const struct plan *plan = l->order->plan;
	size_t len = strlen(l->groups.missing);
	const char *workspace = NULL;
	int r;

	for (size_t i = 0; i < plan->n_steps; i++)
		if (plan->steps[i].kind == STEP_BIND && !strcmp(plan->steps[i].dest, PLAN_WORKSPACE))
			workspace = plan->steps[i].source;
	r = plan->limits.disk && workspace ? quota_set(workspace, plan->limits.disk) : 0;
	if (r == 0)
		return true;
	if (!plan->limits.best_effort)
		return launch_problem(l->result, 0, "--disk cannot be set: %s: %s; --best-effort goes on without it",
				      workspace,
				      r == -EOPNOTSUPP ? "its file system has no project quotas" : strerror(-r));
	snprintf(l->groups.missing + len, sizeof(l->groups.missing) - len, "%s--disk (of the workspace)",
		 len ? ", " : "");
	return true;
}

bool launch_start(struct launch *l)
{
	_close_ int cgroup = -1, report = -1, control = -1, ready = -1, go = -1;
	uint64_t namespaces = namespaces_of(l->order->plan);
	char problem[BWRAP_PROBLEM_SIZE];
	pid_t pid;
	int err;

	_Static_assert(BWRAP_PROBLEM_SIZE >= GROUPS_PROBLEM_SIZE, "one buffer for both");
	if (!cgroup_open(l->order->cgroup, l->result, &cgroup))
		return false;
	if (groups_make(l->order->cgroup, &l->order->plan->limits, &l->groups, problem) < 0 ||
	    bwrap_prepare(l->order->plan, l->order->mask, &l->bwrap, problem) < 0)
		return launch_problem(l->result, 0, "%s", problem);
	if (!disk_limit(l))
		return false;
	memcpy(l->result->missing, l->groups.missing, sizeof(l->result->missing));
	l->written = memfd_create("netpawl-said", MFD_CLOEXEC);
	if (l->listener >= 0)
		control = fcntl(l->listener, F_DUPFD_CLOEXEC, 3);
	if (l->written < 0 || !pipe_make(O_NONBLOCK, &l->report, &report) ||
	    (control < 0 && !pipe_make(O_NONBLOCK, &control, &l->control)) || !pipe_make(0, &ready, &go))
		return launch_problem(l->result, errno, "cannot make a pipe");
	pid = sandbox_clone(cgroup, namespaces, &l->child);
	if (pid < 0)
		return launch_problem(l->result, errno, "cannot start a process in %s%s", l->order->cgroup,
				      namespaces && errno == ENOSPC ? " (is user.max_user_namespaces 0?)" : "");
	if (pid == 0) {
		close(go);
		child_main(l, report, control, ready);
	}
	err = namespaces ? userns_map(pid, MAP_ALL) : 0;
	if (err == 0 && write(go, "", 1) != 1)
		err = -errno;
	if (err < 0) {
		cleanup_close(&go); /* which ends it */
		waitpid(pid, NULL, 0);
		return launch_problem(l->result, -err, "cannot map the users of the sandbox");
	}
	if (l->order->plan->limits.timeout)
		l->ends_ms = now_ms() + l->order->plan->limits.timeout;
	return true;
}
