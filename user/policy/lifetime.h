/* SPDX-License-Identifier: MIT */
/* How long sessions and what they leave behind last, by the policy. */
#pragma once

#include <stdint.h>

/* What becomes of a session's workspace when the session has ended. */
enum workspace_fate { WORKSPACE_KEEP, WORKSPACE_ARCHIVE, WORKSPACE_REMOVE };

/* 0: for ever, or any number. */
struct lifetime {
	uint64_t keep_s;     /* an unused session until it ends, and an ended one until it is forgotten */
	uint64_t keep_count; /* ended ones */
	uint64_t remember_s; /* the level of a forgotten one */
	enum workspace_fate at_end;
	uint64_t archive_max; /* bytes of one archive; never 0 */
};
