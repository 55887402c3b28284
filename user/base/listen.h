/* SPDX-License-Identifier: MIT */
/* A listening unix socket that is never looser than 0660, and that a restart replaces in one step. */
#pragma once

#include <sys/types.h>

/* The file as it was made, so that its owner can tell it from a successor's. */
struct listen_file {
	dev_t dev;
	ino_t ino;
};

/* Replaces a socket that is there, and nothing else: -EEXIST. Returns the descriptor or -errno. */
int listen_unix(const char *path, int backlog, struct listen_file *ret_file);

/* Removes the file unless it is somebody else's by now. */
void listen_remove(const char *path, const struct listen_file *file);
