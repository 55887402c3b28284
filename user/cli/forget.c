/* SPDX-License-Identifier: MIT */
/* netpawl forget USER/SESSION */
#include "cli/options.h"
#include "cli/session_command.h"

static const char forget_help[] =
	"Usage: netpawl forget USER/SESSION [OPTIONS]\n\n"
	"Forgets a session that has ended: its record (datasets, notices) and its workspace with all files. What\n"
	"stays: its level, as one small row, so that a session of that name starts there; its events, as long as\n"
	"events are kept; runs and questions on record; archives of its workspace.\n\n"
	"Options:\n"
	"  --level-too      forget the level as well: a session of that name starts at PUBLIC. Only for whoever\n"
	"                   knows that nothing of what it had seen comes back under that name, such as an\n"
	"                   agent's conversation that a platform keeps\n" OPTIONS_COMMON "\nExample:\n"
	"  netpawl forget alice/demo\n\n"
	"Exit codes: 0 forgotten; 1 refused (it has not ended) or failed; 2 wrong usage; 3 no daemon.\n";

static void forget_print(const json_t *answer)
{
	const json_t *level = json_object_get(answer, "remembered");

	if (json_is_object(level))
		output_clean_line(stdout, "%s: forgotten, with its workspace; remembered is its level, %s (mode %s)",
				  member_text(answer, "session") ?: "?", member_text(level, "level") ?: "?",
				  member_text(level, "mode") ?: "?");
	else
		output_clean_line(stdout, "%s: forgotten, with its workspace; no level is remembered",
				  member_text(answer, "session") ?: "?");
}

int command_forget(struct cli *cli, int argc, char **argv)
{
	bool level_too = false;
	const struct option_spec specs[] = { { "level-too", .flag = &level_too } };
	const struct options options = { argv[0], forget_help, specs, ARRAY_SIZE(specs), .operands = ONE_SESSION };
	_free_ char *path = NULL;
	int next, code = session_operand(&options, cli, argc, argv, "/forget", &next, &path);

	return code != OPTIONS_GO_ON ? code
				     : session_show(cli, argv[next], "POST", path,
						    json_pack("{s:b}", "level_too", (int)level_too), forget_print);
}
