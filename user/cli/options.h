/* SPDX-License-Identifier: MIT */
/* Options by table: each subcommand names its own, --socket, --json and --help come with them. */
#pragma once

#include <stdio.h>

#include "cli/cli.h"
#include "vocab/run_options.h"

#define OPTIONS_SOCKET                                                                 \
	"  --socket PATH    the daemon's control socket (else $NETPAWL_SOCKET, else\n" \
	"                   " CLI_SOCKET ")\n"
#define OPTIONS_HELP	"  --help           print this text\n"
#define OPTIONS_COMMON	OPTIONS_SOCKET "  --json           print JSON instead of text\n" OPTIONS_HELP
#define OPTIONS_NO_JSON OPTIONS_SOCKET OPTIONS_HELP /* of those that have no_json, see below */

/* One of value, flag and list is set. */
struct option_spec {
	const char *name;
	const char **value;
	bool *flag;
	struct run_texts *list; /* of an option that may come more than once */
	unsigned complete;	/* enum complete: what a shell offers for its value */
};

/* What stands beside the options. */
struct operands {
	int least, most;
	const char *what; /* "a session and a level"; NULL where there are none */
	bool session;	  /* the first is one, where it is given */
};
#define ONE_SESSION                       \
	{                                 \
		1, 1, "one session", true \
	}

struct options {
	const char *command; /* NULL for netpawl itself */
	const char *help;
	const struct option_spec *specs;
	size_t count;
	struct operands operands;
	/* What a program uses instead, where there is no JSON to print: --json is wrong usage then, and says so. */
	const char *no_json;
	bool until_operand; /* stop at the first word that is no option: the rest is a command line */
	/* What follows help, where that depends on a table. */
	void (*help_more)(FILE *to);
};

#define OPTIONS_GO_ON (-1)

/* OPTIONS_GO_ON, with the index of the first operand in *ret_next; else the exit code to leave with, all said.
 * Operands are moved behind the options unless until_operand. */
int options_parse(const struct options *options, struct cli *cli, int argc, char **argv, int *ret_next);

/* The same, and looks at the operands: how many there are, and whether the session is written as one. */
int command_parse(const struct options *options, struct cli *cli, int argc, char **argv, int *ret_next);

/* Runs the command of the table that argv[0] names, and says which one may be meant where there is none of that name. options:
 * of whose commands these are. Returns the exit code. */
int command_dispatch(const struct options *options, const struct command *table, size_t n, struct cli *cli, int argc,
		     char **argv);
/* The table, as --help shows it. */
void commands_print(const struct command *table, size_t n, FILE *to);
