/* SPDX-License-Identifier: MIT */
/* What a function prints, as a string: standard output or error goes into a file for a while. */
#pragma once

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct capture {
	FILE *stream;
	int fd, saved, file;
	char text[16384];
};

static void capture_begin(struct capture *capture, FILE *stream)
{
	char name[] = "/tmp/np-capture-XXXXXX";

	fflush(stream);
	capture->stream = stream;
	capture->fd = fileno(stream);
	capture->saved = dup(capture->fd);
	capture->file = mkstemp(name);
	if (capture->saved < 0 || capture->file < 0 || dup2(capture->file, capture->fd) < 0)
		abort();
	unlink(name);
}

static const char *capture_end(struct capture *capture)
{
	ssize_t n;

	fflush(capture->stream);
	n = pread(capture->file, capture->text, sizeof(capture->text) - 1, 0);
	capture->text[n > 0 ? n : 0] = '\0';
	dup2(capture->saved, capture->fd);
	close(capture->saved);
	close(capture->file);
	return capture->text;
}
