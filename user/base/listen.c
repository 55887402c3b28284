/* SPDX-License-Identifier: MIT */
#include "base/listen.h"

#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "base/cleanup.h"

static int bind_as(int fd, const struct sockaddr_un *addr)
{
	mode_t mask = umask(0117); /* bind() makes the file with 0777 less this: there is no later moment to fix it */
	int r = bind(fd, (const struct sockaddr *)addr, sizeof(*addr)) < 0 ? -errno : 0;

	umask(mask);
	return r;
}

/* Listens before the name appears, so that whoever finds it can connect. */
static int listen_publish(int fd, const char *temporary, const char *path, int backlog, struct listen_file *ret_file)
{
	struct stat st;

	if (listen(fd, backlog) < 0 || lstat(temporary, &st) < 0)
		return -errno;
	if (rename(temporary, path) < 0)
		return -errno;
	*ret_file = (struct listen_file){ st.st_dev, st.st_ino };
	return 0;
}

int listen_unix(const char *path, int backlog, struct listen_file *ret_file)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	_close_ int fd = -1;
	struct stat st;
	int n, r;

	n = snprintf(addr.sun_path, sizeof(addr.sun_path), "%s.new", path);
	if (n < 0 || (size_t)n >= sizeof(addr.sun_path))
		return -ENAMETOOLONG;
	if (lstat(path, &st) == 0 && !S_ISSOCK(st.st_mode))
		return -EEXIST;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	if (unlink(addr.sun_path) < 0 && errno != ENOENT)
		return -errno;
	r = bind_as(fd, &addr);
	if (r < 0)
		return r;
	r = listen_publish(fd, addr.sun_path, path, backlog, ret_file);
	if (r < 0) {
		unlink(addr.sun_path);
		return r;
	}
	return take_fd(fd);
}

void listen_remove(const char *path, const struct listen_file *file)
{
	struct stat st;

	if (lstat(path, &st) == 0 && st.st_dev == file->dev && st.st_ino == file->ino)
		unlink(path);
}
