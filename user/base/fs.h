/* SPDX-License-Identifier: MIT */
/* Small file system verbs. All return 0 or -errno unless they say otherwise. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/types.h>

#include "base/buf.h"

int fs_write_all(int fd, const void *data, size_t len);		/* retries short writes and EINTR */
int fs_write_at(int dirfd, const char *path, const char *text); /* one write to an existing file (cgroupfs, procfs) */
/* Reads to the end of fd, up to the bound of out; -E2BIG when there is more. */
int fs_read_fd(int fd, struct buf *out);
/* Reads at most max bytes of a file into a new NUL-terminated string; -E2BIG when it is larger. */
int fs_read_at(int dirfd, const char *path, size_t max, char **ret_text);
/* Prints a path; -ENAMETOOLONG when it does not fit, and then path is empty. */
#define FS_PATH_SIZE 4096
int fs_path(char path[static FS_PATH_SIZE], const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* The path of what is open. */
int fs_path_of(int fd, char path[static FS_PATH_SIZE]);
/* Opens what is closed of 0, 1 and 2, so that no file of ours becomes somebody's standard output. Writes to 1 still fail then.
 * 0 or -1. */
int fs_stdio_fill(void);
/* The path of another program in the directory of this one. */
int fs_beside(char path[static FS_PATH_SIZE], const char *program);
/* A descriptor for reading, through a read-only mount of its own that is attached nowhere: a process that gets hold
 * of it cannot open the file for writing by the descriptor's name in /proc, even as its owner. Needs root. */
int fs_open_apart(const char *path);
/* The mount alone, as an O_PATH descriptor: to execute. Its last close waits for the kernel's readers (RCU). */
int fs_mount_apart(const char *path);
/* Opens path below dir; -EXDEV or -ELOOP when dots or links lead out of it, whoever changes them meanwhile. */
int fs_open_beneath(int dir, const char *path, int flags);
/* The same, and no link is followed at all: -ELOOP. dir may be AT_FDCWD; then path may lead anywhere. */
int fs_open_unlinked(int dir, const char *path, int flags);
int fs_mkdir_all(const char *path, mode_t mode); /* like mkdir -p; an existing directory is fine */
/* Makes a file where there is none. With mode 0600, also if it was there: nobody else may read it. -EPROTO: it is no regular file. The descriptor. */
int fs_open_private(const char *path);
int fs_sync_name(const char *path); /* the file is found under its name after a power failure */
bool fs_is_in_memory(int fd);	    /* what is written there touches no disk: tmpfs, ramfs */

/* True when path is dir, or below it. Both absolute and without dots; everything is below "/". */
static inline bool path_below(const char *path, const char *dir)
{
	size_t len = strlen(dir);

	return len == 1 || (!strncmp(path, dir, len) && (path[len] == '\0' || path[len] == '/'));
}
