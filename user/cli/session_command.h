/* SPDX-License-Identifier: MIT */
/* A subcommand that is one call about one session: netpawl COMMAND USER/SESSION. */
#ifndef NP_CLI_SESSION_COMMAND_H
#define NP_CLI_SESSION_COMMAND_H

#include <jansson.h>
#include <stdio.h>

#include "cli/cli.h"

/* Reads the command line, asks the daemon, prints. Returns the exit code. */
int session_command(struct cli *cli, int argc, char **argv, void (*help)(FILE *to), const char *method,
		    void (*print)(const json_t *answer));

#endif
