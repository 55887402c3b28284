/* SPDX-License-Identifier: MIT */
/* Random names of hosts and programs in what is sent to a phone or a chat: one line of printable ASCII that ends, and no word beyond the first of a command. */
#include "session/notification.c"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void line_check(const struct notification *news)
{
	if (!memchr(news->id, '\0', sizeof(news->id)) || !memchr(news->summary, '\0', sizeof(news->summary)))
		abort();
	for (const char *at = news->summary; *at; at++)
		if (*at < ' ' || *at > '~')
			abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct question_row question;
	static struct run_row run;
	struct notification news;
	char *copy = calloc(1, size + 1);

	if (!copy)
		abort();
	memcpy(copy, data, size);
	question = (struct question_row){ .id = size, .session = { "a/b" }, .port = 443, .write = size & 1 };
	snprintf(question.host, sizeof(question.host), "%s", copy);
	snprintf(question.method, sizeof(question.method), "%s", size & 2 ? "GET" : "");
	notification_of_question(&question, &news);
	line_check(&news);
	run = (struct run_row){ .id = size, .session = { "a/b" } };
	snprintf(run.command, sizeof(run.command), "[\"%s\",\"ARGUMENT\"]", copy);
	notification_of_run(&run, &news);
	line_check(&news);
	if (!strstr(copy, "ARGUMENT") && strstr(news.summary, "ARGUMENT"))
		abort();
	free(copy);
	return 0;
}
