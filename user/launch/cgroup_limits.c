/* SPDX-License-Identifier: MIT */
#include "launch/cgroup_limits.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"

#define TEXT_MAX      (32u << 20) /* of a mount table */
#define CPU_PERIOD_US 100000
#define REMOVE_TRIES  2000 /* of 1 ms each: the last process leaves its group some time after it is gone */

struct setting {
	const char *file;
	uint64_t value;
	bool optional; /* a kernel without swap has no such file */
};

/* One controller: what to write where, in either version. */
struct control {
	const char *option; /* --memory */
	const char *name;   /* of the controller */
	bool wanted;
	const char *probe; /* file of v2 that says that the controller is there */
	char v2_text[64];  /* what goes into it */
	struct setting v2_more;
	struct setting v1[2];
};

static int setting_write(const char *dir, const char *file, const char *text)
{
	char path[FS_PATH_SIZE];
	int r = fs_path(path, "%s/%s", dir, file);

	return r < 0 ? r : fs_write_at(AT_FDCWD, path, text);
}

static bool setting_exists(const char *dir, const char *file)
{
	char path[FS_PATH_SIZE];

	return fs_path(path, "%s/%s", dir, file) == 0 && access(path, F_OK) == 0;
}

static int number_write(const char *dir, const struct setting *setting)
{
	char text[32];

	if (!setting->file || (setting->optional && !setting_exists(dir, setting->file)))
		return 0;
	snprintf(text, sizeof(text), "%" PRIu64, setting->value);
	return setting_write(dir, setting->file, text);
}

/* -- v2 ---------------------------------------------------------------------------- */

/* Asked before it is asked for: a write that is refused waits all the same, for whatever the kernel is about to take away. */
static bool controller_is_there(const char *dir, const char *name)
{
	char path[FS_PATH_SIZE];
	_free_ char *text = NULL;

	if (fs_path(path, "%s/cgroup.controllers", dir) < 0 || fs_read_at(AT_FDCWD, path, 4096, &text) < 0)
		return false;
	for (char *save = NULL, *word = strtok_r(text, " \n", &save); word; word = strtok_r(NULL, " \n", &save))
		if (!strcmp(word, name))
			return true;
	return false;
}

/* A controller reaches a cgroup when each one above hands it down. Asked for from the slice's parent down: higher up is
 * not ours, and has it already or will not. */
static void controller_try(const char *cgroup, const char *name)
{
	char dir[FS_PATH_SIZE], text[32];
	char *slash;

	if (fs_path(dir, "%s", cgroup) < 0 || !(slash = strrchr(dir, '/')))
		return;
	*slash = '\0'; /* the slice */
	slash = strrchr(dir, '/');
	if (!slash)
		return;
	snprintf(text, sizeof(text), "+%s", name);
	*slash = '\0'; /* its parent */
	if (!controller_is_there(dir, name))
		return;
	if (setting_write(dir, "cgroup.subtree_control", text) == 0) {
		*slash = '/';
		setting_write(dir, "cgroup.subtree_control", text);
	}
}

/* 1 when it is set, 0 when v2 has no such controller here, -errno. */
static int control_set_v2(const struct control *control, struct groups *groups)
{
	int r;

	if (!setting_exists(groups->unified, control->probe))
		controller_try(groups->unified, control->name);
	if (!setting_exists(groups->unified, control->probe))
		return 0;
	r = setting_write(groups->unified, control->probe, control->v2_text);
	if (r == 0)
		r = number_write(groups->unified, &control->v2_more);
	return r < 0 ? r : 1;
}

/* -- v1 ---------------------------------------------------------------------------- */

static bool words_have(const char *words, const char *word)
{
	size_t len = strlen(word);

	for (; *words; words += strcspn(words, ","), words += *words == ',')
		if (!strncmp(words, word, len) && (words[len] == ',' || words[len] == '\0'))
			return true;
	return false;
}

/* Our own group in the hierarchy of a controller, as /proc/self/cgroup has it: "N:memory:/a/b". */
static int own_group(const char *controller, char group[static FS_PATH_SIZE])
{
	_free_ char *text = NULL;
	int r = fs_read_at(AT_FDCWD, "/proc/self/cgroup", TEXT_MAX, &text);

	for (char *save = NULL, *line = r < 0 ? NULL : strtok_r(text, "\n", &save); line;
	     line = strtok_r(NULL, "\n", &save)) {
		char *names = strchr(line, ':'), *path = names ? strchr(names + 1, ':') : NULL;

		if (!path)
			continue;
		*path++ = '\0';
		if (words_have(names + 1, controller))
			return fs_path(group, "%s", path);
	}
	return -ENOENT;
}

/* Where the hierarchy is mounted, and which group is at that mount's root. */
static int hierarchy_find(const char *controller, char point[static FS_PATH_SIZE], char root[static FS_PATH_SIZE])
{
	_free_ char *table = NULL;
	int r = fs_read_at(AT_FDCWD, "/proc/self/mountinfo", TEXT_MAX, &table);

	for (char *save = NULL, *line = r < 0 ? NULL : strtok_r(table, "\n", &save); line;
	     line = strtok_r(NULL, "\n", &save)) {
		const char *rest = strstr(line, " - cgroup ");
		char options[4096];

		if (rest && sscanf(rest, " - cgroup %*s %4095s", options) == 1 && words_have(options, controller) &&
		    sscanf(line, "%*u %*u %*s %4095s %4095s", root, point) == 2)
			return 0;
	}
	return -ENOENT;
}

/* The directory of our own group; the mount's root when ours is not below it. */
static int v1_parent(const char *controller, char path[static FS_PATH_SIZE])
{
	char point[FS_PATH_SIZE], root[FS_PATH_SIZE], group[FS_PATH_SIZE];
	size_t len;
	int r = hierarchy_find(controller, point, root);

	if (r < 0)
		return r;
	len = strcmp(root, "/") ? strlen(root) : 0;
	if (own_group(controller, group) == 0 && !strncmp(group, root, len) && strcmp(group + len, "/") != 0 &&
	    fs_path(path, "%s%s", point, group + len) == 0 && access(path, F_OK) == 0)
		return 0;
	return fs_path(path, "%s", point);
}

/* Index of our group at path, which is made when it is not there yet: controllers of one hierarchy share it. */
static int v1_group(struct groups *groups, const char *path)
{
	char tasks[FS_PATH_SIZE];
	int i = (int)groups->n_v1;

	for (int k = 0; k < i; k++)
		if (!strcmp(groups->v1[k].path, path))
			return k;
	if (fs_path(groups->v1[i].path, "%s", path) < 0 || fs_path(tasks, "%s/tasks", path) < 0)
		return -ENAMETOOLONG;
	if (mkdir(path, 0755) < 0)
		return -errno;
	groups->n_v1++;
	groups->v1[i].tasks = open(tasks, O_WRONLY | O_CLOEXEC);
	return groups->v1[i].tasks < 0 ? -errno : i;
}

/* "netpawl.SLICE." and the sandbox's id: daemons that run side by side know their own. */
static int v1_prefix(const struct groups *groups, char prefix[static FS_PATH_SIZE])
{
	char slice[FS_PATH_SIZE];
	char *slash;

	if (fs_path(slice, "%s", groups->unified) < 0)
		return -ENAMETOOLONG;
	*strrchr(slice, '/') = '\0';
	slash = strrchr(slice, '/');
	return fs_path(prefix, "netpawl.%s.", slash ? slash + 1 : "");
}

/* A netpawl that was killed could not remove its group. Its sandbox is gone; one that is there has its cgroup before it
 * has this, and keeps it for longer. A group with processes in it stays by itself. */
static void v1_sweep(const struct groups *groups, const char *parent, const char *prefix)
{
	_closedir_ DIR *dir = opendir(parent);
	const struct dirent *entry;

	while (dir && (entry = readdir(dir))) {
		char path[FS_PATH_SIZE];

		if (strncmp(entry->d_name, prefix, strlen(prefix)) != 0 ||
		    fs_path(path, "%.*s/%s", (int)(strrchr(groups->unified, '/') - groups->unified), groups->unified,
			    entry->d_name + strlen(prefix)) < 0)
			continue;
		if (access(path, F_OK) < 0 && errno == ENOENT && fs_path(path, "%s/%s", parent, entry->d_name) == 0)
			rmdir(path);
	}
}

static int control_set_v1(const struct control *control, struct groups *groups)
{
	char parent[FS_PATH_SIZE], prefix[FS_PATH_SIZE], path[FS_PATH_SIZE];
	int r = v1_parent(control->name, parent);

	if (r == 0)
		r = v1_prefix(groups, prefix);
	if (r == 0)
		r = fs_path(path, "%s/%s%s", parent, prefix, strrchr(groups->unified, '/') + 1);
	if (r == 0) {
		v1_sweep(groups, parent, prefix);
		r = v1_group(groups, path);
	}
	for (size_t i = 0; i < ARRAY_SIZE(control->v1) && r >= 0; i++)
		r = number_write(path, &control->v1[i]);
	if (r >= 0 && !strcmp(control->name, "memory"))
		r = fs_path(groups->memory, "%s", path);
	return r < 0 ? r : 0;
}

/* -- both ---------------------------------------------------------------------------- */

static int control_set(const struct control *control, bool best_effort, struct groups *groups,
		       char problem[static GROUPS_PROBLEM_SIZE])
{
	int r = control_set_v2(control, groups);
	size_t len = strlen(groups->missing);

	if (r == 1 && !strcmp(control->name, "memory"))
		fs_path(groups->memory, "%s", groups->unified);
	if (r == 0)
		r = control_set_v1(control, groups);
	if (r >= 0)
		return 0;
	if (best_effort) {
		snprintf(groups->missing + len, sizeof(groups->missing) - len, "%s%s", len ? ", " : "",
			 control->option);
		return 0;
	}
	snprintf(problem, GROUPS_PROBLEM_SIZE, "%s cannot be set: %s%s%s", control->option,
		 r == -ENOENT ? "this host has no controller " : "", r == -ENOENT ? control->name : strerror(-r),
		 "; --best-effort goes on without it");
	return r;
}

int groups_make(const char *cgroup, const struct limits *limits, struct groups *ret,
		char problem[static GROUPS_PROBLEM_SIZE])
{
	const uint64_t quota = limits->cpus * CPU_PERIOD_US / 1000;
	struct control controls[] = {
		{ "--memory",
		  "memory",
		  limits->memory != 0,
		  "memory.max",
		  "",
		  { "memory.swap.max", 0, true },
		  { { "memory.limit_in_bytes", limits->memory, false },
		    { "memory.memsw.limit_in_bytes", limits->memory, true } } },
		{ "--pids",
		  "pids",
		  limits->pids != 0,
		  "pids.max",
		  "",
		  { NULL, 0, false },
		  { { "pids.max", limits->pids, false }, { NULL, 0, false } } },
		{ "--cpus",
		  "cpu",
		  limits->cpus != 0,
		  "cpu.max",
		  "",
		  { NULL, 0, false },
		  { { "cpu.cfs_period_us", CPU_PERIOD_US, false }, { "cpu.cfs_quota_us", quota, false } } },
	};
	int r = 0;

	snprintf(controls[0].v2_text, sizeof(controls[0].v2_text), "%" PRIu64, limits->memory);
	snprintf(controls[1].v2_text, sizeof(controls[1].v2_text), "%" PRIu64, limits->pids);
	snprintf(controls[2].v2_text, sizeof(controls[2].v2_text), "%" PRIu64 " %d", quota, CPU_PERIOD_US);
	ret->n_v1 = 0;
	ret->memory[0] = ret->missing[0] = '\0';
	if (fs_path(ret->unified, "%s", cgroup) < 0 || !strrchr(cgroup, '/')) {
		snprintf(problem, GROUPS_PROBLEM_SIZE, "the path of the cgroup is too long");
		return -ENAMETOOLONG;
	}
	for (size_t i = 0; i < ARRAY_SIZE(controls) && r == 0; i++)
		if (controls[i].wanted)
			r = control_set(&controls[i], limits->best_effort, ret, problem);
	/* Without a limit, too, v2 may count what is used. */
	if (r == 0 && !ret->memory[0] && setting_exists(ret->unified, "memory.peak"))
		r = fs_path(ret->memory, "%s", ret->unified);
	return r;
}

int groups_enter(const struct groups *groups)
{
	for (size_t i = 0; i < groups->n_v1; i++)
		if (write(groups->v1[i].tasks, "0", 1) < 0)
			return -errno;
	return 0;
}

/* The number after a word at the start of a line; with word "" the number that the file is. */
static uint64_t number_read(const char *dir, const char *file, const char *word)
{
	char path[FS_PATH_SIZE];
	_free_ char *text = NULL;

	if (fs_path(path, "%s/%s", dir, file) < 0 || fs_read_at(AT_FDCWD, path, 65536, &text) < 0)
		return 0;
	for (char *line = text; line && *line; line = strchr(line, '\n'), line += line ? 1 : 0)
		if (!strncmp(line, word, strlen(word)))
			return strtoull(line + strlen(word), NULL, 10);
	return 0;
}

void groups_usage(const struct groups *groups, struct usage *ret)
{
	bool unified = !strcmp(groups->memory, groups->unified);

	ret->cpu_us = number_read(groups->unified, "cpu.stat", "usage_usec ");
	ret->memory_peak = ret->memory_kills = 0;
	if (!groups->memory[0])
		return;
	ret->memory_peak = number_read(groups->memory, unified ? "memory.peak" : "memory.max_usage_in_bytes", "");
	ret->memory_kills = number_read(groups->memory, unified ? "memory.events" : "memory.oom_control", "oom_kill ");
}

int groups_kill(const struct groups *groups)
{
	return setting_write(groups->unified, "cgroup.kill", "1");
}

void groups_remove(struct groups *groups)
{
	for (size_t i = 0; i < groups->n_v1; i++) {
		cleanup_close(&groups->v1[i].tasks);
		for (unsigned k = 0; rmdir(groups->v1[i].path) < 0 && errno == EBUSY && k < REMOVE_TRIES; k++)
			usleep(1000);
	}
	groups->n_v1 = 0;
}
