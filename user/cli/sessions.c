/* SPDX-License-Identifier: MIT */
/* netpawl sessions */
#include "api_client/api.h"
#include "cli/options.h"
#include "cli/output.h"

static void sessions_help(FILE *to)
{
	fputs("Usage: netpawl sessions [OPTIONS]\n\n"
	      "Lists sessions with their level and mode.\n\n"
	      "Options:\n"
	      "  --all            ended ones too\n" OPTIONS_COMMON "\nExample:\n"
	      "  netpawl sessions --all --json\n\n"
	      "Exit codes: 0 done; 1 refused or failed; 2 wrong usage; 3 no daemon.\n",
	      to);
}

static void sessions_print(const json_t *answer)
{
	_table_ struct table table = { .columns = 6, .heading = true };
	const json_t *session;
	size_t i;

	table_add(&table, "SESSION", "LEVEL", "MODE", "DATASETS", "CREATED", "ENDED");
	json_array_foreach(json_object_get(answer, "sessions"), i, session)
	{
		const json_t *count = json_object_get(session, "datasets");
		_free_ char *datasets = count ? scalar_text(count) : NULL;

		table_add(&table, member_text(session, "session"), member_text(session, "level"),
			  member_text(session, "mode"), datasets, member_text(session, "created"),
			  member_text(session, "ended"));
	}
	if (i)
		table_print(&table, stdout);
	else
		puts("no sessions");
}

int command_sessions(struct cli *cli, int argc, char **argv)
{
	bool all = false;
	const struct option_spec specs[] = { { "all", .flag = &all } };
	const struct options options = { argv[0], sessions_help, specs, ARRAY_SIZE(specs), false };
	const struct operands operands = { 0, 0, NULL, false };
	int next, code;

	code = command_parse(&options, &operands, cli, argc, argv, &next);
	if (code != OPTIONS_GO_ON)
		return code;
	return api_show(cli, NULL, "GET", all ? "/v1/sessions?ended=1" : "/v1/sessions", NULL, sessions_print);
}
