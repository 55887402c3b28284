/* SPDX-License-Identifier: MIT */
/* netpawl remove SANDBOX */
#include "api_client/api.h"
#include "cli/options.h"
#include "cli/output.h"

static const char remove_help[] =
	"Usage: netpawl remove SANDBOX [OPTIONS]\n\n"
	"Removes a sandbox, with all that runs in it: a kept one (`netpawl run --keep`), or any other. `netpawl\n"
	"show` names those of a session. Of an adopted cgroup nothing may run any more. The session and its\n"
	"workspace stay.\n\n"
	"Options:\n" OPTIONS_COMMON "\nExample:\n"
	"  netpawl remove alice.demo.5f3a9c01\n\n"
	"Exit codes: 0 done; 1 refused or failed (no such sandbox); 2 wrong usage; 3 no daemon.\n";

static void remove_print(const json_t *answer)
{
	output_clean_line(stdout, "%s: removed", member_text(answer, "sandbox") ?: "?");
}

int command_remove(struct cli *cli, int argc, char **argv)
{
	const struct options options = { argv[0], remove_help, NULL, 0, .operands = { 1, 1, "one sandbox", false } };
	_buf_ struct buf path = BUF_INIT(4096);
	int next, code = command_parse(&options, cli, argc, argv, &next);

	if (code != OPTIONS_GO_ON)
		return code;
	buf_puts(&path, "/v1/sandboxes/");
	api_escape(&path, argv[next]);
	if (buf_error(&path))
		return usage_error(argv[0], "the name is too long");
	return api_show(cli, argv[next], "DELETE", path.data, NULL, remove_print);
}
