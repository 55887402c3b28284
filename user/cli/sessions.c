/* SPDX-License-Identifier: MIT */
/* netpawl sessions */
#include <limits.h>

#include "api_client/api.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/session_command.h"

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

/* Page by page, so that a million of them take no more memory than a thousand. */
struct listing {
	bool json;
	size_t shown;
};

static void rows_print(const json_t *sessions, bool heading)
{
	_table_ struct table table = { .columns = 6, .heading = heading };
	const json_t *session;
	size_t i;

	if (heading)
		table_add(&table, "SESSION", "LEVEL", "MODE", "DATASETS", "CREATED", "ENDED");
	json_array_foreach(sessions, i, session)
	{
		const json_t *count = json_object_get(session, "datasets");
		_free_ char *datasets = count ? scalar_text(count) : NULL;

		table_add(&table, member_text(session, "session"), member_text(session, "level"),
			  member_text(session, "mode"), datasets, member_text(session, "created"),
			  member_text(session, "ended"));
	}
	table_print(&table, stdout);
}

static int page_print(void *data, const json_t *sessions)
{
	struct listing *listing = data;
	const json_t *session;
	size_t i;

	if (!listing->json && json_array_size(sessions))
		rows_print(sessions, !listing->shown);
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
	const struct options options = { argv[0], sessions_help, specs, ARRAY_SIZE(specs), false };
	const struct operands operands = { 0, 0, NULL, false };
	struct listing listing = { 0 };
	int next, code;

	code = command_parse(&options, &operands, cli, argc, argv, &next);
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
