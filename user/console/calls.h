/* SPDX-License-Identifier: MIT */
/* Which calls of the control API the console passes on: these and no others. Pure. */
#pragma once

#include <stdbool.h>

enum call_kind {
	CALL_READS = 1,
	CALL_ANSWERS = 2, /* questions and runs that wait */
	CALL_CHANGES = 4,
	CALL_INBOX = 8, /* approve.sock takes it, too */
};

struct console_rights {
	bool read_only;
	bool approver; /* it speaks to approve.sock */
};

/* 0 with its kind; -ENOENT: not passed on; -EACCES: this console does not do that; -EINVAL: the path or the query is not written as
 * one. path is as the browser sent it, escaped; query may be NULL. */
int call_find(const struct console_rights *rights, const char *method, const char *path, const char *query,
	      enum call_kind *ret);

/* Does the answer go on until somebody ends it? */
bool call_streams(const char *query);
