/* SPDX-License-Identifier: MIT */
/*
 * What `netpawl why` says, as a file for the sandboxes of each session, which may not call the API: whose is out of date is noted
 * when something was refused or changed, and written anew one after the other, so that no flood of refusals is a flood of work.
 */
#pragma once

#include "control/server.h"

/* Sessions whose files are out of date, the oldest first. A zeroed one is empty. */
struct why_files {
	unsigned first, n;
	char names[NP_WHY_STALE][NP_LABEL_SIZE];
};

void why_files_mark(struct why_files *files, const char *session); /* what has no room is marked by the next refusal */
void why_files_tick(struct why_files *files, const struct server_config *config); /* writes one */

/* why.c: writes the file of a session that has sandboxes. */
void why_publish(const struct server_config *config, const char *session);
