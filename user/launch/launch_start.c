/* SPDX-License-Identifier: MIT */
/* Up to the first process of a sandbox. */
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/sched.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/clone.h"
#include "launch/launch_internal.h"
#include "launch/quota.h"
#include "launch/root.h"

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
 * netns: where the child is to be born; -1: here. It cannot go there by itself: the namespace belongs to the host's users, so
 * that nobody in the sandbox can change anything of it, and the child is in a user namespace of its own. So we go, and come back.
 * 0, and in the child *ret is 0; or -errno.
 */
static int sandbox_clone(int cgroup, uint64_t namespaces, int netns, int *ret_pidfd, pid_t *ret)
{
	_close_ int home = netns < 0 ? -1 : open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	int r;

	if (netns >= 0 && (home < 0 || setns(netns, CLONE_NEWNET) < 0))
		return -errno;
	r = clone_into_fd(cgroup, namespaces, ret_pidfd, ret);
	/* Whoever cannot come back does no harm: what we still have to say goes to a unix socket with a path. */
	if ((r < 0 || *ret) && home >= 0)
		(void)!setns(home, CLONE_NEWNET);
	return r;
}

/* The sandbox's own network namespace, if it has one: the file is the daemon's, and may be another's by now. */
static bool netns_open(const struct launch_order *order, struct launch_result *result, int *ret_fd)
{
	_close_ int fd = order->netns ? open(order->netns, O_RDONLY | O_CLOEXEC) : -1;
	struct stat st;

	*ret_fd = -1;
	if (!order->netns)
		return true;
	if (fd < 0 || fstat(fd, &st) < 0 || st.st_ino != order->netns_inode)
		return launch_problem(result, fd < 0 ? errno : 0,
				      "the sandbox's network is gone: was netpawld started anew meanwhile?");
	*ret_fd = take_fd(fd);
	return true;
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
 * namespace. */
#define MAP_ALL "0 0 4294967295"

/*
 * A command that is root inside must not be the host's root outside, whose files (keys, password hashes) it would own,
 * capabilities or not. The process that makes the sandbox's root has to be the host's root, to see and mount what is
 * shown. So a second user namespace is entered at the end, in which root is the session's own user and the host's root
 * is nobody.
 */
static int userns_enter(uid_t root)
{
	char map[128], path[64];
	pid_t pid = (pid_t)syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0);
	_close_ int fd = -1;
	int r;

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
		r = fd < 0 || setns(fd, CLONE_NEWUSER) < 0 ? -errno : 0;
	}
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	return r;
}

/* Not the cgroup's: it would have the launcher's cgroup as its root. */
#define NAMESPACES (CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS)

/* In the sandbox's cgroup and namespaces: its name, its root, its users. 0, or -errno with what it was in words. */
static int sandbox_enter(const struct plan *plan, char problem[static ROOT_PROBLEM_SIZE])
{
	static const char name[] = "localhost";
	int r;

	if (unshare(CLONE_NEWCGROUP) < 0 || sethostname(name, strlen(name)) < 0) {
		snprintf(problem, ROOT_PROBLEM_SIZE, "cannot make a namespace: %s", strerror(errno));
		return -EINVAL;
	}
	r = root_build(plan, problem);
	if (r < 0 || !identity_has_root(plan->identity))
		return r;
	r = userns_enter(plan->identity->root);
	if (r < 0)
		snprintf(problem, ROOT_PROBLEM_SIZE, "cannot map root to a user of the session's own: %s",
			 strerror(-r));
	return r < 0 ? -EINVAL : 0;
}

static _Noreturn void child_fail(int report, int error, const char *what)
{
	struct init_report failed = { .kind = REPORT_FAILED, .exit_code = LAUNCH_FAILED, .error = error };

	snprintf(failed.text, sizeof(failed.text), "%s", what);
	if (write(report, &failed, sizeof(failed)) < 0)
		_exit(LAUNCH_FAILED);
	_exit(LAUNCH_FAILED);
}

static _Noreturn void child_main(const struct launch *l, int report, int control, int ready)
{
	const struct plan *plan = l->order->plan;
	char problem[ROOT_PROBLEM_SIZE];
	int err;
	char byte;

	/* Until then we are nobody in our user namespace. At the end of the pipe netpawl is gone. */
	if (read(ready, &byte, 1) != 1)
		_exit(LAUNCH_FAILED);
	err = groups_enter(&l->groups);
	if (err < 0)
		child_fail(report, -err, "cannot enter the limits");
	if (plan->isolation == ISOLATION_NONE && plan->directory && chdir(plan->directory) < 0)
		child_fail(report, errno, plan->directory);
	/* Before the host's files are out of sight: what is handed over may be one of them. */
	err = l->listener >= 0 ? streams_leave() : stdio_enter(&l->stdio);
	if (err < 0)
		child_fail(report, -err, "cannot pass on standard input and output");
	err = plan->isolation == ISOLATION_FULL ? sandbox_enter(plan, problem) : 0;
	if (err < 0)
		child_fail(report, err == -EAGAIN ? EAGAIN : 0, problem);
	err = handover_execute(&l->handover, report, control);
	child_fail(report, -err, "netpawl-init cannot be started");
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
	_close_ int cgroup = -1, netns = -1, report = -1, control = -1, ready = -1, go = -1;
	const uint64_t namespaces = l->order->plan->isolation == ISOLATION_FULL ? NAMESPACES : 0;
	char problem[HANDOVER_PROBLEM_SIZE];
	pid_t pid = -1;
	int err;

	_Static_assert(HANDOVER_PROBLEM_SIZE >= GROUPS_PROBLEM_SIZE, "one buffer for both");
	if (!cgroup_open(l->order->cgroup, l->result, &cgroup) || !netns_open(l->order, l->result, &netns))
		return false;
	if (groups_make(l->order->cgroup, &l->order->plan->limits, &l->groups, problem) < 0 ||
	    handover_prepare(l->order->plan, l->order->mask, &l->handover, problem) < 0)
		return launch_problem(l->result, 0, "%s", problem);
	if (!disk_limit(l))
		return false;
	memcpy(l->result->missing, l->groups.missing, sizeof(l->result->missing));
	if (l->listener >= 0)
		control = fcntl(l->listener, F_DUPFD_CLOEXEC, 3);
	if (!pipe_make(O_NONBLOCK, &l->report, &report) ||
	    (control < 0 && !pipe_make(O_NONBLOCK, &control, &l->control)) || !pipe_make(0, &ready, &go))
		return launch_problem(l->result, errno, "cannot make a pipe");
	err = sandbox_clone(cgroup, namespaces, netns, &l->child, &pid);
	if (err < 0)
		return launch_problem(l->result, -err, "cannot start a process in %s%s", l->order->cgroup,
				      namespaces && err == -ENOSPC ? " (is user.max_user_namespaces 0?)" : "");
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
