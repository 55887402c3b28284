/* SPDX-License-Identifier: MIT */
#include "base/fs.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>

#include "base/buf.h"
#include "base/cleanup.h"

#define OPEN_TRIES 64

int fs_write_all(int fd, const void *data, size_t len)
{
	const char *p = data;

	while (len) {
		ssize_t n = write(fd, p, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		p += n;
		len -= (size_t)n;
	}
	return 0;
}

int fs_write_at(int dirfd, const char *path, const char *text)
{
	_close_ int fd = openat(dirfd, path, O_WRONLY | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	/* One write, not fs_write_all: kernel files take a value whole or not at all. */
	if (write(fd, text, strlen(text)) < 0)
		return -errno;
	return 0;
}

int fs_read_fd(int fd, struct buf *out)
{
	char chunk[16384];

	for (;;) {
		ssize_t n = read(fd, chunk, sizeof(chunk));

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			return buf_error(out);
		buf_append(out, chunk, (size_t)n);
		if (buf_error(out))
			return buf_error(out);
	}
}

int fs_read_at(int dirfd, const char *path, size_t max, char **ret_text)
{
	_close_ int fd = openat(dirfd, path, O_RDONLY | O_CLOEXEC);
	_buf_ struct buf b = BUF_INIT(max);
	int r = fd < 0 ? -errno : fs_read_fd(fd, &b);

	if (r < 0)
		return r;
	*ret_text = buf_take(&b);
	return *ret_text ? 0 : -ENOMEM;
}

int fs_path(char path[static FS_PATH_SIZE], const char *fmt, ...)
{
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(path, FS_PATH_SIZE, fmt, ap);
	va_end(ap);
	if (n >= 0 && n < FS_PATH_SIZE)
		return 0;
	path[0] = '\0';
	return -ENAMETOOLONG;
}

int fs_path_of(int fd, char path[static FS_PATH_SIZE])
{
	char link[32];
	ssize_t n;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, path, FS_PATH_SIZE - 1);
	if (n < 0)
		return -errno;
	path[n] = '\0';
	return 0;
}

int fs_stdio_fill(void)
{
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
		/* What is written to a closed standard output has to fail: nobody reads it, and it must not count as told. */
		const int flags = (fd == STDOUT_FILENO ? O_RDONLY : O_RDWR) | O_CLOEXEC;

		/* It gets the least number that is free. */
		if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", flags) != fd)
			return -1;
	}
	return 0;
}

int fs_beside(char path[static FS_PATH_SIZE], const char *program)
{
	char self[FS_PATH_SIZE];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	char *slash;

	if (n < 0)
		return -errno;
	self[n] = '\0';
	slash = strrchr(self, '/');
	if (!slash)
		return -ENOENT;
	*slash = '\0';
	return fs_path(path, "%s/%s", self, program);
}

/* EAGAIN: something was renamed or mounted anywhere on the host while the kernel followed "..", and it could not tell whether the
 * path had left the directory. That says nothing of this path; but whoever does it all the time must not keep us here. */
static int open_within(int dir, const char *path, int flags, uint64_t resolve)
{
	const struct open_how how = { .flags = (uint64_t)(flags | O_CLOEXEC), .resolve = resolve };
	int fd = -1;

	for (unsigned tries = 0; tries < OPEN_TRIES; tries++) {
		fd = (int)syscall(SYS_openat2, dir, path, &how, sizeof(how));
		if (fd >= 0 || (errno != EAGAIN && errno != EINTR))
			break;
	}
	return fd < 0 ? -errno : fd;
}

int fs_open_beneath(int dir, const char *path, int flags)
{
	return open_within(dir, path, flags, RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS);
}

int fs_open_unlinked(int dir, const char *path, int flags)
{
	return open_within(dir, path, flags, RESOLVE_NO_SYMLINKS | (dir == AT_FDCWD ? 0 : RESOLVE_BENEATH));
}

int fs_mkdir_all(const char *path, mode_t mode)
{
	char partial[PATH_MAX];
	struct stat st;
	size_t len = strlen(path);

	if (!len || len >= sizeof(partial))
		return -ENAMETOOLONG;
	memcpy(partial, path, len + 1);
	for (char *slash = strchr(partial + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		if (mkdir(partial, 0755) < 0 && errno != EEXIST)
			return -errno;
		*slash = '/';
	}
	if (mkdir(path, mode) == 0)
		return 0;
	if (errno != EEXIST)
		return -errno;
	if (stat(path, &st) < 0)
		return -errno;
	return S_ISDIR(st.st_mode) ? 0 : -ENOTDIR;
}

int fs_open_private(const char *path)
{
	_close_ int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EPROTO;
	if ((st.st_mode & 07777) != 0600 && fchmod(fd, 0600) < 0)
		return -errno;
	return take_fd(fd);
}

int fs_sync_name(const char *path)
{
	char folder[FS_PATH_SIZE];
	const char *slash = strrchr(path, '/');
	_close_ int fd = -1;
	int r = fs_path(folder, "%.*s", slash ? (int)(slash - path) + 1 : 1, slash ? path : ".");

	if (r < 0)
		return r;
	fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 || fsync(fd) < 0 ? -errno : 0;
}

int fs_mount_apart(const char *path)
{
	_close_ int tree = open_tree(AT_FDCWD, path, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
	struct mount_attr readonly = { .attr_set = MOUNT_ATTR_RDONLY };

	if (tree < 0 || mount_setattr(tree, "", AT_EMPTY_PATH, &readonly, sizeof(readonly)) < 0)
		return -errno;
	return take_fd(tree);
}

int fs_open_apart(const char *path)
{
	_close_ int tree = fs_mount_apart(path);
	char reopen[32];
	int fd;

	if (tree < 0)
		return tree;
	snprintf(reopen, sizeof(reopen), "/proc/self/fd/%d", tree);
	fd = open(reopen, O_RDONLY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

#define TMPFS_TYPE 0x01021994
#define RAMFS_TYPE 0x858458f6

bool fs_is_in_memory(int fd)
{
	struct statfs fs;

	return fstatfs(fd, &fs) == 0 && (fs.f_type == TMPFS_TYPE || fs.f_type == RAMFS_TYPE);
}
