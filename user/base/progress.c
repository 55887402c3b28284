/* SPDX-License-Identifier: MIT */
#include "base/progress.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define QUIET_MS    300 /* what is over by then shows nothing */
#define TERMINAL_MS 100
#define PIPE_MS	    10000
#define BAR_WIDTH   20u

static uint64_t clock_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

void progress_start(struct progress *progress, const char *what, uint64_t total)
{
	const char *term = getenv("TERM");

	*progress = (struct progress){ .what = what, .total = total, .start_ms = clock_ms() };
	progress->shown_ms = progress->start_ms;
	progress->terminal = isatty(STDERR_FILENO) && term && strcmp(term, "dumb") != 0;
}

void progress_format(const struct progress *progress, unsigned width, char *ret, unsigned size)
{
	const uint64_t done = progress->total && progress->done > progress->total ? progress->total : progress->done;
	char bar[BAR_WIDTH + 1];
	unsigned filled;

	if (!progress->total) {
		snprintf(ret, size, "%s %" PRIu64, progress->what, done);
		return;
	}
	filled = (unsigned)(done * BAR_WIDTH / progress->total);
	memset(bar, '.', BAR_WIDTH);
	memset(bar, '#', filled);
	bar[BAR_WIDTH] = '\0';
	snprintf(ret, size, width ? "%s %" PRIu64 "/%" PRIu64 " %u%% [%s]" : "%s %" PRIu64 "/%" PRIu64 " %u%%",
		 progress->what, done, progress->total, (unsigned)(done * 100 / progress->total), bar);
}

void progress_step(struct progress *progress, uint64_t n)
{
	char line[160];
	uint64_t now;

	progress->done += n;
	if (progress->done % 16 && n == 1) /* the clock costs more than most steps */
		return;
	now = clock_ms();
	if (now - progress->start_ms < QUIET_MS ||
	    now - progress->shown_ms < (progress->terminal ? TERMINAL_MS : PIPE_MS))
		return;
	progress->shown_ms = now;
	progress_format(progress, progress->terminal ? BAR_WIDTH : 0, line, sizeof(line));
	fprintf(stderr, progress->terminal ? "\r\033[K%s" : "%s\n", line);
	fflush(stderr);
	progress->drawn |= progress->terminal;
}

void progress_clear(struct progress *progress)
{
	if (progress->drawn)
		fprintf(stderr, "\r\033[K");
	progress->drawn = false;
}
