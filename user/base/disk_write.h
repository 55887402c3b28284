/* SPDX-License-Identifier: MIT */
/*
 * A write to a file that is on the disk when it is over, while the caller does something else. The kernel does it by itself
 * (asynchronous direct I/O): a thread that waits for the disk would have to get a CPU first, and again for every step of the write.
 */
#pragma once

#include <linux/aio_abi.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct disk_write {
	int fd;		       /* the file, with O_DSYNC; -1: not open */
	aio_context_t context; /* 0: whoever waits writes */
	enum { DISK_WRITE_NONE, DISK_WRITE_TAKEN, DISK_WRITE_BEGUN } state;
	struct iocb what; /* the newest */
	int result;	  /* of it, when nothing is left to do */
};
#define DISK_WRITE_INIT  \
	{                \
		.fd = -1 \
	}

/* Of a file that is open already. What is written should be there: room that is new has to be noted, which takes longer. */
int disk_write_open(struct disk_write *write, int fd);
void disk_write_close(struct disk_write *write); /* waits */
/* Takes one write; the one before has to be over. data, at a multiple of len in memory as in the file, stays as it is until this one is; len is the
 * size of the file system's blocks, or a multiple. */
void disk_write_take(struct disk_write *write, const void *data, size_t len, off_t at);
void disk_write_begin(struct disk_write *write); /* the one that was taken. What goes wrong is told by the wait */
/* Until it is over, and writes what was not begun. 0: it is on the disk; -errno: it is not. May be asked again. */
int disk_write_wait(struct disk_write *write);
