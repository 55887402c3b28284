/* SPDX-License-Identifier: MIT */
#include "launch/stdio.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "base/cleanup.h"
#include "base/fs.h"
#include "launch/device_kinds.h"

#ifndef TRACEFS_MAGIC
#define TRACEFS_MAGIC 0x74726163
#endif
#ifndef PIDFS_MAGIC
#define PIDFS_MAGIC 0x50494446 /* 6.9 */
#endif
#ifndef CONFIGFS_MAGIC
#define CONFIGFS_MAGIC 0x62656570
#endif

/* File systems whose "regular files" are doors into the kernel. */
static bool file_is_plain(int fd)
{
	static const unsigned long openings[] = {
		CGROUP_SUPER_MAGIC, CGROUP2_SUPER_MAGIC, PROC_SUPER_MAGIC,    SYSFS_MAGIC,
		DEBUGFS_MAGIC,	    TRACEFS_MAGIC,	 SECURITYFS_MAGIC,    BPF_FS_MAGIC,
		NSFS_MAGIC,	    PIDFS_MAGIC,	 ANON_INODE_FS_MAGIC, EFIVARFS_MAGIC,
		CONFIGFS_MAGIC,	    SELINUX_MAGIC,	 BINFMTFS_MAGIC,      PSTOREFS_MAGIC,
	};
	struct statfs fs;

	if (fstatfs(fd, &fs) < 0)
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(openings); i++)
		if (((unsigned long)fs.f_type & 0xffffffff) == openings[i])
			return false;
	return true;
}

bool stdio_passes(int fd)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return false;
	if (S_ISFIFO(st.st_mode))
		return true;
	if (S_ISREG(st.st_mode))
		return file_is_plain(fd);
	return S_ISCHR(st.st_mode) && (device_is_harmless(st.st_rdev) || isatty(fd));
}

static bool is_only_read(int fd)
{
	return fd == STDIN_FILENO && (fcntl(fd, F_GETFL) & O_ACCMODE) == O_RDONLY;
}

/* A process that holds a file open for writing can also truncate it, and write anywhere in it: O_APPEND is a flag
 * that it may clear. What the caller's log held before must not be the command's to change. */
static bool is_written_file(int fd)
{
	struct stat st;

	return !is_only_read(fd) && !fstat(fd, &st) && S_ISREG(st.st_mode);
}

/* By the descriptor's name in /proc, whatever the descriptor is for. The owner may change the mode, too. */
static bool user_may_write(const struct stdio *stdio, const struct stat *st)
{
	return st->st_uid == stdio->user || st->st_mode & (S_IWGRP | S_IWOTH);
}

/* If it were handed over as it is, the command could write to the caller's pipe, but not open it again as
 * /dev/stdout. A pipe that is read is handed over all the same: if netpawl carried the bytes, it would read ahead
 * what the caller's next command is to read. */
static bool is_closed_to_user(const struct stdio *stdio, int fd)
{
	struct stat st;

	return stdio->confined && !is_only_read(fd) && !fstat(fd, &st) && S_ISFIFO(st.st_mode) &&
	       !user_may_write(stdio, &st);
}

/* What may outlive the command: a background process must neither read what is typed later nor change what the
 * command has written. */
static bool passes_for_good(const struct stdio *stdio, int fd)
{
	struct stat st;

	if (!stdio_passes(fd) || fstat(fd, &st) < 0 || isatty(fd))
		return false;
	if (S_ISFIFO(st.st_mode))
		return is_only_read(fd) && !user_may_write(stdio, &st);
	return S_ISCHR(st.st_mode);
}

static bool passes_for_now(const struct stdio *stdio, int fd)
{
	return stdio_passes(fd) && !is_written_file(fd) && !is_closed_to_user(stdio, fd);
}

/* A file that is only read, and that the command could write or, when it is gone, move us about in: by a descriptor of its
 * own. Where that cannot be had, as of a file in memory, it is carried into a sandbox that is kept. */
static void input_prepare(struct stdio *stdio)
{
	_close_ int fd = -1;
	struct stat st;

	if (!is_only_read(STDIN_FILENO) || fstat(STDIN_FILENO, &st) < 0 || !S_ISREG(st.st_mode) ||
	    !file_is_plain(STDIN_FILENO) || (!stdio->lasting && !user_may_write(stdio, &st)))
		return;
	fd = fs_open_apart("/proc/self/fd/0");
	if (fd < 0 || lseek(fd, lseek(STDIN_FILENO, 0, SEEK_CUR), SEEK_SET) < 0)
		return;
	stdio->input = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	if (stdio->input >= 0)
		stdio->inside[STDIN_FILENO] = take_fd(fd);
}

/* The caller's next command reads on from where this one stopped. */
static void input_finish(struct stdio *stdio)
{
	if (stdio->input > STDERR_FILENO) {
		lseek(STDIN_FILENO, lseek(stdio->input, 0, SEEK_CUR), SEEK_SET);
		close(stdio->input);
	}
	stdio->input = -1;
}

/* Carrying the bytes would not make these files harmless: our write to cgroup.procs would move processes that the
 * command names. */
static bool is_kernel_file(int fd)
{
	struct stat st;

	return !fstat(fd, &st) && S_ISREG(st.st_mode) && !file_is_plain(fd);
}

/* Standard output and error are often one file; one pipe keeps their order. */
static bool same_file(int a, int b)
{
	struct stat sa, sb;

	return !fstat(a, &sa) && !fstat(b, &sb) && sa.st_dev == sb.st_dev && sa.st_ino == sb.st_ino;
}

/* The kernel asks who owns a pipe or a terminal when a program opens /dev/stdout or /proc/self/fd/1. Only for what netpawl
 * made: what the caller handed in stays the caller's. */
static int own_give(const struct stdio *stdio, int fd)
{
	return stdio->user && fchown(fd, stdio->user, (gid_t)-1) < 0 ? -errno : 0;
}

/* A write to the caller's pipe waits for its reader, unless there is room for all of it. */
static bool may_block(int fd)
{
	struct stat st;

	return !fstat(fd, &st) && S_ISFIFO(st.st_mode) && !(fcntl(fd, F_GETFL) & O_NONBLOCK);
}

/* Makes the pipe for one descriptor. The flag of our end is not shared with the command's end. */
static int relay_prepare(const struct stdio *stdio, struct relay *relay, int fd, int *ret_inside)
{
	bool input = fd == STDIN_FILENO;
	int ends[2], ours, r;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return -errno;
	ours = input ? ends[1] : ends[0];
	r = fcntl(ours, F_SETFL, O_NONBLOCK) < 0 ? -errno : own_give(stdio, ours);
	if (r < 0) {
		close(ends[0]);
		close(ends[1]);
		return r;
	}
	relay->from = input ? fd : ours;
	relay->to = relay->keep ? -1 : input ? ours : fd;
	relay->from_outer = input;
	relay->by_page = !input && !relay->keep && may_block(fd);
	*ret_inside = input ? ends[0] : ends[1];
	return 0;
}

/* Of output and error one relay is enough: they are one terminal. */
static int terminal_prepare(struct stdio *stdio)
{
	int master, slave, r = terminal_open(&stdio->own, &master, &slave);

	if (r < 0)
		return r;
	stdio->inside[STDIN_FILENO] = slave;
	stdio->inside[STDOUT_FILENO] = fcntl(slave, F_DUPFD_CLOEXEC, 3);
	if (isatty(STDERR_FILENO))
		stdio->inside[STDERR_FILENO] = fcntl(slave, F_DUPFD_CLOEXEC, 3);
	r = own_give(stdio, slave);
	stdio->relays[STDIN_FILENO].from = STDIN_FILENO;
	stdio->relays[STDIN_FILENO].from_outer = true;
	stdio->relays[STDIN_FILENO].to = master;
	stdio->relays[STDOUT_FILENO].from = fcntl(master, F_DUPFD_CLOEXEC, 3);
	stdio->relays[STDOUT_FILENO].to = STDOUT_FILENO;
	stdio->relays[STDIN_FILENO].eof = stdio->relays[STDOUT_FILENO].eof = false;
	stdio->keep_stdout = true;
	if (stdio->inside[STDOUT_FILENO] < 0 || stdio->relays[STDOUT_FILENO].from < 0)
		return -errno;
	return r;
}

void stdio_resize(const struct stdio *stdio)
{
	if (stdio->terminal && stdio->relays[STDOUT_FILENO].from >= 0)
		terminal_resize(stdio->relays[STDOUT_FILENO].from);
}

int stdio_prepare(struct stdio *stdio)
{
	int r;

	for (int fd = 0; fd < 3; fd++) {
		stdio->inside[fd] = -1;
		stdio->relays[fd].from = stdio->relays[fd].to = -1;
		stdio->relays[fd].eof = true;
		stdio->relays[fd].keep = stdio->keep && fd != STDIN_FILENO;
		stdio->relays[fd].truncated = stdio->relays[fd].bounded = stdio->relays[fd].by_page = false;
		stdio->relays[fd].start = stdio->relays[fd].len = 0;
	}
	stdio->input = -1;
	r = stdio->terminal ? terminal_prepare(stdio) : 0;
	if (r < 0)
		return r;
	if (stdio->confined)
		input_prepare(stdio);
	for (int fd = 0; fd < 3; fd++) {
		bool output = fd != STDIN_FILENO;
		int err;

		if (stdio->inside[fd] >= 0)
			continue;
		if ((stdio->lasting ? passes_for_good(stdio, fd) : passes_for_now(stdio, fd)) &&
		    !(output && (stdio->keep || stdio->left != STDIO_UNLIMITED)))
			continue;
		if (output && !stdio->keep && is_kernel_file(fd))
			return -EACCES;
		if (fd == STDERR_FILENO && !stdio->keep && stdio->inside[STDOUT_FILENO] >= 0 &&
		    same_file(STDOUT_FILENO, STDERR_FILENO)) {
			stdio->inside[fd] = fcntl(stdio->inside[STDOUT_FILENO], F_DUPFD_CLOEXEC, 3);
			if (stdio->inside[fd] < 0)
				return -errno;
			/* Our messages go there as well, and after the command's. */
			stdio->keep_stdout = true;
			continue;
		}
		err = relay_prepare(stdio, &stdio->relays[fd], fd, &stdio->inside[fd]);
		if (err < 0)
			return err;
		stdio->relays[fd].eof = false;
	}
	return 0;
}

int stdio_enter(const struct stdio *stdio)
{
	for (int fd = 0; fd < 3; fd++)
		if (stdio->inside[fd] >= 0 && dup2(stdio->inside[fd], fd) < 0)
			return -errno;
	return 0;
}

void stdio_leave(struct stdio *stdio)
{
	for (int fd = 0; fd < 3; fd++)
		if (stdio->inside[fd] >= 0)
			close(take_fd(stdio->inside[fd]));
}

void stdio_free(struct stdio *stdio)
{
	stdio_leave(stdio);
	terminal_close(&stdio->own);
	input_finish(stdio);
	for (int i = 0; i < 3; i++) {
		struct relay *relay = &stdio->relays[i];

		if (relay->from > STDERR_FILENO)
			close(relay->from);
		if (relay->to > STDERR_FILENO)
			close(relay->to);
		relay->from = relay->to = -1;
	}
}
