/* SPDX-License-Identifier: MIT */
/* What commands about sessions share. */
#pragma once

#include <jansson.h>
#include <stdio.h>

#include "cli/cli.h"
#include "cli/options.h"

/* Reads the command line of a command about one session: its place in argv, and its path in the API with the suffix, to be
 * freed. OPTIONS_GO_ON, or the exit code. */
int session_operand(const struct options *options, struct cli *cli, int argc, char **argv, const char *suffix,
		    int *ret_next, char **ret_path);

/* A subcommand that is one call about one session: netpawl COMMAND USER/SESSION. Reads the command line, asks the daemon,
 * prints. Returns the exit code. */
int session_command(struct cli *cli, int argc, char **argv, const char *help, const char *method,
		    void (*print)(const json_t *answer));

/* The list of sessions by pages, at most so many; fn stops it by an answer that is not 0. Returns the exit code. */
int session_pages(const struct cli *cli, bool ended, unsigned max, int (*fn)(void *data, const json_t *sessions),
		  void *data);

/* api_show() about a session. When there is none of that name, one that is nearly called so is named. */
int session_show(const struct cli *cli, const char *session, const char *method, const char *path, json_t *body,
		 void (*print)(const json_t *answer));

/* Nothing is known of it, or there is no such session? CLI_OK when there is one; else the exit code, after a message. */
int session_find(const struct cli *cli, const char *session);
