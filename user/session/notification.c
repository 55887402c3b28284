/* SPDX-License-Identifier: MIT */
#include "session/notification.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Names of sessions and hosts are plain; the name of a program is whatever somebody has called it. */
static void summary_clean(struct notification *news)
{
	for (char *at = news->summary; *at; at++)
		if (*at < ' ' || *at > '~')
			*at = '?';
}

void notification_of_question(const struct question_row *row, struct notification *ret)
{
	snprintf(ret->id, sizeof(ret->id), "%" PRIu64, row->id);
	snprintf(ret->summary, sizeof(ret->summary), "%.120s asks to %s %.100s:%u", row->session.text,
		 !row->method[0] ? "connect to"
		 : row->write	 ? "write to"
				 : "read from",
		 row->host, row->port);
	summary_clean(ret);
}

/* The first word of a command that is JSON of ours, without its directory. What is escaped in it is cut off. */
static void program_read(const char *command, char *out, size_t size)
{
	const char *from = strncmp(command, "[\"", 2) ? command : command + 2;
	const size_t len = strcspn(from, "\"\\");
	const char *slash = memrchr(from, '/', len);
	const size_t skip = slash ? (size_t)(slash - from) + 1 : 0;

	snprintf(out, size, "%.*s", (int)(len - skip), from + skip);
}

void notification_of_run(const struct run_row *row, struct notification *ret)
{
	char program[64];

	program_read(row->command, program, sizeof(program));
	snprintf(ret->id, sizeof(ret->id), "run-%" PRIu64, row->id);
	snprintf(ret->summary, sizeof(ret->summary), "%.120s asks to run %s with class write", row->session.text,
		 program);
	summary_clean(ret);
}
