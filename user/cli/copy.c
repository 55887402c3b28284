/* SPDX-License-Identifier: MIT */
#include "cli/copy.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/fs.h"
#include "cli/copy_file.h"
#include "cli/output.h"

int copy_open(struct copy *copy, const char *workspace)
{
	struct stat st;

	*copy = (struct copy){ .workspace = -1 };
	if (setgroups(0, NULL) < 0)
		return -errno;
	copy->workspace = open(workspace, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (copy->workspace < 0 || fstat(copy->workspace, &st) < 0)
		return -errno;
	copy->user = st.st_uid;
	copy->group = st.st_gid;
	copy_signals_catch();
	copy->umask = umask(0);
	umask(copy->umask);
	return st.st_uid ? 0 : -EPERM; /* it is nobody's yet: that would be as root */
}

void copy_close(struct copy *copy)
{
	cleanup_close(&copy->workspace);
}

/* -- trees ---------------------------------------------------------------------------- */

static int entry_put(struct copy *copy, enum copy_side from, int source, enum copy_side to, int dir, const char *name,
		     unsigned depth);

/* What was put where a directory should be is not opened: O_NOFOLLOW. */
static int directory_enter(struct copy *copy, enum copy_side to, int dir, const char *name, mode_t mode)
{
	int fd;

	copy_side_enter(copy, to);
	if (mkdirat(dir, name, copy_mode(copy, to, mode) | 0700) < 0 && errno != EEXIST)
		return -errno;
	fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

/* Whatever it turns out to be: to walk it and to say that it is left out costs, too. */
static bool is_one_too_many(struct copy *copy, enum copy_side to)
{
	return to == HOST && copy->max_files && ++copy->entries > copy->max_files;
}

static int child_put(struct copy *copy, enum copy_side from, int source, const char *name, enum copy_side to, int dir,
		     unsigned depth)
{
	_close_ int fd = -1;
	int r;

	snprintf(copy->name, sizeof(copy->name), "%s", name);
	copy->failed = copy->name;
	if (is_one_too_many(copy, to))
		return -E2BIG;
	copy_side_enter(copy, from);
	/* O_NONBLOCK: a FIFO must not hold us up. */
	fd = openat(source, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd < 0 && errno != ELOOP && errno != ENXIO)
		return -errno;
	r = fd < 0 ? -EINVAL : entry_put(copy, from, fd, to, dir, name, depth);
	if (r != -EINVAL && r != -EOPNOTSUPP)
		return r;
	copy->skipped++;
	output_clean_line(stderr, "netpawl: %s: neither a file nor a directory, left out", name);
	return 0;
}

static int directory_put(struct copy *copy, enum copy_side from, int source, mode_t mode, enum copy_side to, int dir,
			 const char *name, unsigned depth)
{
	_close_ int target = depth == COPY_DEPTH_MAX ? -ELOOP : directory_enter(copy, to, dir, name, mode);
	int again = target < 0 ? -1 : fcntl(source, F_DUPFD_CLOEXEC, 3), r = target < 0 ? target : 0;
	_closedir_ DIR *entries = again < 0 ? NULL : fdopendir(again);
	const struct dirent *entry;

	if (r < 0)
		return r;
	if (!entries) {
		cleanup_close(&again);
		return -EMFILE;
	}
	for (;;) {
		copy_side_enter(copy, from);
		errno = 0;
		entry = readdir(entries);
		if (!entry)
			return -errno;
		if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, ".."))
			continue;
		r = child_put(copy, from, source, entry->d_name, to, target, depth + 1);
		if (r < 0)
			return r;
	}
}

/* -EINVAL: it is of another kind; -EOPNOTSUPP: what has its name on the host is. */
static int entry_put(struct copy *copy, enum copy_side from, int source, enum copy_side to, int dir, const char *name,
		     unsigned depth)
{
	struct stat st;

	if (fstat(source, &st) < 0)
		return -errno;
	if (S_ISREG(st.st_mode))
		return to == HOST ? copy_file_out(copy, source, st.st_mode, dir, name, depth == 0)
				  : copy_file_in(copy, source, st.st_mode, dir, name);
	return S_ISDIR(st.st_mode) ? directory_put(copy, from, source, st.st_mode, to, dir, name, depth) : -EINVAL;
}

/* -- both ends -------------------------------------------------------------------------- */

/* By any name that leads to a directory, a target is the place to put the source in. */
static int place_open(const struct copy *copy, enum copy_side side, const char *path, int flags)
{
	int fd;

	copy_side_enter(copy, side);
	if (side == INSIDE)
		return fs_open_beneath(copy->workspace, *path ? path : ".", flags);
	fd = open(*path ? path : ".", flags | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

static const char *last_part(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* The directory that the target goes to, and its name there: a file's own, or the source's in a directory. */
static int target_open(const struct copy *copy, enum copy_side to, const char *path, const char *source,
		       char name[static FS_PATH_SIZE])
{
	_close_ int dir = place_open(copy, to, path, O_PATH | O_DIRECTORY);
	const char *last = last_part(path);
	char above[FS_PATH_SIZE], plain[FS_PATH_SIZE];
	size_t len = strlen(source);
	int r;

	while (len > 1 && source[len - 1] == '/')
		len--;
	r = fs_path(plain, "%.*s", (int)len, source);
	if (dir >= 0 && r == 0) {
		r = fs_path(name, "%s", last_part(plain));
		if (r == 0 && (!*name || !strcmp(name, ".") || !strcmp(name, "..")))
			r = -EISDIR; /* of the whole workspace, or of "..", there is no name to put it under */
		return r < 0 ? r : take_fd(dir);
	}
	if (dir != -ENOENT && dir != -ENOTDIR)
		return r < 0 ? r : dir;
	if (!*last || !strcmp(last, ".") || !strcmp(last, ".."))
		return dir;
	r = fs_path(name, "%s", last);
	if (r >= 0)
		r = fs_path(above, "%.*s", (int)(last - path), path);
	return r < 0 ? r : place_open(copy, to, above, O_PATH | O_DIRECTORY);
}

static int tree_copy(struct copy *copy, enum copy_side from, const char *source, enum copy_side to, const char *target)
{
	_close_ int fd = -1, dir = -1;
	char name[FS_PATH_SIZE];
	int r;

	copy->failed = source;
	fd = place_open(copy, from, source, O_RDONLY | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return fd;
	copy->failed = target;
	dir = target_open(copy, to, target, source, name);
	if (dir < 0)
		return dir;
	r = is_one_too_many(copy, to) ? -E2BIG : entry_put(copy, from, fd, to, dir, name, 0);
	if (copy->failed == target && (r == -EINVAL || r == -EFBIG || r == -E2BIG))
		copy->failed = source;
	return r;
}

int copy_in(struct copy *copy, const char *host, const char *inside)
{
	_close_ int dir = -1;
	char name[FS_PATH_SIZE];
	int r;

	if (strcmp(host, COPY_STREAM) != 0) {
		r = tree_copy(copy, HOST, host, INSIDE, inside);
	} else {
		copy->failed = inside;
		dir = target_open(copy, INSIDE, inside, "..", name);
		r = dir < 0 ? dir : copy_file_in(copy, STDIN_FILENO, 0666 & ~copy->umask, dir, name);
	}
	copy_side_enter(copy, HOST);
	return r;
}

int copy_out(struct copy *copy, const char *inside, const char *host)
{
	_close_ int fd = -1;
	struct stat st;
	int r;

	if (strcmp(host, COPY_STREAM) != 0) {
		r = tree_copy(copy, INSIDE, inside, HOST, host);
	} else {
		copy->failed = inside;
		fd = place_open(copy, INSIDE, inside, O_RDONLY | O_NONBLOCK | O_NOCTTY);
		r = fd < 0		  ? fd
		    : fstat(fd, &st) < 0  ? -errno
		    : S_ISREG(st.st_mode) ? copy_bytes(copy, fd, STDOUT_FILENO, copy->max_bytes)
					  : -EINVAL;
		copy->files += r == 0;
	}
	copy_side_enter(copy, HOST);
	return r;
}
