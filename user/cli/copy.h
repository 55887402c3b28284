/* SPDX-License-Identifier: MIT */
/*
 * Copies files between the host and a workspace whose sandboxes may be running, and hostile. What lies in the workspace is
 * only ever touched as the session's own user and below the workspace's directory, whatever links are put in the way
 * meanwhile. No link is copied. On the host a link is followed where the caller named it, and none below that.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define COPY_DEPTH_MAX 64  /* directories within each other */
#define COPY_STREAM    "-" /* in place of a path of the host: standard input or output */

struct copy {
	int workspace; /* O_PATH; its owner is the session's user */
	uid_t user;
	gid_t group;
	mode_t umask;
	uint64_t max_bytes, max_files; /* what is taken out of the workspace; 0: no bound */
	uint64_t files, bytes, entries;
	uint64_t skipped;   /* links, sockets and the like, each of which was complained about */
	const char *inside; /* the path in the workspace */
	const char *failed; /* what an error is about: `inside`, the host's path, or a name below one of them */
	char name[256];
};

/* Sets all of it: opens the workspace and gives up root's groups. Needs root. 0 or -errno. */
int copy_open(struct copy *copy, const char *workspace);
void copy_close(struct copy *copy);

/* inside is relative to the workspace. A directory is copied whole; a target that is a directory gets the source put into
 * it under its own name. A file appears at its target whole, or not at all. 0; -EXDEV or -ELOOP when a link leads out of the
 * workspace; -EFBIG or -E2BIG when there is more than max_bytes or max_files; -EINVAL when the source is neither a file nor a
 * directory, -EOPNOTSUPP when what is at the target is neither; -errno. */
int copy_in(struct copy *copy, const char *host, const char *inside);
int copy_out(struct copy *copy, const char *inside, const char *host);
