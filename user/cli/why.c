/* SPDX-License-Identifier: MIT */
/* netpawl why USER/SESSION */
#include <string.h>

#include "vocab/words.h"
#include "api_client/api.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/session_command.h"
#include "vocab/limits.h"

static const char why_help[] =
	"Usage: netpawl why USER/SESSION [OPTIONS]\n\n"
	"Says what was refused of a session, newest first: what was tried, where to, by which rule or mode, how\n"
	"often; since when the session is in that mode, and what it may reach instead. The text is fit for the\n"
	"context of the agent that was refused. It also says how many older refusals were not kept. --json has the\n"
	"facts as well.\n\n"
	"Options:\n"
	"  --last N         how many different refusals (default 10, at most 50)\n" OPTIONS_COMMON "\nExample:\n"
	"  netpawl why alice/demo --last 3\n\n"
	"Exit codes: 0 done; 1 refused or failed (no such session); 2 wrong usage; 3 no daemon.\n";

static void why_print(const json_t *answer)
{
	_free_ char *text = strdup(member_text(answer, "text") ?: "");

	for (char *save = NULL, *line = text ? strtok_r(text, "\n", &save) : NULL; line;
	     line = strtok_r(NULL, "\n", &save))
		output_clean_line(stdout, "%s", line);
}

int command_why(struct cli *cli, int argc, char **argv)
{
	const char *last = NULL;
	const struct option_spec specs[] = { { "last", .value = &last } };
	const struct options options = { argv[0], why_help, specs, ARRAY_SIZE(specs), .operands = ONE_SESSION };
	cleanup(buf_free) struct buf suffix = BUF_INIT(1024);
	_free_ char *path = NULL;
	uint64_t ignored;
	int next, code = command_parse(&options, cli, argc, argv, &next);

	if (code != OPTIONS_GO_ON)
		return code;
	if (last && !count_parse(last, NP_WHY_MAX, &ignored))
		return usage_error(argv[0], "--last takes a number from 1 to %d, and got '%s'", NP_WHY_MAX, last);
	buf_puts(&suffix, "/why");
	api_query(&suffix, "last", last);
	path = suffix.data ? api_session_path(argv[next], suffix.data) : NULL;
	return path ? session_show(cli, argv[next], "GET", path, NULL, why_print) : CLI_REFUSED;
}
