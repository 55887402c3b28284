/* SPDX-License-Identifier: MIT */
#include "cli/session_command.h"

#include "base/cleanup.h"
#include "api_client/api.h"
#include "cli/options.h"
#include "cli/output.h"

int session_command(struct cli *cli, int argc, char **argv, void (*help)(FILE *to), const char *method,
		    void (*print)(const json_t *answer))
{
	const struct options options = { argv[0], help, NULL, 0, false };
	const struct operands operands = { 1, 1, "one session", true };
	_free_ char *path = NULL;
	int next, code;

	code = command_parse(&options, &operands, cli, argc, argv, &next);
	if (code != OPTIONS_GO_ON)
		return code;
	path = api_session_path(argv[next], "");
	if (!path)
		return CLI_REFUSED;
	return api_show(cli, argv[next], method, path, NULL, print);
}
