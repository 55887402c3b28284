/* SPDX-License-Identifier: MIT */
/* A directory of a test's own, and the verbs that its checks need. Every failure ends the test. */
#pragma once

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static char tempdir[64];

static inline int tempdir_make(void **state)
{
	(void)state;
	strcpy(tempdir, "/tmp/netpawl-test-XXXXXX");
	return mkdtemp(tempdir) ? 0 : -1;
}

static inline int tempdir_remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st, (void)type, (void)ftw;
	return remove(path);
}

static inline int tempdir_remove(void **state)
{
	(void)state;
	umount2(tempdir, MNT_DETACH);
	return nftw(tempdir, tempdir_remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static inline const char *temp_path(const char *name)
{
	static char path[4][128];
	static unsigned turn;
	char *p = path[turn++ % 4];

	snprintf(p, sizeof(path[0]), "%s/%s", tempdir, name);
	return p;
}

static inline int temp_dirfd(void)
{
	int fd = open(tempdir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	assert_true(fd >= 0);
	return fd;
}

static inline void temp_write(const char *name, const char *text, size_t len)
{
	int fd = open(temp_path(name), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0640);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, len), len);
	close(fd);
}

static inline void temp_puts(const char *name, const char *text)
{
	temp_write(name, text, strlen(text));
}

static inline bool temp_exists(const char *name)
{
	return access(temp_path(name), F_OK) == 0;
}

/* The whole file, to be freed. */
static inline char *temp_read(const char *name)
{
	FILE *f = fopen(temp_path(name), "re");
	char *text = NULL;
	size_t size = 0;

	assert_non_null(f);
	if (getdelim(&text, &size, EOF, f) < 0) {
		free(text);
		text = strdup("");
	}
	fclose(f);
	assert_non_null(text);
	return text;
}

/* Mounts a file system of this size on the directory, for this process alone. False without the right to. */
static inline bool temp_mount(const char *size)
{
	char options[64];

	snprintf(options, sizeof(options), "mode=0700,size=%s", size);
	return unshare(CLONE_NEWNS) == 0 && mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
	       mount("tmpfs", tempdir, "tmpfs", 0, options) == 0;
}

/* Writes zeros until nothing more fits. */
static inline void temp_fill(const char *name)
{
	static const char zeros[4096];
	int fd = open(temp_path(name), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	while (write(fd, zeros, sizeof(zeros)) > 0)
		;
	assert_int_equal(errno, ENOSPC);
	close(fd);
}
