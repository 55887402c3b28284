/* SPDX-License-Identifier: MIT */
/* What is told of a question to whom approval: notify: names: who, what kind, where to. No URL, no header, no argument. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "daemon/daemon.h"

/* The first word of a command that is JSON of ours, without its directory. What is escaped in it is cut off. */
static void program_read(const char *command, char *out, size_t size)
{
	const char *from = strncmp(command, "[\"", 2) ? command : command + 2;
	const size_t len = strcspn(from, "\"\\");
	const char *slash = memrchr(from, '/', len);
	const size_t skip = slash ? (size_t)(slash - from) + 1 : 0;

	snprintf(out, size, "%.*s", (int)(len - skip), from + skip);
}

void question_notify(struct daemon *d, const struct event *event)
{
	char id[32], summary[512], program[64];
	struct question_row question;
	struct run_row run;
	struct failure ignored;

	if (event->reason == NP_R_QUESTION_ASKED &&
	    service_question_show(d->service, event->question, &question, &ignored) == 0) {
		snprintf(id, sizeof(id), "%" PRIu64, question.id);
		snprintf(summary, sizeof(summary), "%.120s asks to %s %.100s:%u", question.session.text,
			 !question.method[0] ? "connect to"
			 : question.write    ? "write to"
					     : "read from",
			 question.host, question.port);
		notifier_put(d->notifier, question.session.text, id, summary);
	} else if (event->reason == NP_R_RUN_ASKED && service_run_show(d->service, event->run, &run, &ignored) == 0) {
		program_read(run.command, program, sizeof(program));
		snprintf(id, sizeof(id), "run-%" PRIu64, run.id);
		snprintf(summary, sizeof(summary), "%.120s asks to run %s with class write", run.session.text, program);
		notifier_put(d->notifier, run.session.text, id, summary);
	}
}
