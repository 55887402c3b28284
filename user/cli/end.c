/* SPDX-License-Identifier: MIT */
/* netpawl end USER/SESSION */
#include "cli/options.h"
#include "cli/session_command.h"

static const char end_help[] =
	"Usage: netpawl end USER/SESSION [OPTIONS]\n\n"
	"Ends a session: kills what runs in the sandboxes that `netpawl run` made, and removes them. The\n"
	"session's level is kept; used again, it starts at that level.\n\n"
	"Options:\n" OPTIONS_COMMON "\nExample:\n"
	"  netpawl end alice/demo\n\n"
	"Exit codes: 0 ended; 1 refused or failed; 2 wrong usage; 3 no daemon.\n";

static void end_print(const json_t *answer)
{
	output_clean_line(stdout, "%s: ended; its level is kept", member_text(answer, "session") ?: "?");
}

int command_end(struct cli *cli, int argc, char **argv)
{
	return session_command(cli, argc, argv, end_help, "DELETE", end_print);
}
