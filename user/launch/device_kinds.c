/* SPDX-License-Identifier: MIT */
#include "launch/device_kinds.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "base/arena.h"
#include "base/chars.h"
#include "base/cleanup.h"

#define TABLE_BYTES (1u << 20) /* of a file in /proc with a line for each driver */
#define MISC_MAJOR  10

bool device_is_harmless(dev_t device)
{
	switch (minor(device)) {
	case 3: /* null */
	case 5: /* zero */
	case 7: /* full */
	case 8: /* random */
	case 9: /* urandom */
		return major(device) == 1;
	default:
		return false;
	}
}

/* Graphics and computing. Of NVIDIA's not those that join hosts (nvlink, nvswitch, imex-channels). */
static bool driver_is_fit(const char *name)
{
	static const char *const fit[] = { "drm",	 "accel",	    "kfd",
					   "habanalabs", "neuron",	    "nvidia",
					   "nvidiactl",	 "nvidia-frontend", "nvidia-modeset",
					   "nvidia-uvm", "nvidia-caps" };

	return WORD_IS_ONE_OF(name, fit);
}

static bool misc_is_fit(const char *name)
{
	return !strcmp(name, "kvm");
}

/* Lines "NUMBER NAME", up to the one that begins the part about block devices. Of a number with several names all must be fit. */
static bool table_says_fit(const char *path, unsigned number, bool (*is_fit)(const char *name))
{
	_free_ char *table = NULL;
	bool fit = false;

	if (fs_read_at(AT_FDCWD, path, TABLE_BYTES, &table) < 0)
		return false;
	for (char *save = NULL, *line = strtok_r(table, "\n", &save); line && strcmp(line, "Block devices:") != 0;
	     line = strtok_r(NULL, "\n", &save)) {
		unsigned found;
		char name[64];

		if (sscanf(line, "%u %63s", &found, name) != 2 || found != number)
			continue;
		if (!is_fit(name))
			return false;
		fit = true;
	}
	return fit;
}

static bool device_is_fit(dev_t device)
{
	if (major(device) == MISC_MAJOR)
		return table_says_fit("/proc/misc", minor(device), misc_is_fit);
	return device_is_harmless(device) || table_says_fit("/proc/devices", major(device), driver_is_fit);
}

static int device_add(struct host *host, const char *path, const struct stat *st, char *problem)
{
	struct host_device device = { .device = st->st_dev, .inode = st->st_ino };

	if (!device_is_fit(st->st_rdev)) {
		snprintf(problem, DEVICES_PROBLEM_SIZE,
			 "sandbox: devices: %.100s is of no kind that a sandbox may have: graphics (drm, nvidia), "
			 "accelerators and /dev/kvm are",
			 path);
		return -EACCES;
	}
	for (size_t i = 0; i < host->n_devices; i++)
		if (!strcmp(host->devices[i].path, path))
			return 0;
	device.path = arena_text(host->arena, path, strlen(path));
	if (!device.path)
		return -ENOMEM;
	if (host->n_devices == ARRAY_SIZE(host->devices))
		return -E2BIG;
	if (st->st_mode & S_IRGRP && st->st_mode & S_IWGRP)
		device.group = st->st_gid;
	host->devices[host->n_devices++] = device;
	return 0;
}

/* What a name leads to has to be below /dev, too: a link could be to a file of anywhere. */
static int path_look(struct host *host, const char *path, bool directories, char *problem)
{
	char real[PATH_MAX], inside[PATH_MAX + 2];
	struct stat st;
	glob_t found;
	int r = 0;

	if (!realpath(path, real) || !path_below(real, "/dev") || lstat(real, &st) < 0)
		return 0;
	if (S_ISCHR(st.st_mode))
		return device_add(host, real, &st, problem);
	if (S_ISBLK(st.st_mode)) {
		snprintf(problem, DEVICES_PROBLEM_SIZE, "sandbox: devices: %.100s is a block device", real);
		return -EACCES;
	}
	if (!S_ISDIR(st.st_mode) || !directories)
		return 0;
	snprintf(inside, sizeof(inside), "%s/*", real);
	if (glob(inside, 0, NULL, &found) != 0)
		return 0;
	for (size_t i = 0; i < found.gl_pathc && r == 0; i++)
		r = path_look(host, found.gl_pathv[i], false, problem);
	globfree(&found);
	return r;
}

int devices_look(const char *pattern, struct host *host, char problem[static DEVICES_PROBLEM_SIZE])
{
	glob_t found;
	int r = glob(pattern, 0, NULL, &found);

	if (r == GLOB_NOMATCH)
		return 0;
	if (r != 0)
		return r == GLOB_NOSPACE ? -ENOMEM : -EIO;
	for (size_t i = 0; i < found.gl_pathc && r == 0; i++)
		r = path_look(host, found.gl_pathv[i], true, problem);
	globfree(&found);
	return r;
}

int devices_groups(const struct host *host, struct identity *identity)
{
	for (size_t i = 0; i < host->n_devices; i++) {
		bool known = host->devices[i].group == 0;

		for (int k = 0; k < identity->ngroups && !known; k++)
			known = identity->groups[k] == host->devices[i].group;
		if (known)
			continue;
		if (identity->ngroups == (int)ARRAY_SIZE(identity->groups))
			return -E2BIG;
		identity->groups[identity->ngroups++] = host->devices[i].group;
	}
	return 0;
}
