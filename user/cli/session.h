/* SPDX-License-Identifier: MIT */
/* A subcommand that is one call about one session: netpawl COMMAND USER/SESSION. */
#ifndef NP_CLI_SESSION_H
#define NP_CLI_SESSION_H

#include <jansson.h>
#include <stdio.h>

#include "cli/cli.h"

/* CLI_OK when it is written USER/SESSION; else wrong usage. Whether the names are allowed is the daemon's to say. */
int session_check(const char *command, const char *session);
/* The same for the word of a level. */
int level_check(const char *command, const char *level);

/* Reads the command line, asks the daemon, prints. Returns the exit code. */
int session_command(struct cli *cli, int argc, char **argv, void (*help)(FILE *to), const char *method,
		    void (*print)(const json_t *answer));

#endif
