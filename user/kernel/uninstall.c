/* SPDX-License-Identifier: MIT */
/* Taking the gate away, as the operator's own decision. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>

#include "base/fs.h"
#include "kernel/internal.h"
#include "kernel/old_gate.h"
#include "netns/way_out.h"

/* Adopted cgroups of a version's map in which processes still run, until fn returns something else than 0: that, or 0. */
static int adopted_each(const char *pin_dir, unsigned version, const char *map, const char *mount, const char *slice,
			int (*fn)(void *data, const struct gate_cgroup *cg), void *data)
{
	char path[FS_PATH_SIZE];
	_close_ int fd = -1;
	__u64 key, *previous = NULL;
	struct gate_cgroup cg;
	int r = 0;

	if (fs_path(path, "%s/v%u/maps/%s", pin_dir, version, map) < 0)
		return 0;
	fd = bpf_obj_get(path);
	if (fd < 0 || fs_path(path, "%s/%s/", mount, slice) < 0)
		return 0;
	while (r == 0 && bpf_map_get_next_key(fd, previous, &key) == 0) {
		previous = &key;
		if (cgroup_by_id(mount, key, &cg) == 0 && strncmp(cg.path, path, strlen(path)) != 0 &&
		    cgroup_populated(&cg))
			r = fn(data, &cg);
	}
	return r;
}

/* Of our own gate, or of an older one that nobody has taken over from. */
static int adopted_each_anywhere(const char *pin_dir, const char *mount, const char *slice,
				 int (*fn)(void *data, const struct gate_cgroup *cg), void *data)
{
	int r = adopted_each(pin_dir, NP_ABI_VERSION, "np_sandboxes", mount, slice, fn, data);

	for (size_t i = 0; r == 0 && old_gate_at(i); i++)
		r = adopted_each(pin_dir, old_gate_at(i)->version, old_gate_at(i)->map, mount, slice, fn, data);
	return r;
}

static int adopted_take(void *data, const struct gate_cgroup *cg)
{
	*(struct gate_cgroup *)data = *cg;
	return 1;
}

/* Filters of clsact have no pin: in a container's network namespace they stay until somebody goes there. */
static int filters_remove_at(void *data, pid_t pid)
{
	char path[FS_PATH_SIZE];
	_close_ int netns = -1;

	(void)data;
	fs_path(path, "/proc/%d/ns/net", (int)pid);
	netns = open(path, O_RDONLY | O_CLOEXEC);
	if (netns < 0)
		return 0; /* gone: the next one is where it was */
	devices_detach_clsact_in(netns, NP_ABI_VERSION);
	for (size_t i = 0; old_gate_at(i); i++)
		devices_detach_clsact_in(netns, old_gate_at(i)->version);
	return 1;
}

static int filters_remove(void *data, const struct gate_cgroup *cg)
{
	cgroup_each_process(cg, filters_remove_at, data);
	return 0;
}

static int slice_remove(const char *mount, const char *slice, const char *suffix, char problem[static 512])
{
	char path[FS_PATH_SIZE];
	struct gate_cgroup cg;
	int r = fs_path(path, "%s/%s%s", mount, slice, suffix);

	if (r < 0 || cgroup_look(mount, path, &cg) < 0)
		return r;
	r = cgroup_remove(&cg);
	if (r < 0)
		snprintf(problem, 512, "%.400s: %s; nothing was detached", cg.path, strerror(-r));
	return r;
}

static bool cgroup_exists(void *mount, uint64_t id)
{
	struct gate_cgroup ignored;

	return cgroup_by_id(mount, id, &ignored) != -ENOENT;
}

/* Their devices, and with the last of them, other daemons' included, the host's rules. */
static void ways_out_remove(char *mount)
{
	_free_ struct ways_out *ways = calloc(1, sizeof(*ways));

	if (!ways)
		return;
	ways_out_find(ways, cgroup_exists, mount);
	ways_out_want(ways, false);
}

int kernel_uninstall(const char *pin_dir, const char *slice, bool force, char problem[static 512])
{
	_close_ int lock = -1, slice_fd = -1;
	char mount[4096], path[FS_PATH_SIZE];
	struct gate_cgroup adopted;
	bool old;
	int r;

	kernel_quiet();
	r = pins_lock(pin_dir, &lock, problem);
	if (r == 0)
		r = upgrade_check(pin_dir, &old, problem);
	if (r < 0 && r != -ENOENT)
		return r;
	r = cgroup_mount_find(mount);
	if (r == 0)
		r = fs_path(path, "%s/%s", mount, slice);
	if (r == 0)
		r = slice_lock(path, &slice_fd, problem); /* a daemon with other pins has its sandboxes there */
	if (r < 0 && r != -ENOENT)
		return r;
	problem[0] = '\0';
	if (!force && adopted_each_anywhere(pin_dir, mount, slice, adopted_take, &adopted)) {
		snprintf(problem, 512,
			 "%.300s was adopted and processes run in it; they would get their network back. "
			 "End them first, or use --force",
			 adopted.path);
		return -EBUSY;
	}
	/* Sandboxes die before the gate goes: none of them may see an open network. */
	r = slice_remove(mount, slice, "", problem);
	if (r == 0)
		r = slice_remove(mount, slice, INSPECTOR_SUFFIX, problem);
	if (r == 0)
		r = fs_path(path, "%s/v%d", pin_dir, NP_ABI_VERSION);
	if (r < 0)
		return r;
	ways_out_remove(mount);
	adopted_each_anywhere(pin_dir, mount, slice, filters_remove, NULL);
	pins_remove_tree(path);
	r = upgrade_remove_old(pin_dir);
	rmdir(pin_dir);
	devices_detach_clsact(NP_ABI_VERSION);
	if (r < 0 || access(path, F_OK) == 0) {
		snprintf(problem, 512, "%.400s could not be removed", r < 0 ? pin_dir : path);
		return -EBUSY;
	}
	return 0;
}
