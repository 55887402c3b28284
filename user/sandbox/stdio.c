/* SPDX-License-Identifier: MIT */
#include "sandbox/stdio.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>

#include "base/cleanup.h"
#include "base/fs.h"

#ifndef TRACEFS_MAGIC
#define TRACEFS_MAGIC 0x74726163
#endif
#ifndef PIDFS_MAGIC
#define PIDFS_MAGIC 0x50494446 /* 6.9 */
#endif
#ifndef CONFIGFS_MAGIC
#define CONFIGFS_MAGIC 0x62656570
#endif

#define DRAIN_TRIES 256 /* of STDIO_BUFFER bytes */
#define DRAIN_MS    10

/* File systems whose "regular files" are doors into the kernel. */
static bool file_is_plain(int fd)
{
	static const unsigned long doors[] = {
		CGROUP_SUPER_MAGIC, CGROUP2_SUPER_MAGIC, PROC_SUPER_MAGIC,    SYSFS_MAGIC,
		DEBUGFS_MAGIC,	    TRACEFS_MAGIC,	 SECURITYFS_MAGIC,    BPF_FS_MAGIC,
		NSFS_MAGIC,	    PIDFS_MAGIC,	 ANON_INODE_FS_MAGIC, EFIVARFS_MAGIC,
		CONFIGFS_MAGIC,	    SELINUX_MAGIC,	 BINFMTFS_MAGIC,      PSTOREFS_MAGIC,
	};
	struct statfs fs;

	if (fstatfs(fd, &fs) < 0)
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(doors); i++)
		if (((unsigned long)fs.f_type & 0xffffffff) == doors[i])
			return false;
	return true;
}

static bool device_is_harmless(dev_t device)
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

/* Who holds a file open for writing can also truncate it, and write anywhere in it: O_APPEND is a flag that the holder may
 * clear. What the caller's log held before is not the command's. */
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

/* What may be there after the command, too: a background process must neither read what is typed later nor change what
 * the command has written. */
static bool passes_for_good(const struct stdio *stdio, int fd)
{
	struct stat st;

	if (!stdio_passes(fd) || fstat(fd, &st) < 0 || isatty(fd))
		return false;
	if (S_ISFIFO(st.st_mode))
		return is_only_read(fd) && !user_may_write(stdio, &st);
	return S_ISCHR(st.st_mode);
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

/* Carrying bytes would not make these harmless: our write to cgroup.procs moves whom the command names. */
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

/* Makes the pipe for one descriptor. The flag of our end is not shared with the command's end. */
static int relay_prepare(struct relay *relay, int fd, int *ret_inside)
{
	bool input = fd == STDIN_FILENO;
	int ends[2], ours;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return -errno;
	ours = input ? ends[1] : ends[0];
	if (fcntl(ours, F_SETFL, O_NONBLOCK) < 0) {
		close(ends[0]);
		close(ends[1]);
		return -errno;
	}
	relay->from = input ? fd : ours;
	relay->to = relay->keep ? -1 : input ? ours : fd;
	relay->from_outer = input;
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
	stdio->relays[STDIN_FILENO].from = STDIN_FILENO;
	stdio->relays[STDIN_FILENO].from_outer = true;
	stdio->relays[STDIN_FILENO].to = master;
	stdio->relays[STDOUT_FILENO].from = fcntl(master, F_DUPFD_CLOEXEC, 3);
	stdio->relays[STDOUT_FILENO].to = STDOUT_FILENO;
	stdio->relays[STDIN_FILENO].eof = stdio->relays[STDOUT_FILENO].eof = false;
	stdio->keep_stdout = true;
	return stdio->inside[STDOUT_FILENO] < 0 || stdio->relays[STDOUT_FILENO].from < 0 ? -errno : 0;
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
		stdio->relays[fd].truncated = stdio->relays[fd].bounded = false;
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
		if ((stdio->lasting ? passes_for_good(stdio, fd) : stdio_passes(fd) && !is_written_file(fd)) &&
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
		err = relay_prepare(&stdio->relays[fd], fd, &stdio->inside[fd]);
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

/* Lets go of one end. Our own 0, 1, 2 become /dev/null instead of free: a number below three that the
 * next open() could get would be somebody's standard output by mistake. */
static void end_close(int *end)
{
	_close_ int null = -1;
	int fd = take_fd(*end);

	if (fd > STDERR_FILENO) {
		close(fd);
	} else if (fd >= 0) {
		null = open("/dev/null", O_RDWR | O_CLOEXEC);
		if (null >= 0)
			dup2(null, fd);
	}
}

/* What would happen to the command if it held the outer descriptor itself: its peer sees the end when the
 * last holder closes, so we close. Standard error stays: we have messages of our own. */
static void relay_end_output(struct stdio *stdio, struct relay *relay)
{
	bool keep = relay->to == STDERR_FILENO || (relay->to == STDOUT_FILENO && stdio->keep_stdout);

	if (keep)
		relay->to = -1;
	else
		end_close(&relay->to);
}

/* Our 1 or 2 leads nowhere from now on. */
static bool relay_discard(struct relay *relay)
{
	_close_ int null = open("/dev/null", O_WRONLY | O_CLOEXEC);

	if (null < 0 || relay->from_outer || dup2(null, relay->to) < 0)
		return false;
	relay->len = 0;
	relay->truncated = true;
	return true;
}

static void relay_stop(struct stdio *stdio, struct relay *relay)
{
	if (stdio->outlive && relay->to >= 0 && relay_discard(relay))
		return;
	relay->eof = true;
	relay->len = 0;
	end_close(&relay->from);
	relay_end_output(stdio, relay);
}

/* The caller's descriptors may be shared: they are asked not to block per call, where that is possible.
 * Others are touched only when poll() said so. */
static ssize_t relay_fill(struct relay *relay)
{
	size_t room = relay->bounded && relay->last < sizeof(relay->data) ? relay->last : sizeof(relay->data);
	ssize_t n = -1;

	errno = ENOTSOCK;
	if (relay->from_outer)
		n = recv(relay->from, relay->data, room, MSG_DONTWAIT);
	if (n < 0 && errno == ENOTSOCK)
		n = read(relay->from, relay->data, room);
	if (relay->bounded && n > 0)
		relay->last -= (size_t)n;
	return n;
}

static ssize_t relay_flush(const struct relay *relay)
{
	ssize_t n = -1;

	errno = ENOTSOCK;
	if (!relay->from_outer)
		n = send(relay->to, relay->data + relay->start, relay->len, MSG_DONTWAIT | MSG_NOSIGNAL);
	if (n < 0 && errno == ENOTSOCK)
		n = write(relay->to, relay->data + relay->start, relay->len);
	return n;
}

static bool again(void)
{
	return errno == EAGAIN || errno == EINTR;
}

/* Takes back what is above the limits. */
static void relay_admit(struct stdio *stdio, struct relay *relay)
{
	struct buf *kept = &stdio->kept[relay - stdio->relays];
	size_t len = relay->len;

	if (relay->from_outer)
		return;
	if (len > stdio->left)
		len = (size_t)stdio->left;
	if (relay->keep && len > kept->max - kept->len)
		len = kept->max - kept->len;
	relay->truncated = relay->truncated || len < relay->len;
	if (stdio->left != STDIO_UNLIMITED)
		stdio->left -= len;
	relay->len = len;
	if (relay->keep) {
		buf_append(kept, relay->data, len);
		relay->len = 0;
	}
}

static void relay_move(struct stdio *stdio, struct relay *relay, short from_events, short to_events)
{
	ssize_t n;

	if (relay->from >= 0 && !relay->len && from_events) {
		n = relay_fill(relay);
		if (n > 0) {
			relay->start = 0;
			relay->len = (size_t)n;
			relay_admit(stdio, relay);
			to_events |= POLLOUT; /* try at once; EAGAIN only costs a call */
		} else if (n == 0 || !again()) {
			relay->eof = true;
			end_close(&relay->from);
		}
	}
	if (relay->bounded && !relay->last && relay->from >= 0) {
		relay->eof = true;
		end_close(&relay->from);
	}
	if (relay->to >= 0 && relay->len && to_events) {
		n = relay_flush(relay);
		if (n > 0) {
			relay->start += (size_t)n;
			relay->len -= (size_t)n;
		} else if (n < 0 && !again()) {
			relay_stop(stdio, relay); /* the writer gets EPIPE in turn */
		}
	} else if (relay->to >= 0 && to_events & (POLLERR | POLLHUP | POLLNVAL)) {
		relay_stop(stdio, relay);
	}
	if (relay->eof && !relay->len && relay->to >= 0)
		relay_end_output(stdio, relay);
}

void stdio_watch(const struct stdio *stdio, struct pollfd fds[static STDIO_POLLFDS])
{
	for (int i = 0; i < 3; i++) {
		const struct relay *relay = &stdio->relays[i];

		/* No POLLIN while there are bytes to deliver: that is the back-pressure. The target is watched
		 * even when there are none, for poll() tells of its end by itself. */
		fds[2 * i] = (struct pollfd){ .fd = relay->len ? -1 : relay->from, .events = POLLIN };
		fds[2 * i + 1] = (struct pollfd){ .fd = relay->to, .events = relay->len ? POLLOUT : 0 };
	}
}

void stdio_move(struct stdio *stdio, const struct pollfd fds[static STDIO_POLLFDS])
{
	for (int i = 0; i < 3; i++)
		relay_move(stdio, &stdio->relays[i], fds[2 * i].revents, fds[2 * i + 1].revents);
}

void stdio_end_input(struct stdio *stdio)
{
	struct relay *input = &stdio->relays[STDIN_FILENO];

	if (input->to >= 0)
		relay_stop(stdio, input);
}

/* What was written to a terminal is on its way through the kernel for a moment: until nothing comes any more. */
static void terminal_drain(struct stdio *stdio)
{
	struct relay *relay = &stdio->relays[STDOUT_FILENO];

	for (unsigned i = 0; i < DRAIN_TRIES && relay->from >= 0; i++) {
		struct pollfd fd = { .fd = relay->from, .events = POLLIN };

		if (poll(&fd, 1, DRAIN_MS) <= 0)
			break;
		relay_move(stdio, relay, POLLIN, POLLOUT);
	}
}

void stdio_end_output(struct stdio *stdio)
{
	if (stdio->terminal)
		terminal_drain(stdio);
	for (int fd = STDOUT_FILENO; fd <= STDERR_FILENO; fd++) {
		struct relay *relay = &stdio->relays[fd];
		int n = 0;

		if (relay->from < 0)
			continue;
		relay->bounded = true;
		relay->last = ioctl(relay->from, FIONREAD, &n) == 0 && n > 0 ? (size_t)n : 0;
		relay_move(stdio, relay, 0, 0); /* where there is nothing, this is the end */
	}
}

bool stdio_busy(const struct stdio *stdio)
{
	for (int fd = STDOUT_FILENO; fd <= STDERR_FILENO; fd++)
		if (stdio->relays[fd].to >= 0 || (stdio->relays[fd].keep && stdio->relays[fd].from >= 0))
			return true;
	return false;
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
