/* SPDX-License-Identifier: MIT */
/*
 * The directory on the bpf file system that holds the gate while no daemon runs:
 *
 *   PIN_DIR/v8/maps/np_sandboxes ...      maps, for bpftool
 *   PIN_DIR/v8/scratch/np_cut ...         maps that are scratch paper, for the next daemon of this build
 *   PIN_DIR/v8/progs/np_connect4 ...      programs, for it and for bpftool
 *   PIN_DIR/v8/build                      which build they are of: see same_build.c
 *   PIN_DIR/v8/noted                      no socket of a sandbox is missing in np_sockets: see cut_table.c
 *   PIN_DIR/v8/links/slice/np_connect4    what keeps the programs attached to the slice
 *   PIN_DIR/v8/links/c1234/np_connect4    ... to the adopted cgroup with id 1234
 *   PIN_DIR/v8/links/lsm/np_lsm_connect   ... to the whole kernel, where it takes LSM programs
 *   PIN_DIR/v8/devices/if2                ... to network device 2
 *   PIN_DIR/v8/links/net/np_inbound       ... to the network namespace
 *
 * A gate of an older version lies beside it, in a directory of its own, while it is taken over: see upgrade.c.
 */
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "base/fs.h"
#include "kernel/internal.h"

#define BPF_FS_TYPE    0xcafe4a11
#define BPF_FS_DEFAULT "/sys/fs/bpf"

static bool is_bpffs(const char *path)
{
	struct statfs fs;

	return statfs(path, &fs) == 0 && fs.f_type == BPF_FS_TYPE;
}

int pins_folders(const struct kernel *kernel, char problem[static 512])
{
	static const char *const folders[] = { "", "/maps", "/scratch", "/progs", "/links", "/devices" };

	for (size_t i = 0; i < ARRAY_SIZE(folders); i++) {
		char path[FS_PATH_SIZE];
		int r;

		if (fs_path(path, "%s%s", kernel->pins, folders[i]) < 0)
			return -ENAMETOOLONG;
		r = fs_mkdir_all(path, 0700);
		if (r == 0 && !is_bpffs(path))
			r = -EINVAL;
		if (r < 0) {
			snprintf(problem, 512, "%.400s: %s", path, strerror(-r));
			return r;
		}
	}
	return 0;
}

static int open_and_lock(const char *place, const char *path, int flags, int *ret_fd, char problem[static 512])
{
	_close_ int fd = open(path, flags | O_CLOEXEC);

	if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) < 0) {
		int r = -errno;

		snprintf(problem, 512, "%.400s: %s", place,
			 r == -EWOULDBLOCK ? "another netpawld is using it; stop it first" : strerror(-r));
		return r;
	}
	*ret_fd = take_fd(fd);
	return 0;
}

int pins_lock(const char *pin_dir, int *ret_fd, char problem[static 512])
{
	return open_and_lock(pin_dir, pin_dir, O_RDONLY | O_DIRECTORY, ret_fd, problem);
}

/* Whoever can open a file can lock it, and a slice that was there before the daemon may be open to everybody: its directory, and nearly all of its
 * files. This one is root's alone. */
int slice_lock(const char *slice, int *ret_fd, char problem[static 512])
{
	char path[FS_PATH_SIZE];
	int r = fs_path(path, "%s/cgroup.kill", slice);

	return r < 0 ? r : open_and_lock(slice, path, O_WRONLY, ret_fd, problem);
}

int pins_open(struct kernel *kernel, char problem[static 512])
{
	const char *pin_dir = kernel->config.pin_dir;
	char path[FS_PATH_SIZE];
	bool old = false;
	int r;

	if (!strncmp(pin_dir, BPF_FS_DEFAULT "/", strlen(BPF_FS_DEFAULT) + 1) && !is_bpffs(BPF_FS_DEFAULT) &&
	    mount("bpf", BPF_FS_DEFAULT, "bpf", MS_NOSUID | MS_NODEV | MS_NOEXEC, "mode=0700") < 0) {
		r = -errno;
		snprintf(problem, 512, "cannot mount a bpf file system on " BPF_FS_DEFAULT ": %s", strerror(-r));
		return r;
	}
	r = fs_mkdir_all(pin_dir, 0700);
	if (r < 0 || !is_bpffs(pin_dir)) {
		snprintf(problem, 512, "%s: %s", pin_dir, r < 0 ? strerror(-r) : "not on a bpf file system");
		return r < 0 ? r : -EINVAL;
	}
	r = pins_lock(pin_dir, &kernel->lock_fd, problem);
	if (r == 0)
		r = upgrade_check(pin_dir, &old, problem);
	if (r < 0)
		return r;
	if ((size_t)snprintf(kernel->pins, sizeof(kernel->pins), "%s/v%d", pin_dir, NP_ABI_VERSION) >=
	    sizeof(kernel->pins) - 128)
		return -ENAMETOOLONG;
	fs_path(path, "%s/links/slice", kernel->pins);
	kernel->had_links = access(path, F_OK) == 0;
	kernel->took_over = kernel->had_links || old;
	return pins_folders(kernel, problem);
}

static int remove_pin(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)ftw;
	if (type == FTW_DP || type == FTW_D)
		rmdir(path);
	else
		unlink(path);
	return 0;
}

void pins_remove_tree(const char *path)
{
	nftw(path, remove_pin, 16, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
}

int pins_link_replace(int link_fd, const char *path)
{
	char fresh[FS_PATH_SIZE];

	/* Beside it, then over it: at no moment is the old link unpinned before the new one is pinned. */
	if (fs_path(fresh, "%s-new", path) < 0)
		return -ENAMETOOLONG;
	unlink(fresh);
	if (bpf_obj_pin(link_fd, fresh) < 0)
		return -errno;
	if (rename(fresh, path) < 0)
		return -errno;
	return 0;
}
