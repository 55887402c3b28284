/* SPDX-License-Identifier: MIT */
/*
 * The placeholder key outlives a daemon, as sandboxes do: they hold placeholders. It is kept in the run directory, if that is in
 * memory: it touches no disk, as keys of CAs do not. It goes with the host's next start, as sandboxes do.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fs.h"
#include "base/log.h"
#include "vault/vault_internal.h"

static bool key_read(const char *path, struct placeholder_key *ret)
{
	_close_ int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	struct stat st;

	return fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_uid == geteuid() && st.st_nlink == 1 &&
	       !(st.st_mode & 077) && st.st_size == (off_t)sizeof(*ret) &&
	       read(fd, ret, sizeof(*ret)) == (ssize_t)sizeof(*ret);
}

/* Beside it, then over it: a crash leaves a whole one or none. */
static int key_write(const char *path, const struct placeholder_key *key)
{
	char fresh[FS_PATH_SIZE];
	_close_ int fd = -1;
	int r = fs_path(fresh, "%s,new", path);

	if (r < 0)
		return r;
	unlink(fresh);
	fd = open(fresh, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	r = fd < 0 ? -errno : fs_write_all(fd, key, sizeof(*key));
	return r == 0 && rename(fresh, path) < 0 ? -errno : r;
}

static bool key_may_be_kept(const char *path)
{
	char folder[FS_PATH_SIZE];
	_close_ int dir = -1;

	if (fs_path(folder, "%.*s", (int)(strrchr(path, '/') - path), path) == 0)
		dir = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return dir >= 0 && fs_is_in_memory(dir);
}

int placeholder_key_open(const char *path, struct placeholder_key *ret)
{
	const bool keep = key_may_be_kept(path);
	int r = -EXDEV;

	if (keep && key_read(path, ret))
		return 0;
	if (getrandom(ret, sizeof(*ret), 0) != (ssize_t)sizeof(*ret))
		return -errno;
	if (keep)
		r = key_write(path, ret);
	else
		unlink(path); /* of one that was started before the directory was on a disk, or knew no better */
	if (r < 0)
		log_warning("the placeholder key is not kept: when netpawld ends, sandboxes need new placeholders");
	return 0;
}
