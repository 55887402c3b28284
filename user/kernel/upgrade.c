/* SPDX-License-Identifier: MIT */
/*
 * Taking over from a gate of an older ABI version, whose daemon is gone and whose programs go on enforcing. Ours come
 * beside them, and theirs go last:
 *
 *   1. our programs and maps are loaded; nothing asks them yet;
 *   2. every rung of the old gate goes through our np_raise, which knows only a maximum, and np_homes is copied;
 *   3. our programs are attached wherever the old ones are, and the record is joined with our map (service_recover);
 *   4. our policy holds, and what cannot be carried over is cut;
 *   5. the old links are detached, then the old pins are removed.
 *
 * Until 5 both are asked, and a packet or a call passes only if both let it pass. A daemon that is killed on the way
 * leaves both; the next one does all of it again, and a rung that was copied before can only be raised by that.
 *
 * While both are attached nothing is steered: the old gate refuses a connection that the inspector must see, because the
 * inspector that it knows is gone, whatever address our program gives it. So PROXIED sandboxes get ECONNREFUSED there
 * until 5, as they do while no daemon runs.
 */
#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/chars.h"
#include "base/failpoint.h"
#include "base/fs.h"
#include "base/log.h"
#include "kernel/internal.h"
#include "kernel/old_gate.h"

static bool old_is_there(const char *pin_dir, const struct old_gate *old)
{
	char path[FS_PATH_SIZE];

	return fs_path(path, "%s/v%u", pin_dir, old->version) == 0 && access(path, F_OK) == 0;
}

/* -- what is there ----------------------------------------------------------------------- */

/* May we start beside this directory of pins? */
static int version_check(const char *pin_dir, const char *name, char problem[static 512])
{
	unsigned version;
	char rest;

	if (sscanf(name, "v%u%c", &version, &rest) != 1) {
		snprintf(problem, 512, "%.300s/%.64s is not of netpawl, or of a version that this one does not know",
			 pin_dir, name);
		return -EPROTO;
	}
	if (version == NP_ABI_VERSION || old_gate_find(version))
		return 0;
	if (version > NP_ABI_VERSION)
		snprintf(problem, 512,
			 "%.200s/%.64s was made by a newer netpawld, whose gate goes on enforcing; this one (ABI "
			 "version %d) does not take over from it. Start the newer one again; or, to go back, run its "
			 "netpawld --uninstall first, which ends the sandboxes",
			 pin_dir, name, NP_ABI_VERSION);
	else
		snprintf(problem, 512,
			 "%.200s/%.64s was made by a netpawld that is too old to take over from; its gate goes on "
			 "enforcing. Run that version's netpawld --uninstall first, which ends the sandboxes",
			 pin_dir, name);
	return -EPROTO;
}

int upgrade_check(const char *pin_dir, bool *ret_old, char problem[static 512])
{
	_closedir_ DIR *dir = opendir(pin_dir);

	*ret_old = false;
	if (!dir)
		return -errno;
	for (struct dirent *e; (e = readdir(dir));) {
		int r = e->d_name[0] == '.' ? 0 : version_check(pin_dir, e->d_name, problem);

		if (r < 0)
			return r;
	}
	for (size_t i = 0; old_gate_at(i); i++)
		*ret_old |= old_is_there(pin_dir, old_gate_at(i));
	return 0;
}

static int pin_found(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)path;
	(void)st;
	(void)ftw;
	return type != FTW_D && type != FTW_DP;
}

/* Is anything of the old gate attached, as far as its pins tell? Yes also when that cannot be told. */
static bool old_is_attached(const char *pin_dir, const struct old_gate *old)
{
	static const char *const folders[] = { "links", "devices" };
	char path[FS_PATH_SIZE];

	for (size_t i = 0; i < ARRAY_SIZE(folders); i++) {
		if (fs_path(path, "%s/v%u/%s", pin_dir, old->version, folders[i]) < 0)
			return true;
		if (nftw(path, pin_found, 16, FTW_PHYS | FTW_MOUNT) != 0 && access(path, F_OK) == 0)
			return true;
	}
	return false;
}

/* One of the old maps. -ENOENT: it is gone, and so is all that asked it. */
static int old_map_open(const char *pin_dir, const struct old_gate *old, const char *name, size_t value_size)
{
	struct bpf_map_info info = { 0 };
	__u32 len = sizeof(info);
	char path[FS_PATH_SIZE];
	_close_ int fd = -1;
	int r = fs_path(path, "%s/v%u/maps/%s", pin_dir, old->version, name);

	if (r < 0)
		return r;
	fd = bpf_obj_get(path);
	if (fd < 0)
		return errno != ENOENT ? -errno : old_is_attached(pin_dir, old) ? -EPROTO : -ENOENT;
	if (bpf_obj_get_info_by_fd(fd, &info, &len) < 0)
		return -errno;
	if (info.type != BPF_MAP_TYPE_HASH || info.key_size != sizeof(__u64) || info.value_size != value_size)
		return -EPROTO;
	return take_fd(fd);
}

/* -- copying ------------------------------------------------------------------------------- */

static int sandbox_copy(struct kernel *kernel, const struct old_gate *old, int map, __u64 id)
{
	_free_ char *value = calloc(1, old->value_size);
	char session[NP_LABEL_SIZE];
	struct gate_cgroup cg;
	struct np_rung rung, stands;
	int r;

	if (!value)
		return -ENOMEM;
	if (bpf_map_lookup_elem(map, &id, value) < 0)
		return -errno; /* nobody else writes there: it must be found */
	r = cgroup_by_id(kernel->mount, id, &cg);
	if (r == -ENOENT)
		return 0; /* and so is all that ran in it */
	if (r < 0)
		return r;
	memcpy(session, value + old->session_at, sizeof(session));
	session[sizeof(session) - 1] = '\0';
	if (!old->rung_read(value, &rung))
		log_error("%s: the older gate's entry of it cannot be read; it is closed", cg.path);
	r = gate_raise(kernel, &cg, &rung, session, &stands);
	if (r == 0)
		kernel->carried_over++;
	failpoint("upgrade_copying");
	return r;
}

static int sandboxes_copy(struct kernel *kernel, const struct old_gate *old)
{
	_close_ int map = old_map_open(kernel->config.pin_dir, old, old->map, old->value_size);
	__u64 key = 0, *previous = NULL;

	if (map == -ENOENT)
		return 0;
	if (map < 0)
		return map;
	/* The map has no writer any more, so the walk is complete. */
	while (bpf_map_get_next_key(map, previous, &key) == 0) {
		int r = sandbox_copy(kernel, old, map, key);

		if (r < 0)
			return r;
		previous = &key;
	}
	return errno == ENOENT ? 0 : -errno;
}

/* What cannot be copied is steered nowhere, and refused what the inspector must see. */
static void homes_copy(struct kernel *kernel, const struct old_gate *old)
{
	_close_ int map = old->homes ? old_map_open(kernel->config.pin_dir, old, old->homes, old->home_size) : -ENOENT;
	_free_ char *value = calloc(1, old->home_size + 1);
	__u64 key = 0, id, *previous = NULL;
	struct np_home home;

	while (map >= 0 && value && bpf_map_get_next_key(map, previous, &key) == 0) {
		previous = &key;
		if (bpf_map_lookup_elem(map, &key, value) < 0)
			continue;
		old->home_read(key, value, &id, &home);
		bpf_map_update_elem(bpf_map__fd(kernel->skel->maps.np_homes), &id, &home, BPF_ANY);
	}
}

int upgrade_copy(struct kernel *kernel, char problem[static 512])
{
	for (size_t i = 0; old_gate_at(i); i++) {
		const struct old_gate *old = old_gate_at(i);
		int r;

		if (!old_is_there(kernel->config.pin_dir, old))
			continue;
		failpoint("upgrade_loaded");
		kernel->upgraded_from = old->version;
		r = sandboxes_copy(kernel, old);
		if (r < 0) {
			snprintf(problem, 512,
				 "%.300s/v%u: its sandboxes could not be taken over: %s. It goes on enforcing",
				 kernel->config.pin_dir, old->version,
				 r == -EPROTO ? "its maps are not those of that version" : strerror(-r));
			return r;
		}
		homes_copy(kernel, old);
		failpoint("upgrade_copied");
	}
	return 0;
}

/* -- attaching ------------------------------------------------------------------------------ */

/* What an old gate holds below links/: our own places, which every start attaches to, and adopted cgroups, also those
 * that no record knows. */
static int old_link_follow(struct kernel *kernel, const char *name)
{
	static const char *const own[] = { "slice", "inspector", "lsm", "net" };
	unsigned long long id;
	struct gate_cgroup cg;
	char rest;
	int r;

	if (WORD_IS_ONE_OF(name, own))
		return 0;
	if (sscanf(name, "c%llu%c", &id, &rest) != 1)
		return -EPROTO;
	r = cgroup_by_id(kernel->mount, id, &cg);
	return r == -ENOENT ? 0 : r < 0 ? r : links_attach(kernel, &cg, name, false);
}

static int old_links_follow(struct kernel *kernel, const struct old_gate *old)
{
	char path[FS_PATH_SIZE];
	_closedir_ DIR *dir = NULL;

	fs_path(path, "%s/v%u/links", kernel->config.pin_dir, old->version);
	dir = opendir(path);
	if (!dir)
		return errno == ENOENT ? 0 : -errno;
	for (struct dirent *e; (e = readdir(dir));) {
		int r = e->d_name[0] == '.' ? 0 : old_link_follow(kernel, e->d_name);

		if (r < 0) {
			log_error("%s/%s: %s", path, e->d_name, strerror(-r));
			return r;
		}
	}
	return 0;
}

int upgrade_attach(struct kernel *kernel)
{
	int r = 0;

	if (kernel->upgraded_from)
		failpoint("upgrade_slice");
	for (size_t i = 0; r == 0 && old_gate_at(i); i++)
		if (old_is_there(kernel->config.pin_dir, old_gate_at(i)))
			r = old_links_follow(kernel, old_gate_at(i));
	if (kernel->upgraded_from)
		failpoint("upgrade_adopted");
	return r;
}

/* -- removing ------------------------------------------------------------------------------- */

/* Detached first, which is done when the call returns: a link that only loses its pin goes some time later. */
static int old_link_remove(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	_close_ int link = -1;

	(void)st;
	(void)ftw;
	if (type == FTW_DP || type == FTW_D) {
		rmdir(path);
		return 0;
	}
	link = bpf_obj_get(path);
	if (link >= 0)
		bpf_link_detach(link); /* those of LSM programs cannot; they go with their pin */
	unlink(path);
	failpoint("upgrade_detaching");
	return 0;
}

/* The links before the maps: a later start knows by a map that is gone that nothing is attached. */
static int old_remove(const char *pin_dir, const struct old_gate *old)
{
	static const char *const folders[] = { "links", "devices" };
	char path[FS_PATH_SIZE];

	for (size_t i = 0; i < ARRAY_SIZE(folders); i++) {
		fs_path(path, "%s/v%u/%s", pin_dir, old->version, folders[i]);
		nftw(path, old_link_remove, 16, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
	}
	devices_detach_clsact(old->version);
	if (old_is_attached(pin_dir, old))
		return -EBUSY;
	failpoint("upgrade_detached");
	fs_path(path, "%s/v%u/maps", pin_dir, old->version);
	pins_remove_tree(path);
	failpoint("upgrade_unpinned");
	fs_path(path, "%s/v%u", pin_dir, old->version);
	pins_remove_tree(path);
	return access(path, F_OK) == 0 ? -EBUSY : 0;
}

int upgrade_remove_old(const char *pin_dir)
{
	int result = 0;

	for (size_t i = 0; old_gate_at(i); i++) {
		int r = old_is_there(pin_dir, old_gate_at(i)) ? old_remove(pin_dir, old_gate_at(i)) : 0;

		result = result ? result : r;
	}
	return result;
}

bool kernel_is_upgrade(const struct kernel *kernel)
{
	return kernel->upgraded_from;
}

int kernel_upgrade_finish(struct kernel *kernel, unsigned *ret_from, unsigned *ret_sandboxes)
{
	*ret_from = kernel->upgraded_from;
	*ret_sandboxes = kernel->carried_over;
	if (!kernel->upgraded_from)
		return 0;
	failpoint("upgrade_ready");
	for (size_t i = 0; old_gate_at(i); i++)
		if (old_is_there(kernel->config.pin_dir, old_gate_at(i)))
			devices_detach_old_clsact(kernel, old_gate_at(i)->version);
	return upgrade_remove_old(kernel->config.pin_dir);
}
