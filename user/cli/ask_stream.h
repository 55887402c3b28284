/* SPDX-License-Identifier: MIT */
/* Questions as they come, for a program that waits for keys at the same time. */
#pragma once

#include <sys/types.h>

/*
 * A process of our own that follows /v1/questions and writes to a pipe: each question as a line of JSON; "+" when it begins
 * anew, so that all that waits follows; "-" and why when the daemon went away, after which it tries again; "!" and the
 * daemon's words when that refused, which is the end. It dies with us.
 */
struct ask_stream {
	pid_t pid;
	int fd; /* to be read, does not block */
};
int ask_stream_start(const char *socket, const char *path, struct ask_stream *ret);
void ask_stream_end(struct ask_stream *stream);
