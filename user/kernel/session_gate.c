/* SPDX-License-Identifier: MIT */
/* The interface that sessions use: session/gate.h. */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "base/fs.h"
#include "kernel/internal.h"

static int gate_cgroup_make(void *ctx, const char *id, struct gate_cgroup *ret)
{
	struct kernel *kernel = ctx;
	char path[FS_PATH_SIZE];
	int r;

	if (fs_path(path, "%s/%s", kernel->slice.path, id) < 0)
		return -ENAMETOOLONG;
	/* In the slice that we hold: one that was made again in its place has no programs. */
	if (mkdirat(kernel->slice_fd, id, 0755) < 0 && errno != EEXIST)
		return errno == ENOENT ? -ESTALE : -errno;
	r = cgroup_look(kernel->mount, path, ret);
	if (r == 0)
		watch_add(kernel, ret);
	return r;
}

static int gate_cgroup_find(void *ctx, const char *path, struct gate_cgroup *ret)
{
	struct kernel *kernel = ctx;
	int r = cgroup_look(kernel->mount, path, ret);

	if (r == 0)
		watch_add(kernel, ret);
	return r;
}

/* Name of an adopted cgroup's folder below links/. */
static void links_name(uint64_t cgroup_id, char name[static 32])
{
	snprintf(name, 32, "c%llu", (unsigned long long)cgroup_id);
}

/* Where all programs are already, which is so before each acknowledgement of a raise, nothing has to be done, and its sockets are
 * known: to look for them is a pass over the tables of its network namespace. Its pins kernel_check() looks at. */
static int gate_attach(void *ctx, const struct gate_cgroup *cg)
{
	struct kernel *kernel = ctx;
	const unsigned attached = kernel->lists.attached;
	char name[32];
	int r;

	links_name(cg->id, name);
	if (links_stand(kernel, name))
		return 0;
	r = links_attach(kernel, cg, name, false);
	if (r < 0 || kernel->lists.attached != attached)
		lists_adopted(kernel, cg->id);
	return r;
}

static int gate_detach(void *ctx, const struct gate_cgroup *cg)
{
	char name[32];

	links_name(cg->id, name);
	links_detach(ctx, name);
	return 0;
}

static int gate_cgroup_remove(void *ctx, const struct gate_cgroup *cg)
{
	(void)ctx;
	return cgroup_remove(cg);
}

struct below {
	const char *prefix;
	int result;
};

static int below_remove(void *data, const struct gate_cgroup *cg)
{
	struct below *below = data;
	const char *name = strrchr(cg->path, '/');
	int r = name && !strncmp(name + 1, below->prefix, strlen(below->prefix)) ? cgroup_remove(cg) : 0;

	below->result = below->result ? below->result : r;
	return 0;
}

static int gate_cgroup_remove_below(void *ctx, const struct gate_cgroup *cg, const char *prefix)
{
	const struct kernel *kernel = ctx;
	struct below below = { .prefix = prefix };
	int r = cgroup_each_child(kernel->mount, cg, below_remove, &below);

	return r ? r : below.result;
}

static bool gate_cgroup_populated(void *ctx, const struct gate_cgroup *cg)
{
	(void)ctx;
	return cgroup_populated(cg);
}

static int gate_cgroup_by_id(void *ctx, uint64_t id, struct gate_cgroup *ret)
{
	struct kernel *kernel = ctx;

	return cgroup_by_id(kernel->mount, id, ret);
}

static int gate_slice_each(void *ctx, int (*fn)(void *data, const struct gate_cgroup *cg), void *data)
{
	struct kernel *kernel = ctx;

	return cgroup_each_child(kernel->mount, &kernel->slice, fn, data);
}

static int gate_children_each(void *ctx, const struct gate_cgroup *parent,
			      int (*fn)(void *data, const struct gate_cgroup *cg), void *data)
{
	struct kernel *kernel = ctx;

	watch_children(kernel, parent); /* first: what is made after that is told, what was made before is found */
	return cgroup_each_child(kernel->mount, parent, fn, data);
}

static bool gate_way_watch(void *ctx, const char *path)
{
	return watch_way(ctx, path);
}

static int gate_process(void *ctx, uint64_t cgroup_id, pid_t pid, struct gate_process *ret)
{
	struct kernel *kernel = ctx;

	return cgroup_process(kernel->mount, cgroup_id, pid, ret);
}

struct gate kernel_gate(struct kernel *kernel)
{
	return (struct gate){
		.ctx = kernel,
		.cgroup_make = gate_cgroup_make,
		.cgroup_inspect = gate_cgroup_inspect,
		.cgroup_look = gate_cgroup_look,
		.cgroup_find = gate_cgroup_find,
		.raise = gate_raise,
		.attach = gate_attach,
		.cut_due = gate_cut_due,
		.cut = gate_cut,
		.orphans = gate_orphans,
		.cgroup_remove = gate_cgroup_remove,
		.cgroup_remove_below = gate_cgroup_remove_below,
		.cgroup_populated = gate_cgroup_populated,
		.detach = gate_detach,
		.retire = gate_retire,
		.each = gate_each,
		.read = gate_read,
		.listens = gate_listens,
		.forward = gate_forward,
		.unforward = gate_unforward,
		.cgroup_by_id = gate_cgroup_by_id,
		.slice_each = gate_slice_each,
		.children_each = gate_children_each,
		.way_watch = gate_way_watch,
		.whole = gate_whole,
		.stands = gate_stands,
		.process = gate_process,
	};
}
