/* SPDX-License-Identifier: MIT */
/*
 * Looking at a cgroup that somebody else made, before it is adopted. Its processes may hold sockets that were
 * made elsewhere: those carry another cgroup for ever, so no hook of ours would see them, and destroying what
 * they are connected to would not keep them from connecting anew. So we say no, and name one.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/failpoint.h"
#include "base/fs.h"
#include "open_sockets.h"
#include "kernel/internal.h"
#include "vocab/limits.h"

static int adopt_refuse(struct gate_problem *problem, unsigned reason, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
static int adopt_refuse(struct gate_problem *problem, unsigned reason, const char *fmt, ...)
{
	va_list ap;

	problem->reason = reason;
	va_start(ap, fmt);
	vsnprintf(problem->text, sizeof(problem->text), fmt, ap);
	va_end(ap);
	return -EINVAL;
}

struct look {
	ino_t netns;	 /* where processes must live; 0: anywhere */
	uint64_t cookie; /* where their IP sockets must be, likewise */
	pid_t starting; /* this one has yet to become what it will be, and talks with its runtime; 0: none; GATE_STARTING_ALL */
	struct gate_problem *problem;
	const char *path;
};

/* -- sockets ------------------------------------------------------------------------ */

static int held_refuse(const struct gate_cgroup *cg, const struct np_open_socket *open, const struct look *look)
{
#define OBJECTION(name, text) [NP_OBJECT_##name] = (text),
	static const char *const texts[NP_N_OBJECTIONS] = { NP_OBJECTIONS(OBJECTION) };
#undef OBJECTION
	struct gate_problem *problem = look->problem;

	if (open->objection == NP_OBJECT_RING_USED)
		return adopt_refuse(problem, NP_R_HELD_SOCKETS,
				    "%s: process %u has used io_uring, and what is registered there cannot be seen",
				    cg->path, open->pid);
	if (open->objection == NP_OBJECT_TOO_MANY)
		return adopt_refuse(problem, NP_R_HELD_SOCKETS,
				    "%s: process %u has had more descriptors open than can be looked at", cg->path,
				    open->pid);
	return adopt_refuse(problem, NP_R_HELD_SOCKETS, "%s: descriptor %u of process %u is %s", cg->path, open->fd,
			    open->pid, open->objection < NP_N_OBJECTIONS ? texts[open->objection] : "unknown");
}

/* 0, or -EINVAL with the first objection. */
static int held_look(const struct gate_cgroup *cg, const struct look *look, int link)
{
	_close_ int fd = bpf_iter_create(link);
	struct np_open_socket open;
	ssize_t n;

	if (fd < 0)
		return adopt_refuse(look->problem, NP_R_FAILED, "%s: cannot look at its sockets: %s", cg->path,
				    strerror(errno));
	do {
		n = read(fd, &open, sizeof(open));
	} while (n < 0 && (errno == EAGAIN || errno == EINTR));
	if (n == 0)
		return 0;
	if (n != (ssize_t)sizeof(open))
		return adopt_refuse(look->problem, NP_R_FAILED, "%s: cannot read its sockets", cg->path);
	return held_refuse(cg, &open, look);
}

/*
 * A program that moves a socket from one descriptor to another all the time is missed by one look in ten, because it may move from
 * where the look has yet to come to where it has been. What it does not know is when that is: so it is looked for several times.
 */
static int held_check(struct kernel *kernel, const struct gate_cgroup *cg, const struct look *look)
{
	const struct np_open_query query = { .cgroup_id = cg->id,
					     .netns = look->cookie,
					     .depth = cg->depth,
					     .starting = look->starting == GATE_STARTING_ALL ? NP_STARTING_ALL
											     : (__u32)look->starting,
					     .most = failpoint_bound("NETPAWL_OPEN_FILES_MAX", NP_OPEN_FILES_MAX) };
	const __u32 zero = 0;
	_close_ int link = -1;
	int r = 0;

	if (bpf_map_update_elem(bpf_map__fd(kernel->skel->maps.np_open_query), &zero, &query, BPF_ANY) == 0)
		link = bpf_link_create(program_fd(kernel, kernel->skel->progs.np_open_sockets), 0, BPF_TRACE_ITER,
				       NULL);
	if (link < 0)
		return adopt_refuse(look->problem, NP_R_FAILED, "%s: cannot look at its sockets: %s", cg->path,
				    strerror(errno));
	for (unsigned i = 0; r == 0 && i < NP_OPEN_LOOKS; i++)
		r = held_look(cg, look, link);
	return r;
}

/* -- processes ------------------------------------------------------------------------- */

/* 1 when a thread has an io_uring mapped: with a thread of the kernel at its other end (SQPOLL), which may be that of a
 * process outside, writing to memory is all that it takes to send. *ret_seen: it has memory, which is that of its process.
 * -errno when that cannot be told. */
static int thread_maps_ring(pid_t thread, bool *ret_seen)
{
	char path[FS_PATH_SIZE];
	_free_ char *line = NULL;
	size_t size = 0;
	FILE *maps;
	int r = 0;

	fs_path(path, "/proc/%d/maps", (int)thread);
	maps = fopen(path, "re");
	if (!maps)
		return errno == ENOENT || errno == ESRCH ? 0 : -errno;
	while (r == 0 && getline(&line, &size, maps) > 0) {
		*ret_seen = true;
		r = strstr(line, "anon_inode:[io_uring]") != NULL;
	}
	if (r == 0 && ferror(maps) && errno != ESRCH)
		r = -EIO;
	fclose(maps);
	return r;
}

struct process_look {
	const struct look *look;
	pid_t pid;
	bool mapped; /* its memory was looked at */
};

static int thread_check(void *data, pid_t thread)
{
	struct process_look *process = data;
	const struct look *look = process->look;
	char path[FS_PATH_SIZE];
	struct stat netns;
	int r = 0;

	fs_path(path, "/proc/%d/ns/net", (int)thread);
	if (stat(path, &netns) < 0)
		return errno == ENOENT || errno == ESRCH ? 0 : -errno; /* gone */
	if (look->netns && netns.st_ino != look->netns)
		return adopt_refuse(look->problem, NP_R_FOREIGN_NETNS, "%s: process %d and others", look->path,
				    (int)process->pid);
	if (!process->mapped)
		r = thread_maps_ring(thread, &process->mapped);
	if (r > 0)
		return adopt_refuse(look->problem, NP_R_HELD_SOCKETS, "%s: process %d has an io_uring mapped",
				    look->path, (int)process->pid);
	return r;
}

static int process_check(void *data, pid_t pid)
{
	struct process_look process = { .look = data, .pid = pid };

	return process_each_thread(pid, thread_check, &process);
}

/* -- sandboxes above and below ------------------------------------------------------------ */

struct overlap {
	struct kernel *kernel;
	uint64_t self;
};

static int overlap_find(void *data, const char *path, uint64_t id)
{
	const struct overlap *overlap = data;
	struct np_sandbox sandbox;

	(void)path;
	return id != overlap->self &&
	       bpf_map_lookup_elem(bpf_map__fd(overlap->kernel->skel->maps.np_sandboxes), &id, &sandbox) == 0;
}

/* Asked of the kernel, not of the daemon's list: an entry lives as long as its cgroup. */
static int overlap_check(struct kernel *kernel, const struct gate_cgroup *cg, struct gate_problem *problem)
{
	struct overlap overlap = { kernel, cg->id };
	struct gate_cgroup above = *cg;
	int r = cgroup_each_below(cg, overlap_find, &overlap);

	if (r < 0)
		return adopt_refuse(problem, NP_R_FAILED, "%s: %s", cg->path, strerror(-r));
	while (r == 0 && above.depth > 1) {
		char path[FS_PATH_SIZE];

		*strrchr(above.path, '/') = '\0';
		memcpy(path, above.path, sizeof(path));
		if (cgroup_look(kernel->mount, path, &above) < 0)
			return adopt_refuse(problem, NP_R_FAILED, "%s: cannot look above it", cg->path);
		r = overlap_find(&overlap, above.path, above.id);
	}
	return r ? adopt_refuse(problem, NP_R_BAD_CGROUP, "%s: another sandbox lies above or below it", cg->path) : 0;
}

/* -- what is netpawl's own ------------------------------------------------------------------- */

static bool is_at_or_below(const char *path, const char *top)
{
	size_t len = strlen(top);

	return !strncmp(path, top, len) && (!path[len] || path[len] == '/');
}

static int is_this(void *data, uint64_t id)
{
	return id == *(const uint64_t *)data;
}

/* Always, whether or not somebody runs there: a later inspector would start in a sandbox, and a daemon that is in one
 * would refuse its own clients. */
static int own_check(struct kernel *kernel, const struct gate_cgroup *cg, struct gate_problem *problem)
{
	const struct {
		const char *path, *name;
	} own[] = {
		{ kernel->slice.path, "netpawl's own slice" },
		{ kernel->inspector.path, "the inspector's cgroup" },
	};
	uint64_t id = cg->id;
	int r;

	for (size_t i = 0; i < ARRAY_SIZE(own); i++) {
		if (is_at_or_below(cg->path, own[i].path))
			return adopt_refuse(problem, NP_R_BAD_CGROUP, "%s: inside %s", cg->path, own[i].name);
		if (is_at_or_below(own[i].path, cg->path))
			return adopt_refuse(problem, NP_R_BAD_CGROUP, "%s: %s lies below it", cg->path, own[i].name);
	}
	r = cgroup_each_above(kernel->mount, getpid(), is_this, &id);
	if (r < 0)
		return adopt_refuse(problem, NP_R_FAILED, "%s: cannot tell where netpawld runs: %s", cg->path,
				    strerror(-r));
	return r ? adopt_refuse(problem, NP_R_BAD_CGROUP, "%s: netpawld itself runs in it", cg->path) : 0;
}

static int look_fail(const struct look *look, int r)
{
	return look->problem->reason ? r
				     : adopt_refuse(look->problem, NP_R_FAILED, "%s: cannot look at its processes: %s",
						    look->path, strerror(-r));
}

static int look_at(struct kernel *kernel, const struct gate_cgroup *cg, struct look *look)
{
	int r = cgroup_each_process(cg, process_check, look);

	if (r < 0)
		return look_fail(look, r);
	return held_check(kernel, cg, look);
}

int gate_cgroup_look(void *ctx, const struct gate_cgroup *cg, struct gate_problem *ret_problem)
{
	return look_at(ctx, cg, &(struct look){ .problem = ret_problem, .path = cg->path });
}

/* One network namespace for all of them: its home, once that is known; else where the first process lives. In the host's, sockets
 * may be in others that its processes have made: nothing leads out of those. */
static int netns_choose(struct kernel *kernel, const struct gate_cgroup *cg, struct look *look)
{
	const struct kernel_netns *home = kernel_netns_find(kernel, cg->id);
	_close_ int fd = -1;
	struct stat st;
	int r = home ? 0 : kernel_netns_look(kernel, cg, &look->cookie, &fd);

	if (r < 0)
		return r;
	if (home || fd >= 0) {
		r = fstat(home ? home->fd : fd, &st);
		look->cookie = home ? home->cookie : look->cookie;
	} else {
		r = stat("/proc/self/ns/net", &st);
		look->cookie = 0;
	}
	look->netns = st.st_ino;
	return r < 0 ? -errno : 0;
}

int gate_cgroup_inspect(void *ctx, const char *path, pid_t starting, struct gate_cgroup *ret,
			struct gate_problem *ret_problem)
{
	struct kernel *kernel = ctx;
	struct look look = { .starting = starting, .problem = ret_problem, .path = path };
	struct gate_cgroup cg;
	int r = cgroup_look(kernel->mount, path, &cg);

	if (r < 0)
		return adopt_refuse(ret_problem, NP_R_BAD_CGROUP, "%s: %s", path,
				    r == -EXDEV ? "it has to be below the cgroup v2 mount, and not that itself"
						: strerror(-r));
	if (cg.depth >= NP_DEPTH_MAX)
		return adopt_refuse(ret_problem, NP_R_BAD_CGROUP, "%s: deeper than %d levels", path, NP_DEPTH_MAX - 1);
	r = own_check(kernel, &cg, ret_problem);
	if (r < 0)
		return r;
	if (!kernel->features.unix_hooks && !kernel->features.lsm)
		return adopt_refuse(
			ret_problem, NP_R_UNSUPPORTED,
			"%s: this kernel has no hook for unix sockets, so an adopted cgroup could use the host's",
			path);
	r = overlap_check(kernel, &cg, ret_problem);
	if (r < 0)
		return r;
	r = netns_choose(kernel, &cg, &look);
	r = r < 0 ? look_fail(&look, r) : look_at(kernel, &cg, &look);
	if (r < 0)
		return r;
	*ret = cg;
	return 0;
}
