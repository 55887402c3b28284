/* SPDX-License-Identifier: MIT */
#include "sandbox/mounts.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "base/cleanup.h"
#include "base/fs.h"

/* A host with thousands of containers has a table of a few megabytes. */
#define MOUNTINFO_BYTES (32u << 20)

/* Directories that are covered whether or not the table shows a mount there. */
static const char *const always_hidden[] = {
	"/sys/fs/cgroup", "/sys/fs/bpf", "/sys/kernel/debug", "/sys/kernel/tracing", "/sys/kernel/security",
};

/* File systems that are windows to the kernel or to other namespaces, wherever they are mounted. */
static const char *const hidden_types[] = {
	"cgroup",  "cgroup2", "bpf",	     "tracefs", "debugfs", "securityfs", "configfs", "efivarfs", "pstore",
	"resctrl", "nsfs",    "binfmt_misc", "fusectl", "proc",	   "sysfs",	 "devtmpfs", "devpts",	 "mqueue",
};

/* Parts of /proc through which root changes the kernel, capabilities or not (core_pattern, modprobe). */
static const char *const proc_readonly[] = {
	"/proc/sys",  "/proc/sysrq-trigger", "/proc/irq",	    "/proc/bus",  "/proc/fs",
	"/proc/acpi", "/proc/mtrr",	     "/proc/dynamic_debug", "/proc/scsi", "/proc/asound",
};

static const char *const devices[] = { "null", "zero", "full", "random", "urandom", "tty" };

static bool below(const char *path, const char *dir)
{
	size_t len = strlen(dir);

	return !strncmp(path, dir, len) && (path[len] == '\0' || path[len] == '/');
}

static int tmpfs_mount(const char *path, unsigned long flags, const char *options)
{
	return mount("tmpfs", path, "tmpfs", flags, options) < 0 ? -errno : 0;
}

/* Puts an empty, read-only file or directory over path. A path that is not there needs none. */
static int path_hide(const char *path)
{
	struct stat st;

	if (stat(path, &st) < 0)
		return errno == ENOENT || errno == ENOTDIR ? 0 : -errno;
	if (S_ISDIR(st.st_mode))
		return tmpfs_mount(path, MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC, "mode=0555");
	return mount("/dev/null", path, NULL, MS_BIND, NULL) < 0 ? -errno : 0;
}

static int tree_set_readonly(int dirfd, const char *path, unsigned flags)
{
	struct mount_attr attr = { .attr_set = MOUNT_ATTR_RDONLY };

	return mount_setattr(dirfd, path, flags, &attr, sizeof(attr)) < 0 ? -errno : 0;
}

static int path_make_readonly(const char *path)
{
	_close_ int tree = open_tree(AT_FDCWD, path, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE);
	int err;

	if (tree < 0)
		return errno == ENOENT ? 0 : -errno;
	err = tree_set_readonly(tree, "", AT_EMPTY_PATH | AT_RECURSIVE);
	if (err < 0)
		return err;
	return move_mount(tree, "", AT_FDCWD, path, MOVE_MOUNT_F_EMPTY_PATH) < 0 ? -errno : 0;
}

/* Makes an empty file at path, and the mount of tree covers it. */
static int tree_put(int tree, const char *path)
{
	_close_ int fd = open(path, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC | O_NOFOLLOW, 0644);

	if (fd < 0)
		return -errno;
	return move_mount(tree, "", AT_FDCWD, path, MOVE_MOUNT_F_EMPTY_PATH) < 0 ? -errno : 0;
}

static int dev_populate(void)
{
	static const struct {
		const char *target, *path;
	} links[] = {
		{ "/proc/self/fd", "/dev/fd" },	      { "/proc/self/fd/0", "/dev/stdin" },
		{ "/proc/self/fd/1", "/dev/stdout" }, { "/proc/self/fd/2", "/dev/stderr" },
		{ "pts/ptmx", "/dev/ptmx" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(links); i++)
		if (symlink(links[i].target, links[i].path) < 0)
			return -errno;
	if (mkdir("/dev/shm", 0755) < 0 || mkdir("/dev/pts", 0755) < 0)
		return -errno;
	/* A new instance: the terminals of the host's users are not in it. */
	if (mount("devpts", "/dev/pts", "devpts", MS_NOSUID | MS_NOEXEC, "newinstance,ptmxmode=0666,mode=0620") < 0)
		return -errno;
	return tmpfs_mount("/dev/shm", MS_NOSUID | MS_NODEV, "mode=1777");
}

static void trees_close(int (*trees)[ARRAY_SIZE(devices)])
{
	for (size_t i = 0; i < ARRAY_SIZE(devices); i++)
		if ((*trees)[i] >= 0)
			close((*trees)[i]);
}

static int dev_replace(void)
{
	cleanup(trees_close) int trees[ARRAY_SIZE(devices)];
	char path[64];
	int err;

	for (size_t i = 0; i < ARRAY_SIZE(devices); i++) {
		snprintf(path, sizeof(path), "/dev/%s", devices[i]);
		trees[i] = open_tree(AT_FDCWD, path, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
	}
	err = tmpfs_mount("/dev", MS_NOSUID | MS_NOEXEC, "mode=0755");
	if (err < 0)
		return err;
	for (size_t i = 0; i < ARRAY_SIZE(devices); i++) {
		if (trees[i] < 0)
			continue; /* the host has no such device either */
		snprintf(path, sizeof(path), "/dev/%s", devices[i]);
		err = tree_put(trees[i], path);
		if (err < 0)
			return err;
	}
	return dev_populate();
}

/*
 * Where /etc/resolv.conf points to when it is a link into /run, as the link spells it: a chain of further
 * links in there is gone with the old /run. 1 with the path, 0 when nothing needs to be kept.
 */
static int resolver_path(char ret_path[static PATH_MAX])
{
	char link[PATH_MAX] = "/etc/";
	char *target = link + strlen(link), *out = ret_path;
	ssize_t n = readlink("/etc/resolv.conf", target, sizeof(link) - strlen(link) - 1);

	if (n <= 0)
		return 0;
	target[n] = '\0';
	if (*target == '/')
		memmove(link, target, (size_t)n + 1);
	*out = '\0';
	for (char *save = NULL, *part = strtok_r(link, "/", &save); part; part = strtok_r(NULL, "/", &save)) {
		if (!strcmp(part, ".."))
			while (out > ret_path && *--out != '/')
				;
		else if (strcmp(part, ".") != 0)
			out += sprintf(out, "/%s", part);
		*out = '\0';
	}
	return below(ret_path, "/run") || below(ret_path, "/var/run");
}

static int run_replace(void)
{
	char path[PATH_MAX] = "", dir[PATH_MAX];
	_close_ int resolver = -1;
	struct stat st;
	int err;

	if (resolver_path(path))
		resolver = open_tree(AT_FDCWD, "/etc/resolv.conf", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
	if (!stat("/run", &st)) {
		err = tmpfs_mount("/run", MS_NOSUID | MS_NODEV, "mode=0755");
		if (err == 0)
			err = fs_mkdir_all(MOUNTS_NOTICES, 0755);
		if (err < 0)
			return err;
	}
	if (!lstat("/var/run", &st) && S_ISDIR(st.st_mode)) {
		err = tmpfs_mount("/var/run", MS_NOSUID | MS_NODEV, "mode=0755");
		if (err < 0)
			return err;
	}
	if (resolver < 0)
		return 0;
	memcpy(dir, path, strlen(path) + 1);
	*strrchr(dir, '/') = '\0';
	err = fs_mkdir_all(dir, 0755);
	if (err < 0)
		return err;
	err = tree_set_readonly(resolver, "", AT_EMPTY_PATH);
	if (err < 0)
		return err;
	return tree_put(resolver, path);
}

/* The table writes space, tab, newline and backslash as three octal digits. */
static void octal_decode(char *text)
{
	char *out = text;

	for (const char *in = text; *in; out++) {
		if (in[0] == '\\' && in[1] && in[2] && in[3]) {
			*out = (char)((in[1] - '0') * 64 + (in[2] - '0') * 8 + (in[3] - '0'));
			in += 4;
		} else {
			*out = *in++;
		}
	}
	*out = '\0';
}

static bool type_is_hidden(const char *type)
{
	for (size_t i = 0; i < ARRAY_SIZE(hidden_types); i++)
		if (!strcmp(type, hidden_types[i]))
			return true;
	return false;
}

/*
 * One line: "ID PARENT MAJOR:MINOR ROOT POINT OPTIONS [FIELDS...] - TYPE SOURCE OPTIONS".
 * The device must be the one that the path leads to now: a mount that something else covers is
 * out of sight already, and what covers it is not ours to hide.
 */
static int mount_hide(char *line, const char **ret_place)
{
	static char place[PATH_MAX];
	char point[PATH_MAX] = "", type[64];
	const char *rest = strstr(line, " - ");
	unsigned major_nr, minor_nr;
	struct stat st;
	int err;

	if (!rest || sscanf(line, "%*u %*u %u:%u %*s %4095s", &major_nr, &minor_nr, point) != 3 ||
	    sscanf(rest, " - %63s", type) != 1)
		return -EPROTO;
	octal_decode(point);
	if (!type_is_hidden(type) || !strcmp(point, "/sys") || below(point, "/proc") || below(point, "/dev") ||
	    below(point, "/run"))
		return 0;
	if (stat(point, &st) < 0 || st.st_dev != makedev(major_nr, minor_nr))
		return 0;
	err = path_hide(point);
	if (err < 0)
		*ret_place = memcpy(place, point, strlen(point) + 1);
	return err;
}

static int table_hide(char *table, const char **ret_place)
{
	for (char *save = NULL, *line = strtok_r(table, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		int err = mount_hide(line, ret_place);

		if (err < 0)
			return err;
	}
	return 0;
}

static int paths_each(const char *const *paths, size_t n, int (*fn)(const char *path), const char **ret_place)
{
	for (size_t i = 0; i < n; i++) {
		int err = fn(paths[i]);

		if (err < 0) {
			*ret_place = paths[i];
			return err;
		}
	}
	return 0;
}

/* A window into the host's directory: what the daemon writes there later is seen at once, and nothing can be written
 * from this side. */
static int notices_open(const char *path, int *ret_tree)
{
	struct mount_attr attr = {
		.attr_set = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC,
	};

	if (!path)
		return 0;
	*ret_tree = open_tree(AT_FDCWD, path, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
	if (*ret_tree < 0 || mount_setattr(*ret_tree, "", AT_EMPTY_PATH, &attr, sizeof(attr)) < 0)
		return -errno;
	return 0;
}

static int notices_put(int tree)
{
	if (tree < 0)
		return 0;
	return move_mount(tree, "", AT_FDCWD, MOUNTS_NOTICES, MOVE_MOUNT_F_EMPTY_PATH) < 0 ? -errno : 0;
}

static int sys_make_readonly(void)
{
	int err = tree_set_readonly(AT_FDCWD, "/sys", AT_RECURSIVE);

	return err == -ENOENT || err == -EINVAL ? 0 : err; /* EINVAL: nothing is mounted there */
}

/* Read-only from here up; the directories that stay writable are cloned before and put back over themselves. A
 * clone keeps what was read-only already. */
static int root_make_readonly(const char *cwd, const char **ret_place)
{
	const char *writable[] = { "/tmp", "/var/tmp", strcmp(cwd, "/") ? cwd : NULL };
	int trees[ARRAY_SIZE(writable)], err;

	for (size_t i = 0; i < ARRAY_SIZE(writable); i++)
		trees[i] = writable[i] ? open_tree(AT_FDCWD, writable[i],
						   OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE)
				       : -1;
	err = tree_set_readonly(AT_FDCWD, "/", AT_RECURSIVE);
	*ret_place = "/";
	for (size_t i = 0; i < ARRAY_SIZE(writable); i++) {
		if (trees[i] < 0)
			continue; /* there is none */
		if (err == 0 && move_mount(trees[i], "", AT_FDCWD, writable[i], MOVE_MOUNT_F_EMPTY_PATH) < 0) {
			err = -errno;
			*ret_place = writable[i];
		}
		close(trees[i]);
	}
	return err;
}

int mounts_confine(const struct mounts_plan *plan, const char **ret_place)
{
	size_t n_hidden = 0;
	_close_ int notices = -1;
	_free_ char *table = NULL;
	const char *place = "/";
	int err;

	/* Private, not slave: a mount that the host makes later must not appear in here past our covers. */
	err = mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ? -errno : 0;
	if (err < 0)
		goto out;
	place = "/proc/self/mountinfo"; /* of the caller's /proc, before it is covered */
	err = fs_read_at(AT_FDCWD, place, MOUNTINFO_BYTES, &table);
	if (err < 0)
		goto out;
	place = MOUNTS_NOTICES; /* from the host's /run, before it is covered */
	err = notices_open(plan->notices, &notices);
	if (err < 0)
		goto out;
	/* Before anything is mounted that has to be writable. */
	err = plan->readonly ? root_make_readonly(plan->cwd, &place) : 0;
	if (err < 0)
		goto out;
	place = "/proc";
	err = mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) < 0 ? -errno : 0;
	if (err < 0)
		goto out;
	err = paths_each(proc_readonly, ARRAY_SIZE(proc_readonly), path_make_readonly, &place);
	if (err < 0)
		goto out;
	place = "/dev";
	err = dev_replace();
	if (err < 0)
		goto out;
	place = "/run";
	err = run_replace();
	if (err < 0)
		goto out;
	/* The fixed directories first: most of the table's entries lie below them and are then gone. */
	err = paths_each(always_hidden, ARRAY_SIZE(always_hidden), path_hide, &place);
	if (err < 0)
		goto out;
	err = table_hide(table, &place);
	if (err < 0)
		goto out;
	while (plan->hidden && plan->hidden[n_hidden])
		n_hidden++;
	err = paths_each(plan->hidden, n_hidden, path_hide, &place);
	if (err < 0)
		goto out;
	place = MOUNTS_NOTICES; /* over what hides the daemon's directory, when that is its name */
	err = notices_put(notices);
	if (err < 0)
		goto out;
	place = "/sys";
	err = sys_make_readonly();
out:
	if (err < 0)
		*ret_place = place;
	return err;
}
