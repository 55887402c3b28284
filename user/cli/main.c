/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fs.h"
#include "cli/cli.h"
#include "cli/options.h"
#include "cli/output.h"

static void usage_print(FILE *to)
{
	fprintf(to, "Usage: netpawl [--socket PATH] [--json] COMMAND [OPTIONS]\n\n"
		    "Takes network reach away from a running sandbox, and never gives it back.\n\n"
		    "Commands:\n");
	for (size_t i = 0; i < n_commands; i++)
		fprintf(to, "  %-10s %s\n", commands[i].name, commands[i].about);
	fprintf(to, "\nOptions:\n" OPTIONS_COMMON "  --version        print the version\n\n"
		    "netpawl COMMAND --help tells more about each of them.\n\n"
		    "Exit codes: 0 done; 1 the daemon refused, or the operation failed; 2 wrong usage;\n"
		    "3 the daemon is not reachable. run and doctor have more.\n");
}

static const char *socket_default(void)
{
	const char *path = getenv("NETPAWL_SOCKET");

	return path && *path ? path : CLI_SOCKET;
}

int main(int argc, char **argv)
{
	struct cli cli = { .socket = socket_default() };
	bool version = false;
	const struct option_spec specs[] = { { "version", .flag = &version } };
	const struct options options = { NULL, usage_print, specs, ARRAY_SIZE(specs), .until_operand = true };
	int next, code;

	if (fs_stdio_fill() < 0)
		return CLI_REFUSED;
	code = options_parse(&options, &cli, argc, argv, &next);
	if (code != OPTIONS_GO_ON)
		return code;
	if (version) {
		printf("netpawl %s\n", NETPAWL_VERSION);
		return output_finish(CLI_OK);
	}
	if (next == argc) {
		usage_print(stderr);
		return CLI_USAGE;
	}
	for (size_t i = 0; i < n_commands; i++)
		if (!strcmp(argv[next], commands[i].name))
			return output_finish(commands[i].run(&cli, argc - next, argv + next));
	return command_unknown(NULL, argv[next], commands, n_commands);
}
