/* SPDX-License-Identifier: MIT */
/*
 * Scope-bound clean-up. A destructor takes NULL (or -1) and does nothing then,
 * so that a variable may be released before it was ever filled.
 */
#pragma once

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define cleanup(fn) __attribute__((__cleanup__(fn)))

static inline void cleanup_free(void *p)
{
	free(*(void **)p);
}
#define _free_ cleanup(cleanup_free)

static inline void cleanup_close(int *fd)
{
	if (*fd >= 0)
		close(*fd);
}
#define _close_ cleanup(cleanup_close)

static inline void cleanup_closedir(DIR **d)
{
	if (*d)
		closedir(*d);
}
#define _closedir_ cleanup(cleanup_closedir)

/* Hand a value over and leave the variable empty, so that its clean-up does nothing. */
#define take_fd(fd)                          \
	({                                   \
		int *fd_ = &(fd), v_ = *fd_; \
		*fd_ = -1;                   \
		v_;                          \
	})
#define take_ptr(p)                                 \
	({                                          \
		__typeof__(p) *p_ = &(p), v_ = *p_; \
		*p_ = NULL;                         \
		v_;                                 \
	})

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))
