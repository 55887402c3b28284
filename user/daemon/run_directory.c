/* SPDX-License-Identifier: MIT */
#include "daemon/run_directory.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stddef.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "base/cleanup.h"
#include "base/fs.h"
#include "base/log.h"
#include "vocab/limits.h"

int lock_take(const char *dir, mode_t mode, int *ret_fd)
{
	char path[FS_PATH_SIZE], pid[32];
	_close_ int fd = -1;
	_free_ char *holder = NULL;
	const mode_t mask = umask(0777 & ~mode); /* the process's own is for files that are nobody else's */
	int r = fs_mkdir_all(dir, mode);

	umask(mask);
	if (r == 0)
		r = fs_path(path, "%s/lock", dir);
	if (r < 0) {
		log_error("%s: %s", dir, strerror(-r));
		return r;
	}
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) < 0) {
		r = -errno;
		if (r == -EWOULDBLOCK && fs_read_at(AT_FDCWD, path, 64, &holder) == 0)
			log_error("%s: in use by another netpawld, pid %s", dir, holder);
		else
			log_error("%s: %s", path, strerror(-r));
		return r;
	}
	snprintf(pid, sizeof(pid), "%d", (int)getpid());
	if (ftruncate(fd, 0) < 0 || pwrite(fd, pid, strlen(pid), 0) < 0)
		log_warning("%s: %s", path, strerror(errno)); /* only a name for the next one's message */
	*ret_fd = take_fd(fd);
	return 0;
}

void systemd_notify(const char *state)
{
	const char *path = getenv("NOTIFY_SOCKET");
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	_close_ int fd = -1;
	size_t len = path ? strlen(path) : 0;

	if (!len || len >= sizeof(address.sun_path))
		return;
	memcpy(address.sun_path, path, len);
	if (path[0] == '@')
		address.sun_path[0] = '\0';
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || sendto(fd, state, strlen(state), MSG_NOSIGNAL, (struct sockaddr *)&address,
			     (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len)) < 0)
		log_warning("NOTIFY_SOCKET: %s", strerror(errno));
}

unsigned cpus_count(void)
{
	cpu_set_t set;
	int n = sched_getaffinity(0, sizeof(set), &set) < 0 ? 1 : CPU_COUNT(&set);

	return n < NP_WORKERS_MAX ? (unsigned)n : NP_WORKERS_MAX;
}
