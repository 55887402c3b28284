/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/fs.h"
#include "cli/cli.h"
#include "cli/options.h"

static const char main_help[] = "Usage: netpawl [--socket PATH] [--json] COMMAND [OPTIONS]\n\n"
				"Takes network reach away from a running sandbox, and never gives it back.\n\n"
				"Commands:\n";

static void main_help_more(FILE *to)
{
	commands_print(commands, n_commands, to);
	fputs("\nOptions:\n" OPTIONS_COMMON "  --version        print the version\n\n"
	      "netpawl COMMAND --help tells more about each of them.\n\n"
	      "Exit codes: 0 done; 1 the daemon refused, or the operation failed; 2 wrong usage;\n"
	      "3 the daemon is not reachable. run and doctor have more.\n",
	      to);
}

static const char *socket_default(void)
{
	const char *path = getenv("NETPAWL_SOCKET");

	return path && *path ? path : CLI_SOCKET;
}

static bool table_has(const struct command *table, size_t n, const char *word)
{
	for (size_t i = 0; i < n; i++)
		if (!strcmp(table[i].name, word))
			return true;
	return false;
}

int main(int argc, char **argv)
{
	struct cli cli = { .socket = socket_default() };
	bool version = false;
	const struct option_spec specs[] = { { "version", .flag = &version } };
	const struct options options = {
		NULL, main_help, specs, ARRAY_SIZE(specs), .until_operand = true, .help_more = main_help_more,
	};
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
	if (next < argc && !table_has(commands, n_commands, argv[next]) &&
	    table_has(policy_commands, n_policy_commands, argv[next]))
		return usage_error(NULL, "there is no command '%s'; did you mean policy %s?", argv[next], argv[next]);
	return output_finish(command_dispatch(&options, commands, n_commands, &cli, argc - next, argv + next));
}
