/* SPDX-License-Identifier: MIT */
/*
 * Adopting a cgroup that somebody else made. Its processes may hold sockets that
 * were opened elsewhere: those carry another cgroup, so no hook of ours sees them.
 * TCP and UDP ones are destroyed; others cannot be, and then we say no.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

#include "base/fs.h"
#include "kernel/diag.h"
#include "kernel/internal.h"

#define PROC_NET_MAX (64u << 20) /* bytes of one /proc/net table */

static int refuse(struct gate_problem *problem, unsigned reason, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
static int refuse(struct gate_problem *problem, unsigned reason, const char *fmt, ...)
{
	va_list ap;

	problem->reason = reason;
	va_start(ap, fmt);
	vsnprintf(problem->text, sizeof(problem->text), fmt, ap);
	va_end(ap);
	return -EINVAL;
}

/* Numbers collected while walking: socket inodes, or cgroup ids. */
struct numbers {
	uint64_t *of;
	size_t n, room;
};

static int numbers_add(struct numbers *set, uint64_t number)
{
	if (set->n == set->room) {
		size_t room = set->room ? set->room * 2 : 256;
		uint64_t *of = reallocarray(set->of, room, sizeof(*of));

		if (!of)
			return -ENOMEM;
		set->of = of;
		set->room = room;
	}
	set->of[set->n++] = number;
	return 0;
}

static bool numbers_have(const struct numbers *set, uint64_t number)
{
	for (size_t i = 0; i < set->n; i++)
		if (set->of[i] == number)
			return true;
	return false;
}

static void numbers_free(struct numbers *set)
{
	free(set->of);
}
#define _numbers_ cleanup(numbers_free)

/* Socket inodes that a process holds. A process that is gone holds nothing. */
static int collect_sockets(void *data, pid_t pid)
{
	char path[64];
	_closedir_ DIR *dir = NULL;

	snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
	dir = opendir(path);
	for (struct dirent *e; dir && (e = readdir(dir));) {
		char target[64];
		ssize_t n = readlinkat(dirfd(dir), e->d_name, target, sizeof(target) - 1);

		if (n <= 0)
			continue;
		target[n] = '\0';
		if (!strncmp(target, "socket:[", 8) && numbers_add(data, strtoull(target + 8, NULL, 10)) < 0)
			return -ENOMEM;
	}
	return 0;
}

/* Adds the inodes of one /proc/net table. The inode's column differs from table to table. */
static int collect_table(const char *path, unsigned column, struct numbers *set)
{
	_free_ char *text = NULL;
	char *save = NULL;
	int r = fs_read_at(AT_FDCWD, path, PROC_NET_MAX, &text);

	if (r < 0)
		return r == -ENOENT ? 0 : r;
	strtok_r(text, "\n", &save); /* the heading */
	for (char *line; (line = strtok_r(NULL, "\n", &save));) {
		char *rest = line, *word = NULL;

		for (unsigned i = 0; i <= column; i++)
			word = strsep(&rest, " "), word = word && !*word ? (i--, word) : word;
		if (word && numbers_add(set, strtoull(word, NULL, 10)) < 0)
			return -ENOMEM;
	}
	return 0;
}

/* Inodes of the sockets that we can govern, or that cannot leave the host by themselves. */
static int collect_known(struct numbers *set)
{
	static const struct {
		const char *path;
		unsigned column;
	} tables[] = {
		{ "/proc/net/tcp", 9 },	 { "/proc/net/tcp6", 9 }, { "/proc/net/udp", 9 },
		{ "/proc/net/udp6", 9 }, { "/proc/net/unix", 6 }, { "/proc/net/netlink", 9 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(tables); i++) {
		int r = collect_table(tables[i].path, tables[i].column, set);

		if (r < 0)
			return r;
	}
	return 0;
}

static int find_foreign_netns(void *data, pid_t pid)
{
	const struct stat *ours = data;
	char path[64];
	struct stat theirs;

	snprintf(path, sizeof(path), "/proc/%d/ns/net", (int)pid);
	if (stat(path, &theirs) < 0)
		return 0; /* gone */
	return theirs.st_ino == ours->st_ino ? 0 : (int)pid;
}

static int check_sockets(const struct gate_cgroup *cg, struct gate_problem *problem)
{
	_numbers_ struct numbers held = { 0 }, known = { 0 };
	int r = cgroup_each_process(cg, collect_sockets, &held);

	if (r == 0)
		r = collect_known(&known);
	if (r < 0)
		return refuse(problem, NP_R_FAILED, "%s: cannot look at its sockets: %s", cg->path, strerror(-r));
	for (size_t i = 0; i < held.n; i++)
		/* An unbound TCP or UDP socket is in no table; it has no way out before a hook sees it. But so is
		 * a raw or packet socket of another kind, and those tables exist: ask them. */
		if (!numbers_have(&known, held.of[i])) {
			static const char *const bad[] = { "/proc/net/raw", "/proc/net/raw6", "/proc/net/packet",
							   "/proc/net/icmp", "/proc/net/icmp6" };
			static const unsigned column[] = { 9, 9, 8, 9, 9 };

			for (size_t t = 0; t < ARRAY_SIZE(bad); t++) {
				_numbers_ struct numbers table = { 0 };

				if (collect_table(bad[t], column[t], &table) < 0 || numbers_have(&table, held.of[i]))
					return refuse(problem, NP_R_HELD_SOCKETS, "%s: socket %llu is listed in %s",
						      cg->path, (unsigned long long)held.of[i], bad[t]);
			}
		}
	return 0;
}

int adopt_inspect(struct kernel *kernel, const char *path, struct gate_cgroup *ret, struct gate_problem *ret_problem)
{
	size_t slice_len = strlen(kernel->slice.path);
	struct gate_cgroup cg;
	struct stat ours;
	int r = cgroup_look(kernel->mount, path, &cg);

	if (r < 0)
		return refuse(ret_problem, NP_R_BAD_CGROUP, "%s: %s", path,
			      r == -EXDEV ? "not below the cgroup v2 mount" : strerror(-r));
	if (cg.depth >= NP_DEPTH_MAX)
		return refuse(ret_problem, NP_R_BAD_CGROUP, "%s: deeper than %d levels", path, NP_DEPTH_MAX - 1);
	if (!strncmp(cg.path, kernel->slice.path, slice_len) && (!cg.path[slice_len] || cg.path[slice_len] == '/'))
		return refuse(ret_problem, NP_R_BAD_CGROUP, "%s: inside netpawl's own slice", path);
	if (!strncmp(kernel->slice.path, cg.path, strlen(cg.path)) && kernel->slice.path[strlen(cg.path)] == '/')
		return refuse(ret_problem, NP_R_BAD_CGROUP, "%s: netpawl's own slice lies below it", path);
	if (stat("/proc/self/ns/net", &ours) < 0)
		return -errno;
	r = cgroup_each_process(&cg, find_foreign_netns, &ours);
	if (r < 0)
		return refuse(ret_problem, NP_R_FAILED, "%s: cannot list its processes: %s", path, strerror(-r));
	if (r > 0)
		return refuse(ret_problem, NP_R_FOREIGN_NETNS, "%s: process %d", path, r);
	r = check_sockets(&cg, ret_problem);
	if (r < 0)
		return r;
	*ret = cg;
	return 0;
}

struct foreign {
	struct numbers held, ids;
	unsigned cut;
};

static int collect_cgroup(void *data, const char *path, uint64_t id)
{
	(void)path;
	return numbers_add(data, id);
}

static int destroy_foreign(void *data, const struct diag_socket *socket)
{
	struct foreign *foreign = data;

	if (socket->inode && numbers_have(&foreign->held, socket->inode) &&
	    !numbers_have(&foreign->ids, socket->cgroup_id))
		foreign->cut += diag_destroy(socket) == 0;
	return 0;
}

int adopt_cut_foreign(struct kernel *kernel, const struct gate_cgroup *cg, unsigned *ret_cut)
{
	struct foreign foreign = { 0 };
	int r = cgroup_each_process(cg, collect_sockets, &foreign.held);

	(void)kernel;
	if (r == 0)
		r = cgroup_each_below(cg, collect_cgroup, &foreign.ids);
	if (r == 0 && foreign.held.n)
		r = diag_each(destroy_foreign, &foreign);
	*ret_cut = foreign.cut;
	numbers_free(&foreign.held);
	numbers_free(&foreign.ids);
	return r;
}
