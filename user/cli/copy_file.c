/* SPDX-License-Identifier: MIT */
#include "cli/copy_file.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fs.h"

#define COPY_BUFFER 65536

/* fsuid and fsgid: permissions and ownership are then the user's, and root's capabilities over files are off. */
void copy_side_enter(const struct copy *copy, enum copy_side side)
{
	if (side == INSIDE) {
		setfsgid(copy->group);
		setfsuid(copy->user);
	} else {
		setfsuid(0);
		setfsgid(0);
	}
}

mode_t copy_mode(const struct copy *copy, enum copy_side to, mode_t mode)
{
	return mode & 0777 & (to == HOST ? ~copy->umask : 0777);
}

int copy_bytes(struct copy *copy, int from, int to, uint64_t max)
{
	static char data[COPY_BUFFER];
	struct stat st;

	/* A sparse file counts with all of its length: it would be written out so. */
	if (max && fstat(from, &st) == 0 && S_ISREG(st.st_mode) && (uint64_t)st.st_size > max - copy->bytes)
		return -EFBIG;

	for (;;) {
		ssize_t n = read(from, data, sizeof(data));
		int r;

		if (n == 0)
			return 0;
		if (n < 0 && errno == EINTR)
			continue;
		r = n < 0				     ? -errno
		    : max && (uint64_t)n > max - copy->bytes ? -EFBIG
							     : fs_write_all(to, data, (size_t)n);
		if (r < 0)
			return r;
		copy->bytes += (uint64_t)n;
	}
}

/* -- half a file ------------------------------------------------------------------------ */

/* What is being written. The handler may come at any moment: before the file is there, or after it got its own name, nothing
 * has this one, and to remove it does nothing. */
static char half_name[32];
static volatile sig_atomic_t half_dir = -1;

static void half_remove(int signo)
{
	if (half_dir >= 0)
		unlinkat((int)half_dir, half_name, 0);
	raise(signo); /* SA_RESETHAND: it ends us when we return */
}

void copy_signals_catch(void)
{
	static const int signals[] = { SIGINT, SIGTERM, SIGHUP };
	struct sigaction action = { .sa_handler = half_remove, .sa_flags = (int)SA_RESETHAND }, old;

	sigfillset(&action.sa_mask);
	for (size_t i = 0; i < ARRAY_SIZE(signals); i++)
		if (sigaction(signals[i], NULL, &old) == 0 && old.sa_handler != SIG_IGN) /* nohup */
			sigaction(signals[i], &action, NULL);
}

/* was: the file that it takes the place of, whose owner and mode it gets; NULL: whatever has the name is replaced. */
static int file_put(struct copy *copy, int from, enum copy_side to, int dir, const char *name, mode_t mode,
		    const struct stat *was)
{
	unsigned long long number;
	_close_ int fd = -1;
	int r;

	if (getrandom(&number, sizeof(number), 0) != sizeof(number))
		return -EIO;
	snprintf(half_name, sizeof(half_name), ".np-%016llx", number);
	half_dir = dir;
	copy_side_enter(copy, to);
	fd = openat(dir, half_name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	r = fd < 0 ? -errno : copy_bytes(copy, from, fd, to == HOST ? copy->max_bytes : 0);
	if (r == 0 && was && fchown(fd, was->st_uid, was->st_gid) < 0)
		r = -errno;
	if (r == 0 && (fchmod(fd, mode) < 0 || renameat(dir, half_name, dir, name) < 0))
		r = -errno;
	if (r < 0 && fd >= 0)
		unlinkat(dir, half_name, 0);
	half_dir = -1;
	copy->files += r == 0;
	return r;
}

int copy_file_in(struct copy *copy, int from, mode_t mode, int dir, const char *name)
{
	return file_put(copy, from, INSIDE, dir, name, copy_mode(copy, INSIDE, mode), NULL);
}

/* -- the host's ------------------------------------------------------------------------- */

/* What was looked at is what is opened, whatever has its name by now. */
static int node_write(struct copy *copy, int from, int node)
{
	_close_ int to = -1;
	char path[32];
	int r;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", node);
	to = open(path, O_WRONLY | O_NOCTTY | O_CLOEXEC);
	r = to < 0 ? -errno : copy_bytes(copy, from, to, copy->max_bytes);
	copy->files += r == 0;
	return r;
}

static bool is_the_file(int dir, const char *name, const struct stat *file)
{
	struct stat st;

	return fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && st.st_dev == file->st_dev &&
	       st.st_ino == file->st_ino;
}

/* A regular file: where no link is on the way any more its name is replaced. */
static int file_replace(struct copy *copy, int from, int dir, const char *name, int file, const struct stat *st)
{
	_close_ int place = -1;
	char path[FS_PATH_SIZE], *slash;
	int r;

	if (is_the_file(dir, name, st))
		return file_put(copy, from, HOST, dir, name, st->st_mode & 0777, st);
	r = fs_path_of(file, path);
	slash = r < 0 ? NULL : strrchr(path, '/');
	if (!slash)
		return r < 0 ? r : -ESTALE;
	*slash = '\0';
	place = fs_open_unlinked(AT_FDCWD, slash == path ? "/" : path, O_PATH | O_DIRECTORY);
	if (place < 0)
		return place;
	return is_the_file(place, slash + 1, st) ? file_put(copy, from, HOST, place, slash + 1, st->st_mode & 0777, st)
						 : -ESTALE; /* it has no name any more */
}

int copy_file_out(struct copy *copy, int from, mode_t mode, int dir, const char *name, bool named)
{
	_close_ int there = -1;
	struct stat st;
	int err;

	copy_side_enter(copy, HOST);
	there = openat(dir, name, O_PATH | O_CLOEXEC | (named ? 0 : O_NOFOLLOW));
	err = there < 0 ? -errno : 0;
	/* With a link that leads nowhere, as for cp(1), it is not known what was meant. */
	if (err < 0 && (err != -ENOENT || fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0))
		return err;
	if (there >= 0 && fstat(there, &st) < 0)
		return -errno;
	if (there < 0 || S_ISLNK(st.st_mode))
		return file_put(copy, from, HOST, dir, name, copy_mode(copy, HOST, mode), NULL);
	if (S_ISREG(st.st_mode))
		return file_replace(copy, from, dir, name, there, &st);
	if (S_ISDIR(st.st_mode))
		return -EISDIR;
	return named && (S_ISCHR(st.st_mode) || S_ISFIFO(st.st_mode)) ? node_write(copy, from, there) : -EOPNOTSUPP;
}
