/* SPDX-License-Identifier: MIT */
/* Attaching the gate to a cgroup, and keeping it there with pins. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

#include "base/fs.h"
#include "kernel/internal.h"

/* True when the pinned link still is attached to this cgroup; a link outlives its cgroup, as an empty shell. */
static bool link_is_on(int link_fd, uint64_t cgroup_id)
{
	struct bpf_link_info info = { 0 };
	__u32 len = sizeof(info);

	return bpf_obj_get_info_by_fd(link_fd, &info, &len) == 0 && info.type == BPF_LINK_TYPE_CGROUP &&
	       info.cgroup.cgroup_id == cgroup_id;
}

static int link_program_id(int link_fd, uint32_t *ret)
{
	struct bpf_link_info info = { 0 };
	__u32 len = sizeof(info);

	if (bpf_obj_get_info_by_fd(link_fd, &info, &len) < 0)
		return -errno;
	*ret = info.prog_id;
	return 0;
}

int link_turn(const struct kernel *kernel, int link_fd, const struct bpf_program *prog)
{
	uint32_t id = 0;
	int r = link_program_id(link_fd, &id);

	if (r < 0 || id == program_id(kernel, prog))
		return r;
	return bpf_link_update(link_fd, program_fd(kernel, prog), NULL) < 0 ? -errno : 0;
}

static int link_attach(const struct kernel *kernel, const struct bpf_program *prog, int cgroup_fd, uint64_t cgroup_id,
		       const char *path)
{
	_close_ int old = bpf_obj_get(path);
	_close_ int fresh = -1;
	int prog_fd = program_fd(kernel, prog);

	if (old >= 0 && link_is_on(old, cgroup_id))
		return link_turn(kernel, old, prog);
	fresh = bpf_link_create(prog_fd, cgroup_fd, bpf_program__expected_attach_type(prog), NULL);
	if (fresh < 0)
		return -errno;
	return pins_link_replace(fresh, path);
}

static bool belongs_to_cgroups(const struct bpf_program *prog)
{
	switch (bpf_program__type(prog)) {
	case BPF_PROG_TYPE_CGROUP_SKB:
	case BPF_PROG_TYPE_CGROUP_SOCK:
	case BPF_PROG_TYPE_CGROUP_SOCK_ADDR:
	case BPF_PROG_TYPE_CGROUP_SOCKOPT:
	case BPF_PROG_TYPE_SOCK_OPS:
		return true;
	default:
		return false;
	}
}

/* Programs for the inspector's cgroup are none for sandboxes. */
static bool is_for_workers(const struct bpf_program *prog)
{
	return !strncmp(bpf_program__name(prog), "np_worker_", 10);
}

static int links_attach_one(struct kernel *kernel, const struct bpf_program *prog, int cgroup_fd, uint64_t cgroup_id,
			    const char *name)
{
	char path[FS_PATH_SIZE];

	fs_path(path, "%s/links/%s", kernel->pins, name);
	if (mkdir(path, 0700) < 0 && errno != EEXIST)
		return -errno;
	fs_path(path, "%s/links/%s/%s", kernel->pins, name, bpf_program__name(prog));
	return link_attach(kernel, prog, cgroup_fd, cgroup_id, path);
}

int links_attach(struct kernel *kernel, const struct gate_cgroup *cg, const char *name, bool worker)
{
	_close_ int cgroup_fd = open(cg->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (cgroup_fd < 0)
		return -errno;
	for (size_t i = 0; i < kernel->n_programs; i++) {
		const struct bpf_program *prog = kernel->programs[i].prog;
		int r;

		if (!belongs_to_cgroups(prog) || is_for_workers(prog) != worker)
			continue;
		r = links_attach_one(kernel, prog, cgroup_fd, cg->id, name);
		if (r < 0)
			return r;
	}
	return 0;
}

int links_attach_lsm(const struct kernel *kernel, const struct gate_bpf *skel)
{
	const struct bpf_program *programs[] = { skel->progs.np_lsm_connect, skel->progs.np_lsm_send };
	char path[FS_PATH_SIZE];

	fs_path(path, "%s/links/lsm", kernel->pins);
	if (mkdir(path, 0700) < 0 && errno != EEXIST)
		return -errno;
	for (size_t i = 0; i < ARRAY_SIZE(programs); i++) {
		_close_ int link = -1, old = -1;
		uint32_t id = 0;
		int r;

		fs_path(path, "%s/links/lsm/%s", kernel->pins, bpf_program__name(programs[i]));
		old = bpf_obj_get(path);
		if (old >= 0 && link_program_id(old, &id) == 0 && id == program_id(kernel, programs[i]))
			continue;
		/* A link of this kind takes no other program: the new one is attached beside the old, which goes with
		 * its pin. Both ask the same maps. */
		link = bpf_raw_tracepoint_open(NULL, program_fd(kernel, programs[i]));
		if (link < 0)
			return -errno;
		r = pins_link_replace(link, path);
		if (r < 0)
			return r;
	}
	return 0;
}

void links_detach(struct kernel *kernel, const char *name)
{
	char path[FS_PATH_SIZE];

	fs_path(path, "%s/links/%s", kernel->pins, name);
	pins_remove_tree(path);
}
