/* SPDX-License-Identifier: MIT */
/* Loading the gate's programs onto the maps that are there, or new ones. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

#include "base/fs.h"
#include "kernel/internal.h"

/* Maps that outlive a daemon. The others are scratch paper. */
static bool map_is_kept(const struct bpf_map *map)
{
	static const char *const scratch[] = { "np_cut", "np_cut_targets", "np_cut_flows", "np_open_query" };

	for (size_t i = 0; i < ARRAY_SIZE(scratch); i++)
		if (!strcmp(bpf_map__name(map), scratch[i]))
			return false;
	return !bpf_map__is_internal(map);
}

static int object_prepare(struct kernel *kernel, struct gate_bpf *skel, const struct features *features)
{
	struct bpf_map *map;

	skel->rodata->np_slice_id = kernel->slice.id;
	skel->rodata->np_slice_depth = kernel->slice.depth;
	skel->rodata->np_sockets_all = ports_share();
	skel->rodata->np_casts = features->casts;
	skel->rodata->np_sees_cgroups = features->sees_cgroups;
	skel->rodata->np_destroys = features->sock_destroy;
	skel->rodata->np_judges_peers = features->lsm;
	bpf_program__set_autoload(skel->progs.np_lsm_connect, features->lsm);
	bpf_program__set_autoload(skel->progs.np_lsm_send, features->lsm);
	bpf_program__set_expected_attach_type(skel->progs.np_unix_connect,
					      (enum bpf_attach_type)NP_ATTACH_UNIX_CONNECT);
	bpf_program__set_expected_attach_type(skel->progs.np_unix_send, (enum bpf_attach_type)NP_ATTACH_UNIX_SENDMSG);
	bpf_program__set_autoload(skel->progs.np_unix_connect, features->unix_hooks);
	bpf_program__set_autoload(skel->progs.np_unix_send, features->unix_hooks);
	bpf_object__for_each_map(map, skel->obj) {
		char path[FS_PATH_SIZE];
		int r;

		if (!map_is_kept(map))
			continue;
		fs_path(path, "%s/maps/%s", kernel->pins, bpf_map__name(map));
		r = bpf_map__set_pin_path(map, path);
		if (r < 0)
			return r;
	}
	return 0;
}

static int object_try(struct kernel *kernel, const struct features *features)
{
	struct gate_bpf *skel = gate_bpf__open();
	int r;

	if (!skel)
		return -errno;
	r = object_prepare(kernel, skel, features);
	if (r == 0)
		r = gate_bpf__load(skel);
	/* Before a program that relies on them is attached to a cgroup: their predecessors stay until then. */
	if (r == 0 && features->lsm)
		r = links_attach_lsm(kernel, skel);
	if (r < 0) {
		gate_bpf__destroy(skel);
		return r;
	}
	kernel->skel = skel;
	kernel->features = *features;
	return 0;
}

/* Only the kernel's own word counts: a map of a predecessor answers EPERM to a second freeze, but not only then. */
static bool map_is_frozen(int fd)
{
	_free_ char *text = NULL;
	char path[FS_PATH_SIZE];

	return fs_path(path, "/proc/self/fdinfo/%d", fd) == 0 && fs_read_at(AT_FDCWD, path, 65536, &text) == 0 &&
	       strstr(text, "frozen:\t1\n");
}

static int object_freeze(struct bpf_map *map)
{
	int fd = bpf_map__fd(map), r = 0;

	if (map_is_frozen(fd))
		return 0;
	if (bpf_map_freeze(fd) < 0)
		r = -errno;
	return map_is_frozen(fd) ? 0 : r < 0 ? r : -EIO;
}

int object_load(struct kernel *kernel, char problem[static 512])
{
	struct features features;
	int r;

	features_probe(&features);
	r = object_try(kernel, &features);
	if (r < 0 && features.lsm) { /* names are judged instead */
		features.lsm = false;
		r = object_try(kernel, &features);
	}
	if (r < 0 && features.sees_cgroups) { /* the function is there, but not for syscall programs: before 6.10 */
		features.sees_cgroups = false;
		r = object_try(kernel, &features);
	}
	if (r < 0) {
		snprintf(problem, 512, "the kernel does not take the gate's programs: %s. %s", strerror(-r),
			 r == -EINVAL && kernel->took_over ? "If the maps below the pin directory are of another "
							     "build, run netpawld --uninstall first"
							   : "NETPAWL_DEBUG=1 shows the verifier's log");
		return r;
	}
	r = object_freeze(kernel->skel->maps.np_sandboxes);
	if (r == 0)
		r = object_freeze(kernel->skel->maps.np_depths);
	if (r == 0)
		r = object_freeze(kernel->skel->maps.np_dns_origins);
	if (r < 0)
		snprintf(problem, 512, "cannot freeze np_sandboxes, np_depths or np_dns_origins: %s", strerror(-r));
	return r;
}

int object_pin(struct kernel *kernel)
{
	struct bpf_program *prog;

	bpf_object__for_each_program(prog, kernel->skel->obj) {
		char path[FS_PATH_SIZE];

		if (bpf_program__fd(prog) < 0)
			continue;
		fs_path(path, "%s/progs/%s", kernel->pins, bpf_program__name(prog));
		unlink(path); /* only a name for bpftool: the links hold the programs */
		if (bpf_obj_pin(bpf_program__fd(prog), path) < 0)
			return -errno;
	}
	return 0;
}
