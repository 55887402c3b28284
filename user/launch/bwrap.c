/* SPDX-License-Identifier: MIT */
#include "launch/bwrap.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/cleanup.h"
#include "launch/seccomp.h"
#include "vocab/limits.h"

enum { WORDS = ORDERS_FREE, FILTER, USERNS, FILES }; /* descriptors after those of netpawl-init */

__attribute__((format(printf, 3, 4))) static int fail(char *problem, int error, const char *fmt, ...)
{
	size_t len;
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(problem, BWRAP_PROBLEM_SIZE, fmt, ap);
	va_end(ap);
	len = strlen(problem);
	snprintf(problem + len, BWRAP_PROBLEM_SIZE - len, ": %s", strerror(-error));
	return error;
}

/* A file in memory with these bytes. */
static int memory_file(const char *name, const void *data, size_t len)
{
	_close_ int fd = memfd_create(name, MFD_CLOEXEC);
	int r = fd < 0 ? -errno : fs_write_all(fd, data, len);

	if (r == 0 && lseek(fd, 0, SEEK_SET) < 0)
		r = -errno;
	return r < 0 ? r : take_fd(fd);
}

static int fd_add(struct bwrap *b, int fd)
{
	if (fd < 0)
		return fd;
	b->fds[b->n_fds++] = fd;
	return 0;
}

/* -- programs --------------------------------------------------------------------- */

static int program_find(const char *name, char path[static FS_PATH_SIZE])
{
	const char *dirs = getenv("PATH");

	for (; dirs && *dirs; dirs += strcspn(dirs, ":"), dirs += *dirs == ':')
		if (*dirs == '/' && fs_path(path, "%.*s/%s", (int)strcspn(dirs, ":"), dirs, name) == 0 &&
		    access(path, X_OK) == 0)
			return 0;
	return -ENOENT;
}

/* netpawl-init is installed beside netpawl, in bin; netpawl-run, in sbin, finds it there. */
static int init_open(struct bwrap *b, char *problem)
{
	int fd, r = fs_beside(b->init, "netpawl-init");

	if (r == 0 && access(b->init, X_OK) < 0)
		r = fs_beside(b->init, "../bin/netpawl-init");
	if (r < 0)
		return fail(problem, r, "/proc/self/exe");
	/* Whoever gets hold of the program from inside (a script whose interpreter is /proc/self/exe is enough) and is root
	 * must not write it, for every other sandbox runs it. */
	fd = fs_open_apart(b->init);
	return fd < 0 ? fail(problem, fd, "%s", b->init) : fd_add(b, fd);
}

/* -- orders ------------------------------------------------------------------------- */

static int checks_append(const struct plan *plan, struct buf *out, uint32_t *ret_n)
{
	for (size_t i = 0; i < plan->n_steps; i++) {
		const struct step *step = &plan->steps[i];
		struct order_check check = { .device = step->device, .inode = step->inode };

		if (!step->inode)
			continue;
		if (++*ret_n > ORDER_CHECKS_MAX)
			return -E2BIG;
		snprintf(check.path, sizeof(check.path), "%s", step->dest);
		buf_append(out, &check, sizeof(check));
	}
	return buf_error(out);
}

static int orders_write(const struct plan *plan, const sigset_t *mask)
{
	_buf_ struct buf file = BUF_INIT(sizeof(struct orders) + ORDER_CHECKS_MAX * sizeof(struct order_check));
	struct orders orders = { .size = sizeof(orders),
				 .confined = plan->isolation == ISOLATION_BWRAP,
				 .kept = plan->kept,
				 .mask = *mask };
	const struct identity *id = plan->identity;
	int r;

	if (id) {
		orders.has_identity = true;
		orders.uid = id->uid;
		orders.gid = id->gid;
		orders.n_groups = (uint32_t)id->ngroups;
		memcpy(orders.groups, id->groups, (size_t)id->ngroups * sizeof(id->groups[0]));
	}
	buf_append(&file, &orders, sizeof(orders));
	r = checks_append(plan, &file, &orders.n_checks);
	if (r < 0)
		return r;
	memcpy(file.data, &orders, sizeof(orders)); /* now with their number */
	return memory_file("netpawl-orders", file.data, file.len);
}

/* -- bubblewrap ------------------------------------------------------------------------ */

static int words_write(const struct plan *plan)
{
	_buf_ struct buf words = BUF_INIT(NP_PLAN_MEMORY);

	plan_words(plan, FILES, &words);
	return buf_error(&words) ? buf_error(&words) : memory_file("netpawl-words", words.data, words.len);
}

static int filter_write(void)
{
	cleanup(filter_freep) struct filter *filter = NULL;
	_close_ int fd = -1;
	int r = filter_new(&filter);

	if (r < 0)
		return r;
	fd = memory_file("netpawl-filter", "", 0);
	r = fd < 0 ? fd : filter_export(filter, fd);
	if (r == 0 && lseek(fd, 0, SEEK_SET) < 0)
		r = -errno;
	return r < 0 ? r : take_fd(fd);
}

static int files_write(const struct plan *plan, struct bwrap *b)
{
	for (size_t i = 0; i < plan->n_steps; i++) {
		const struct buf *file = plan->steps[i].file;
		int r;

		if (plan->steps[i].kind != STEP_FILE)
			continue;
		if (b->n_fds == ARRAY_SIZE(b->fds))
			return -E2BIG;
		r = fd_add(b, memory_file("netpawl-file", file->data, file->len));
		if (r < 0)
			return r;
	}
	return 0;
}

static int bwrap_add(const struct plan *plan, struct bwrap *b, char *problem)
{
	int r = program_find("bwrap", b->program);

	if (r < 0) {
		snprintf(problem, BWRAP_PROBLEM_SIZE,
			 "bubblewrap (bwrap) is not in PATH: install it, or bring your own isolation with --isolation "
			 "none");
		return r;
	}
	r = fd_add(b, words_write(plan));
	if (r < 0)
		return fail(problem, r, "cannot write down the plan");
	r = fd_add(b, filter_write());
	if (r < 0)
		return fail(problem, r, "cannot build the system call filter");
	b->as_root = identity_has_root(plan->identity);
	b->fds[b->n_fds++] = -1;
	r = files_write(plan, b);
	return r < 0 ? fail(problem, r, "cannot write a file for the sandbox") : 0;
}

static int argv_make(const struct plan *plan, struct bwrap *b)
{
	static char words[][12] = { "--args", "8", "--seccomp", "9", "--userns2", "10", "--" };
	static char init[] = "/proc/self/fd/6";
	const size_t last = ARRAY_SIZE(words) - 1, end = b->as_root ? last : last - 2;
	size_t n = 0, commands = 0;

	_Static_assert(WORDS == 8 && FILTER == 9 && USERNS == 10 && ORDERS_INIT == 6, "as the words say");
	while (plan->argv[commands])
		commands++;
	b->argv = calloc(ARRAY_SIZE(words) + commands + 3, sizeof(*b->argv));
	if (!b->argv)
		return -ENOMEM;
	if (b->program[0]) {
		b->argv[n++] = b->program;
		for (size_t i = 0; i < end; i++)
			b->argv[n++] = words[i];
		b->argv[n++] = words[last];
		b->argv[n++] = init;
	} else {
		b->argv[n++] = b->init;
	}
	memcpy(b->argv + n, plan->argv, (commands + 1) * sizeof(*b->argv));
	return 0;
}

int bwrap_prepare(const struct plan *plan, const sigset_t *mask, struct bwrap *ret,
		  char problem[static BWRAP_PROBLEM_SIZE])
{
	static char *nothing[] = { NULL }; /* bubblewrap itself needs no environment; the command's is in its words */
	int r;

	*ret = (struct bwrap){ .environ = plan->isolation == ISOLATION_BWRAP ? nothing : plan->environ };
	ret->fds[ret->n_fds++] = -1;
	ret->fds[ret->n_fds++] = -1;
	r = fd_add(ret, orders_write(plan, mask));
	if (r < 0)
		return fail(problem, r, "cannot write down the orders");
	r = init_open(ret, problem);
	if (r < 0)
		return r;
	ret->fds[ret->n_fds++] = -1;
	if (plan->isolation == ISOLATION_BWRAP) {
		r = bwrap_add(plan, ret, problem);
		if (r < 0)
			return r;
	}
	r = argv_make(plan, ret);
	return r < 0 ? fail(problem, r, "cannot make the command line") : 0;
}

void bwrap_free(struct bwrap *bwrap)
{
	for (size_t i = 0; i < bwrap->n_fds; i++)
		cleanup_close(&bwrap->fds[i]);
	free(bwrap->argv);
	*bwrap = (struct bwrap){ 0 };
}

int bwrap_execute(const struct bwrap *b, int report, int control, int written, int userns)
{
	int fds[BWRAP_FDS], above[BWRAP_FDS], error;

	memcpy(fds, b->fds, sizeof(fds));
	fds[0] = report;
	fds[1] = control;
	fds[ORDERS_ERROR - 3] = STDERR_FILENO;
	if (b->program[0])
		fds[USERNS - 3] = userns;
	/* Out of the way first: the numbers that they get may be taken by others of them. */
	for (size_t i = 0; i < b->n_fds; i++) {
		above[i] = fds[i] < 0 ? -1 : fcntl(fds[i], F_DUPFD_CLOEXEC, 3 + BWRAP_FDS);
		if (fds[i] >= 0 && above[i] < 0)
			return -errno;
	}
	error = fcntl(written, F_DUPFD_CLOEXEC, 3 + BWRAP_FDS);
	if (error < 0)
		return -errno;
	for (size_t i = 0; i < b->n_fds; i++) {
		if (above[i] < 0)
			close(3 + (int)i); /* whatever was there is not the sandbox's */
		else if (dup2(above[i], 3 + (int)i) < 0)
			return -errno;
	}
	if (dup2(error, STDERR_FILENO) < 0)
		return -errno;
	if (close_range(3 + (unsigned)b->n_fds, ~0u, 0) < 0)
		return -errno;
	/* A terminal that was opened without O_NOCTTY and the like are the caller's affair; the flags are not. */
	for (int fd = 0; fd < 3; fd++)
		if (fcntl(fd, F_SETFD, 0) < 0)
			return -errno;
	execve(b->program[0] ? b->program : b->init, b->argv, b->environ);
	return -errno;
}
