/* SPDX-License-Identifier: MIT */
#include "base/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const char *log_program = "netpawl";
static enum log_level log_most = LOG_LEVEL_INFO;

void log_setup(const char *program, enum log_level most)
{
	log_program = program;
	log_most = most;
}

bool log_is_verbose(void)
{
	return log_most >= LOG_LEVEL_DEBUG;
}

static bool debug_may(void)
{
	static time_t second;
	static unsigned count;
	time_t now = time(NULL);
	unsigned left_out = count > LOG_DEBUG_RATE ? count - LOG_DEBUG_RATE : 0;

	if (now != second) {
		second = now;
		count = 0;
		if (left_out)
			log_line(LOG_LEVEL_INFO, "%u debug messages were left out", left_out);
	}
	return count++ < LOG_DEBUG_RATE;
}

void log_line(enum log_level level, const char *fmt, ...)
{
	static const char *const words[] = { "error: ", "warning: ", "", "debug: " };
	char line[2048];
	va_list ap;
	int n;

	if (level > log_most || (level == LOG_LEVEL_DEBUG && !debug_may()))
		return;
	n = snprintf(line, sizeof(line) - 1, "%s: %s", log_program, words[level]);
	va_start(ap, fmt);
	vsnprintf(line + n, sizeof(line) - 1 - (size_t)n, fmt, ap);
	va_end(ap);
	/* Strangers' names end up in messages: one message stays one line. */
	for (char *c = line; *c; c++)
		if ((unsigned char)*c < ' ' || *c == 0x7f)
			*c = '?';
	n = (int)strlen(line);
	line[n++] = '\n';
	if (write(STDERR_FILENO, line, (size_t)n) < 0)
		return; /* nobody is left to be told */
}
