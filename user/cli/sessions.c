/* SPDX-License-Identifier: MIT */
/* netpawl sessions */
#include <limits.h>

#include "cli/options.h"
#include "cli/output.h"
#include "cli/session_command.h"

static const char sessions_help[] = "Usage: netpawl sessions [OPTIONS]\n\n"
				    "Lists sessions with their level and mode.\n\n"
				    "Options:\n"
				    "  --all            ended ones too\n" OPTIONS_COMMON "\nExample:\n"
				    "  netpawl sessions --all --json\n\n"
				    "Exit codes: 0 done; 1 refused or failed; 2 wrong usage; 3 no daemon.\n";

/* Page by page, so that a million of them take no more memory than a thousand. */
struct listing {
	bool json;
	size_t shown;
};

static const char *const columns[][2] = {
	{ "SESSION", "session" },   { "LEVEL", "level" },     { "MODE", "mode" },
	{ "DATASETS", "datasets" }, { "CREATED", "created" }, { "ENDED", "ended" },
};

static int page_print(void *data, const json_t *sessions)
{
	struct listing *listing = data;
	const json_t *session;
	size_t i;

	if (!listing->json && json_array_size(sessions))
		rows_print(sessions, columns, ARRAY_SIZE(columns), !listing->shown);
	json_array_foreach(sessions, i, session)
	{
		if (listing->json) {
			fputs(listing->shown ? ", " : "", stdout);
			json_dumpf(session, stdout, 0);
		}
		listing->shown++;
	}
	return 0;
}

int command_sessions(struct cli *cli, int argc, char **argv)
{
	bool all = false;
	const struct option_spec specs[] = { { "all", .flag = &all } };
	const struct options options = {
		.command = argv[0], .help = sessions_help, .specs = specs, .count = ARRAY_SIZE(specs)
	};
	struct listing listing = { 0 };
	int next, code = command_parse(&options, cli, argc, argv, &next);

	if (code != OPTIONS_GO_ON)
		return code;
	listing.json = cli->json;
	fputs(cli->json ? "{\"sessions\": [" : "", stdout);
	code = session_pages(cli, all, UINT_MAX, page_print, &listing);
	if (cli->json)
		puts("]}");
	else if (code == CLI_OK && !listing.shown)
		puts("no sessions");
	return code;
}
