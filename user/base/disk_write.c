/* SPDX-License-Identifier: MIT */
#include "base/disk_write.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"

/* The C library has no names for these. */
static int aio_setup(aio_context_t *ret)
{
	return (int)syscall(SYS_io_setup, 1, ret);
}

static bool aio_submit(aio_context_t context, struct iocb *what)
{
	return syscall(SYS_io_submit, context, 1, &what) == 1;
}

static int aio_wait(aio_context_t context, struct io_event *ret)
{
	long n;

	do
		n = syscall(SYS_io_getevents, context, 1, 1, ret, NULL);
	while (n < 0 && errno == EINTR);
	return n == 1 ? 0 : -errno;
}

int disk_write_open(struct disk_write *write, int fd)
{
	char name[64];

	*write = (struct disk_write)DISK_WRITE_INIT;
	snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
	write->fd = open(name, O_WRONLY | O_DSYNC | O_CLOEXEC | O_DIRECT);
	if (write->fd >= 0 && aio_setup(&write->context) == 0)
		return 0;
	/* A file system that takes nothing past the page cache would keep who begins a write until it is over. */
	cleanup_close(&write->fd);
	write->context = 0;
	write->fd = open(name, O_WRONLY | O_DSYNC | O_CLOEXEC);
	return write->fd < 0 ? -errno : 0;
}

void disk_write_close(struct disk_write *write)
{
	disk_write_wait(write);
	if (write->context)
		syscall(SYS_io_destroy, write->context);
	cleanup_close(&write->fd);
	*write = (struct disk_write)DISK_WRITE_INIT;
}

void disk_write_take(struct disk_write *write, const void *data, size_t len, off_t at)
{
	write->what = (struct iocb){
		.aio_lio_opcode = IOCB_CMD_PWRITE,
		.aio_fildes = (uint32_t)write->fd,
		.aio_buf = (uintptr_t)data,
		.aio_nbytes = len,
		.aio_offset = at,
	};
	write->state = DISK_WRITE_TAKEN;
}

void disk_write_begin(struct disk_write *write)
{
	if (write->state == DISK_WRITE_TAKEN && write->context && aio_submit(write->context, &write->what))
		write->state = DISK_WRITE_BEGUN;
}

/* How many bytes are on the disk, or -errno. */
static int64_t write_now(const struct disk_write *write)
{
	const struct iocb *what = &write->what;
	ssize_t n = pwrite(write->fd, (const void *)(uintptr_t)what->aio_buf, what->aio_nbytes, what->aio_offset);

	return n < 0 ? -errno : n;
}

static int64_t write_end(struct disk_write *write)
{
	struct io_event event;
	int r;

	if (write->state != DISK_WRITE_BEGUN)
		return write_now(write);
	r = aio_wait(write->context, &event);
	return r < 0 ? r : event.res;
}

/* There are file systems that let a file be opened for writes past the page cache, and refuse each of them: as if it had not been opened so. */
static bool write_through_cache(struct disk_write *write)
{
	const int flags = fcntl(write->fd, F_GETFL);

	if (flags < 0 || !(flags & O_DIRECT) || fcntl(write->fd, F_SETFL, flags & ~O_DIRECT) < 0)
		return false;
	if (write->context)
		syscall(SYS_io_destroy, write->context);
	write->context = 0;
	return true;
}

int disk_write_wait(struct disk_write *write)
{
	int64_t n;

	if (write->state == DISK_WRITE_NONE)
		return write->result;
	n = write_end(write);
	if (n == -EINVAL && write_through_cache(write))
		n = write_now(write);
	write->state = DISK_WRITE_NONE;
	write->result = n < 0 ? (int)n : n == (int64_t)write->what.aio_nbytes ? 0 : -ENOSPC;
	return write->result;
}
