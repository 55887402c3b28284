/* SPDX-License-Identifier: MIT */
/* Loading the gate's programs onto the maps that are there, or new ones. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "base/chars.h"
#include "base/fs.h"
#include "base/log.h"
#include "kernel/internal.h"

/* Maps that outlive a daemon, whatever build comes after it; np_cut_targets has what one that was killed had yet to cut. The others
 * are scratch paper. */
static bool map_is_kept(const struct bpf_map *map)
{
	static const char *const scratch[] = { "np_cut", "np_cut_flows", "np_cut_orders", "np_open_query" };

	return !WORD_IS_ONE_OF(bpf_map__name(map), scratch) && !bpf_map__is_internal(map);
}

int map_path(const struct kernel *kernel, const struct bpf_map *map, char path[static FS_PATH_SIZE])
{
	return fs_path(path, "%s/%s/%s", kernel->pins, map_is_kept(map) ? "maps" : "scratch", bpf_map__name(map));
}

int program_path(const struct kernel *kernel, const struct bpf_program *prog, char path[static FS_PATH_SIZE])
{
	return fs_path(path, "%s/progs/%s", kernel->pins, bpf_program__name(prog));
}

/* -- the table of programs ---------------------------------------------------------------- */

size_t program_index(const struct kernel *kernel, const struct bpf_program *prog)
{
	for (size_t i = 0; i < kernel->n_programs; i++)
		if (kernel->programs[i].prog == prog)
			return i;
	return SIZE_MAX;
}

int program_fd(const struct kernel *kernel, const struct bpf_program *prog)
{
	size_t i = program_index(kernel, prog);

	return i == SIZE_MAX ? -1 : kernel->programs[i].fd;
}

int program_add(struct kernel *kernel, const struct bpf_program *prog, int fd)
{
	struct bpf_prog_info info = { 0 };
	__u32 len = sizeof(info);
	_close_ int taken = fd;

	if (kernel->n_programs == PROGRAMS_MAX)
		return -E2BIG;
	if (bpf_obj_get_info_by_fd(taken, &info, &len) < 0)
		return -errno;
	if (info.type != (uint32_t)bpf_program__type(prog))
		return -EINVAL;
	kernel->programs[kernel->n_programs++] = (struct gate_program){ prog, take_fd(taken), info.id };
	return 0;
}

void programs_close(struct kernel *kernel)
{
	while (kernel->n_programs)
		close(kernel->programs[--kernel->n_programs].fd);
}

static int programs_take(struct kernel *kernel, const struct gate_bpf *skel)
{
	struct bpf_program *prog;

	bpf_object__for_each_program(prog, skel->obj) {
		int r = 0;

		if (bpf_program__fd(prog) >= 0) {
			int fd = fcntl(bpf_program__fd(prog), F_DUPFD_CLOEXEC, 0);

			r = fd < 0 ? -errno : program_add(kernel, prog, fd);
		}
		if (r < 0)
			return r;
	}
	return 0;
}

/* -- loading ------------------------------------------------------------------------------- */

int object_prepare(struct kernel *kernel, struct gate_bpf *skel, const struct features *features)
{
	struct bpf_map *map;

	skel->rodata->np_slice_id = kernel->slice.id;
	skel->rodata->np_slice_depth = kernel->slice.depth;
	skel->rodata->np_host_netns = kernel->netns;
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
		r = map_path(kernel, map, path);
		if (r == 0)
			r = bpf_map__set_pin_path(map, path);
		if (r < 0)
			return r;
	}
	return 0;
}

int object_settle(struct kernel *kernel, struct gate_bpf *skel, const struct features *features, int r)
{
	/* Before a program that relies on them is attached to a cgroup: their predecessors stay until then. */
	if (r == 0 && features->lsm)
		r = links_attach_lsm(kernel, skel);
	if (r < 0) {
		place_forget(kernel, "lsm");
		programs_close(kernel);
		gate_bpf__destroy(skel);
		return r;
	}
	kernel->skel = skel;
	kernel->features = *features;
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
	if (r == 0)
		r = programs_take(kernel, skel);
	return object_settle(kernel, skel, features, r);
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

static bool descriptors_are_out(int error)
{
	return error == -EMFILE || error == -ENFILE;
}

static const char *load_advice(const struct kernel *kernel, int error)
{
	if (error == -EMFILE)
		return "The limit on open files is too low: LimitNOFILE= of the unit, or ulimit -n";
	if (error == -ENFILE)
		return "All processes together have as many as this host allows: fs.file-max";
	if (error == -EINVAL && kernel->took_over)
		return "If the maps below the pin directory are of another build, run netpawld --uninstall first";
	return "NETPAWL_DEBUG=1 shows the verifier's log";
}

static int object_load_anew(struct kernel *kernel, char problem[static 512])
{
	struct features features;
	int r;

	build_forget(kernel);
	features_probe(&features);
	r = object_try(kernel, &features);
	/* A gate with less in it takes fewer descriptors: want of them is no reason for that one. */
	if (r < 0 && features.lsm && !descriptors_are_out(r)) { /* names are judged instead */
		features.lsm = false;
		r = object_try(kernel, &features);
	}
	/* The function is there, but not for syscall programs: before 6.10. */
	if (r < 0 && features.sees_cgroups && !descriptors_are_out(r)) {
		features.sees_cgroups = false;
		r = object_try(kernel, &features);
	}
	if (r < 0)
		snprintf(problem, 512, "the kernel does not take the gate's programs: %s. %s", strerror(-r),
			 load_advice(kernel, r));
	return r;
}

int object_load(struct kernel *kernel, char problem[static 512])
{
	int r = kernel->had_links ? build_take(kernel) : -ENOENT;

	log_debug("the gate's programs: %s", r == 0 ? "those of our build are in the kernel" : "loaded anew");
	if (r < 0)
		r = object_load_anew(kernel, problem);
	if (r < 0)
		return r;
	r = object_freeze(kernel->skel->maps.np_sandboxes);
	if (r == 0)
		r = object_freeze(kernel->skel->maps.np_depths);
	if (r == 0)
		r = object_freeze(kernel->skel->maps.np_dns_origins);
	if (r < 0)
		snprintf(problem, 512, "cannot freeze np_sandboxes, np_depths or np_dns_origins: %s", strerror(-r));
	return r;
}

/* Of programs and scratch maps another build's may be there. Nothing hangs on their pins: links hold programs, and programs
 * maps. */
static int pin_put(struct kernel *kernel, int fd, const char *path, bool replace)
{
	if (replace)
		unlink(path);
	else if (access(path, F_OK) == 0)
		return 0;
	if (bpf_obj_pin(fd, path) < 0)
		return -errno;
	mended(kernel, path);
	return 0;
}

static int object_pin_all(struct kernel *kernel, bool replace)
{
	const struct bpf_map *map;
	char path[FS_PATH_SIZE];
	int r = 0;

	for (size_t i = 0; r == 0 && i < kernel->n_programs; i++) {
		r = program_path(kernel, kernel->programs[i].prog, path);
		if (r == 0)
			r = pin_put(kernel, kernel->programs[i].fd, path, replace);
	}
	bpf_object__for_each_map(map, kernel->skel->obj) {
		if (r < 0 || bpf_map__is_internal(map))
			continue;
		r = map_path(kernel, map, path);
		if (r == 0)
			r = pin_put(kernel, bpf_map__fd(map), path, replace && !map_is_kept(map));
	}
	return r;
}

int object_pin(struct kernel *kernel)
{
	return kernel->same_build ? 0 : object_pin_all(kernel, true);
}

int object_repin(struct kernel *kernel)
{
	char problem[512];
	int r = pins_folders(kernel, problem);

	if (r == 0)
		r = object_pin_all(kernel, false);
	return r < 0 ? r : build_note(kernel);
}
