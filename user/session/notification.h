/* SPDX-License-Identifier: MIT */
/* What somebody is told of a question or a run that waits (approval: notify:): who, what kind, where to. No URL, no header, no argument. Pure. */
#pragma once

#include "session/store.h"

/* Both are printable ASCII, and end. */
struct notification {
	char id[32];	   /* "7", "run-3": what `netpawl answer` takes */
	char summary[256]; /* one line */
};

void notification_of_question(const struct question_row *row, struct notification *ret);
void notification_of_run(const struct run_row *row, struct notification *ret);
