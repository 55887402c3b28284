/* SPDX-License-Identifier: MIT */
#include "launch/handover.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "base/cleanup.h"
#include "base/fs.h"
#include "launch/seccomp.h"

__attribute__((format(printf, 3, 4))) static int fail(char *problem, int error, const char *fmt, ...)
{
	size_t len;
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(problem, HANDOVER_PROBLEM_SIZE, fmt, ap);
	va_end(ap);
	len = strlen(problem);
	snprintf(problem + len, HANDOVER_PROBLEM_SIZE - len, ": %s", strerror(-error));
	return error;
}

/* netpawl-init is installed beside netpawl, in bin; netpawl-run, in sbin, finds it there. */
static int program_open(struct handover *h, char *problem)
{
	char path[FS_PATH_SIZE];
	int r = fs_beside(path, "netpawl-init");

	if (r == 0 && access(path, X_OK) < 0)
		r = fs_beside(path, "../bin/netpawl-init");
	if (r < 0)
		return fail(problem, r, "/proc/self/exe");
	/* Whoever gets hold of the program from inside (a script whose interpreter is /proc/self/exe is enough) and is root
	 * must not write it, for every other sandbox runs it. */
	h->program = fs_mount_apart(path);
	return h->program < 0 ? fail(problem, h->program, "%s", path) : 0;
}

static int orders_write(const struct plan *plan, const sigset_t *mask)
{
	struct orders orders = {
		.size = sizeof(orders), .confined = plan->isolation == ISOLATION_FULL, .kept = plan->kept, .mask = *mask
	};
	_close_ int fd = memfd_create("netpawl-orders", MFD_CLOEXEC);
	const struct identity *id = plan->identity;
	int r;

	if (id) {
		orders.has_identity = true;
		orders.uid = id->uid;
		orders.gid = id->gid;
		orders.n_groups = (uint32_t)id->ngroups;
		memcpy(orders.groups, id->groups, (size_t)id->ngroups * sizeof(id->groups[0]));
	}
	r = fd < 0 ? -errno : fs_write_all(fd, &orders, sizeof(orders));
	return r < 0 ? r : take_fd(fd);
}

static int argv_make(const struct plan *plan, struct handover *h)
{
	static char init[] = "netpawl-init";
	size_t commands = 0;

	while (plan->argv[commands])
		commands++;
	h->argv = calloc(commands + 2, sizeof(*h->argv));
	if (!h->argv)
		return -ENOMEM;
	h->argv[0] = init;
	memcpy(h->argv + 1, plan->argv, (commands + 1) * sizeof(*h->argv));
	return 0;
}

int handover_prepare(const struct plan *plan, const sigset_t *mask, struct handover *ret,
		     char problem[static HANDOVER_PROBLEM_SIZE])
{
	int r;

	*ret = (struct handover){ .environ = plan->environ,
				  .program = -1,
				  .filtered = plan->isolation == ISOLATION_FULL };
	ret->orders = orders_write(plan, mask);
	if (ret->orders < 0)
		return fail(problem, ret->orders, "cannot write down the orders");
	r = program_open(ret, problem);
	if (r < 0)
		return r;
	r = argv_make(plan, ret);
	return r < 0 ? fail(problem, r, "cannot make the command line") : 0;
}

void handover_free(struct handover *h)
{
	cleanup_close(&h->orders);
	cleanup_close(&h->program);
	free(h->argv);
	*h = (struct handover){ .orders = -1, .program = -1 };
}

/* The three that netpawl-init needs to become who it should be pass an exec, also of one who is no root in its namespace. It
 * gives them up, with all others that a root gets at an exec, before there is a second process. */
static int caps_pass(void)
{
	static const int needed[] = { CAP_SETUID, CAP_SETGID, CAP_SETPCAP };
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2] = { 0 };

	for (size_t i = 0; i < ARRAY_SIZE(needed); i++)
		data[0].effective |= 1U << needed[i];
	data[0].permitted = data[0].inheritable = data[0].effective;
	if (syscall(SYS_capset, &header, data) < 0)
		return -errno;
	for (size_t i = 0; i < ARRAY_SIZE(needed); i++)
		if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, needed[i], 0, 0) < 0)
			return -errno;
	return 0;
}

int handover_execute(const struct handover *h, int report, int control)
{
	const int fds[] = { report, control, h->orders, h->program };
	int above[ARRAY_SIZE(fds)], r;

	_Static_assert(ORDERS_REPORT == 3 && ORDERS_FREE == 3 + ARRAY_SIZE(fds), "one for each");
	/* Out of the way first: the numbers that they get may be taken by others of them. */
	for (size_t i = 0; i < ARRAY_SIZE(fds); i++) {
		above[i] = fcntl(fds[i], F_DUPFD_CLOEXEC, ORDERS_FREE);
		if (above[i] < 0)
			return -errno;
	}
	for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
		if (dup2(above[i], ORDERS_REPORT + (int)i) < 0)
			return -errno;
	if (close_range(ORDERS_FREE, ~0U, 0) < 0)
		return -errno;
	/* A terminal that was opened without O_NOCTTY and the like are the caller's affair; the flags are not. */
	for (int fd = 0; fd < 3; fd++)
		if (fcntl(fd, F_SETFD, 0) < 0)
			return -errno;
	r = h->filtered ? caps_pass() : 0;
	if (r == 0 && h->filtered)
		r = filter_load();
	if (r < 0)
		return r;
	execveat(ORDERS_INIT, "", h->argv, h->environ, AT_EMPTY_PATH);
	return -errno;
}
