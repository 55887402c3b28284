/* SPDX-License-Identifier: MIT */
#include "kernel/cgroup.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/cgroup_kill.h"
#include "base/cleanup.h"
#include "base/fs.h"

#define FILEID_KERNFS 0xfe	 /* the kernel's file handle type for cgroups: the 64-bit id */
#define PROCS_MAX     (8u << 20) /* bytes of one cgroup.procs: a million processes */

/* On 64-bit kernels the inode number of a cgroup directory is the cgroup's id. */
int cgroup_id_of(const char *path, uint64_t *ret)
{
	struct stat st;

	if (stat(path, &st) < 0)
		return -errno;
	if (!S_ISDIR(st.st_mode))
		return -ENOTDIR;
	*ret = st.st_ino;
	return 0;
}

/* Below the mount there are no symbolic links, so a path there without dots and double slashes is as realpath() would have
 * it. That looks at every component once more, which a start with 10,000 sandboxes need not wait for. */
static bool is_plain(const char *mount, const char *path)
{
	size_t len = strlen(mount);

	if (strncmp(path, mount, len) != 0 || path[len] != '/' || strlen(path) >= PATH_MAX)
		return false;
	for (const char *c = path + len; *c; c++)
		if (*c == '/' && (!c[1] || c[1] == '/' || c[1] == '.'))
			return false;
	return true;
}

int cgroup_look(const char *mount, const char *path, struct gate_cgroup *ret)
{
	char real[PATH_MAX];
	size_t len = strlen(mount);
	struct gate_cgroup cg = { 0 };
	int r;

	if (is_plain(mount, path))
		strcpy(real, path);
	else if (!realpath(path, real))
		return -errno;
	if (strncmp(real, mount, len) || real[len] != '/')
		return -EXDEV;
	for (const char *c = real + len; *c; c++)
		cg.depth += *c == '/';
	r = cgroup_id_of(real, &cg.id);
	if (r < 0)
		return r;
	strcpy(cg.path, real);
	*ret = cg;
	return 0;
}

int cgroup_make(const char *mount, const char *path, struct gate_cgroup *ret)
{
	int r = fs_mkdir_all(path, 0755);

	return r < 0 ? r : cgroup_look(mount, path, ret);
}

int cgroup_by_id(const char *mount, uint64_t id, struct gate_cgroup *ret)
{
	struct {
		struct file_handle header;
		uint64_t id;
	} handle = { .header = { .handle_bytes = sizeof(id), .handle_type = FILEID_KERNFS }, .id = id };
	_close_ int mount_fd = open(mount, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	_close_ int fd = -1;
	char path[FS_PATH_SIZE];
	int r;

	if (mount_fd < 0)
		return -errno;
	fd = open_by_handle_at(mount_fd, &handle.header, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return errno == ESTALE ? -ENOENT : -errno;
	r = fs_path_of(fd, path);
	return r < 0 ? r : cgroup_look(mount, path, ret); /* -ENOENT for "PATH (deleted)" */
}

bool cgroup_populated(const struct gate_cgroup *cg)
{
	char path[FS_PATH_SIZE];
	_free_ char *text = NULL;
	int r;

	fs_path(path, "%s/cgroup.events", cg->path);
	r = fs_read_at(AT_FDCWD, path, 4096, &text);
	if (r == -ENOENT || r == -ENODEV) /* the directory is gone */
		return false;
	return r < 0 || !strstr(text, "populated 0");
}

struct below {
	int (*fn)(void *data, const char *path, uint64_t id);
	void *data;
};

/* Depth first, parents before children. Bounded by what the kernel allows as cgroup depth. */
static int each_below(const char *path, const struct below *below)
{
	_closedir_ DIR *dir = opendir(path);
	uint64_t id = 0;
	int r;

	if (!dir)
		return errno == ENOENT ? 0 : -errno;
	r = cgroup_id_of(path, &id);
	if (r == 0)
		r = below->fn(below->data, path, id);
	for (struct dirent *e; r == 0 && (e = readdir(dir));) {
		char child[FS_PATH_SIZE];

		if (e->d_type != DT_DIR || e->d_name[0] == '.')
			continue;
		if (fs_path(child, "%s/%s", path, e->d_name) < 0)
			return -ENAMETOOLONG;
		r = each_below(child, below);
	}
	return r;
}

int cgroup_each_below(const struct gate_cgroup *cg, int (*fn)(void *data, const char *path, uint64_t id), void *data)
{
	struct below below = { fn, data };

	return each_below(cg->path, &below);
}

int cgroup_each_child(const char *mount, const struct gate_cgroup *cg,
		      int (*fn)(void *data, const struct gate_cgroup *child), void *data)
{
	_closedir_ DIR *dir = opendir(cg->path);
	int r = 0;

	if (!dir)
		return -errno;
	for (struct dirent *e; r >= 0 && (e = readdir(dir));) {
		char path[FS_PATH_SIZE];
		struct gate_cgroup child;

		if (e->d_type != DT_DIR || e->d_name[0] == '.' || fs_path(path, "%s/%s", cg->path, e->d_name) < 0)
			continue;
		if (cgroup_look(mount, path, &child) == 0)
			r = fn(data, &child);
	}
	return r < 0 ? r : 0;
}

struct processes {
	const char *top;
	int (*fn)(void *data, pid_t pid);
	void *data;
};

static int each_process_of(void *data, const char *path, uint64_t id)
{
	const struct processes *processes = data;
	char procs[FS_PATH_SIZE];
	_free_ char *text = NULL;
	char *save = NULL;
	int r;

	(void)id;
	if (fs_path(procs, "%s/cgroup.procs", path) < 0)
		return -ENAMETOOLONG;
	r = fs_read_at(AT_FDCWD, procs, PROCS_MAX, &text);
	/* A threaded one does not tell: its domain does, which is above it. Above the top nobody has looked. */
	if (r == -ENOENT || r == -ENODEV || (r == -EOPNOTSUPP && strcmp(path, processes->top) != 0))
		return 0;
	if (r < 0)
		return r;
	for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		r = processes->fn(processes->data, (pid_t)strtol(line, NULL, 10));
		if (r)
			return r;
	}
	return 0;
}

int cgroup_each_process(const struct gate_cgroup *cg, int (*fn)(void *data, pid_t pid), void *data)
{
	struct processes processes = { cg->path, fn, data };

	return cgroup_each_below(cg, each_process_of, &processes);
}

int process_each_thread(pid_t pid, int (*fn)(void *data, pid_t thread), void *data)
{
	char path[FS_PATH_SIZE];
	_closedir_ DIR *dir = NULL;
	int r = 0;

	fs_path(path, "/proc/%d/task", (int)pid);
	dir = opendir(path);
	if (!dir)
		return errno == ENOENT || errno == ESRCH ? 0 : -errno; /* gone */
	for (struct dirent *e; r == 0 && (e = readdir(dir));)
		if (e->d_name[0] != '.')
			r = fn(data, (pid_t)strtol(e->d_name, NULL, 10));
	return r;
}

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)ftw;
	if (type != FTW_DP)
		return 0; /* the control files go with their directory */
	return rmdir(path) < 0 && errno != ENOENT ? -errno : 0;
}

int cgroup_remove(const struct gate_cgroup *cg)
{
	int r = cgroup_kill(cg->path);

	if (r == -ENOENT || r == -ENODEV)
		return 0; /* gone already */
	if (r < 0)
		return r;
	/* Most have nothing below them, and are empty by now. */
	if (rmdir(cg->path) == 0)
		return 0;
	/* The kill is asynchronous; processes are gone within a few milliseconds unless they hang in the kernel. */
	for (int i = 0; i < 100; i++) {
		r = nftw(cg->path, remove_entry, 16, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
		if (r == 0 || access(cg->path, F_OK) < 0)
			return 0;
		nanosleep(&(struct timespec){ .tv_nsec = i < 20 ? 200000 : 2000000 }, NULL);
	}
	return -EBUSY;
}

int cgroup_each_above(const char *mount, pid_t pid, int (*fn)(void *data, uint64_t id), void *data)
{
	char proc[64], path[FS_PATH_SIZE];
	_free_ char *text = NULL;
	char *line, *end;
	size_t len = strlen(mount);
	int r;

	if (pid <= 0)
		return -ESRCH; /* a process in a pid namespace that we cannot see */
	snprintf(proc, sizeof(proc), "/proc/%d/cgroup", (int)pid);
	r = fs_read_at(AT_FDCWD, proc, 65536, &text);
	if (r < 0)
		return r;
	line = !strncmp(text, "0::", 3) ? text : strstr(text, "\n0::");
	if (!line)
		return -ENOENT;
	line = strstr(line, "0::") + 3;
	end = strchr(line, '\n');
	if (end)
		*end = '\0';
	if (strstr(line, "/..") || strstr(line, " (deleted)") || fs_path(path, "%s%s", mount, line) < 0)
		return -ENOENT;
	for (end = path + strlen(path); end > path + len; end = strrchr(path, '/')) {
		uint64_t id = 0;

		*end = '\0';
		if (strlen(path) <= len)
			break;
		r = cgroup_id_of(path, &id);
		if (r == 0)
			r = fn(data, id);
		if (r)
			return r;
	}
	return 0;
}
