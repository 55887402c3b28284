/* SPDX-License-Identifier: MIT */
/* What commands about sessions share. */
#ifndef NP_CLI_SESSION_COMMAND_H
#define NP_CLI_SESSION_COMMAND_H

#include <jansson.h>
#include <stdio.h>

#include "cli/cli.h"

/* A subcommand that is one call about one session: netpawl COMMAND USER/SESSION. Reads the command line, asks the daemon,
 * prints. Returns the exit code. */
int session_command(struct cli *cli, int argc, char **argv, void (*help)(FILE *to), const char *method,
		    void (*print)(const json_t *answer));

/* The list of sessions by pages, at most so many; fn stops it by an answer that is not 0. Returns the exit code. */
int session_pages(const struct cli *cli, bool ended, unsigned max, int (*fn)(void *data, const json_t *sessions),
		  void *data);

/* api_show() about a session. When there is none of that name, one that is nearly called so is named. */
int session_show(const struct cli *cli, const char *session, const char *method, const char *path, json_t *body,
		 void (*print)(const json_t *answer));

#endif
