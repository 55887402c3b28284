/* SPDX-License-Identifier: MIT */
/* netpawl runs [USER/SESSION] */
#include <string.h>

#include "base/chars.h"
#include "api_client/api.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/session_command.h"

static const char runs_help[] =
	"Usage: netpawl runs [USER/SESSION] [OPTIONS]\n\n"
	"Lists runs on record (with --class, or asked for by the API), the newest first: what waits for\n"
	"approval, what runs, and what became of the others.\n\n"
	"Options:\n"
	"  --session U/S    only those of that session, as the operand\n"
	"  --state STATE    only pending, running, completed, rejected or failed ones\n" OPTIONS_COMMON "\nExample:\n"
	"  netpawl runs --state pending\n\n"
	"Exit codes: 0 done; 1 refused or failed; 2 wrong usage; 3 no daemon.\n";

static void runs_print(const json_t *runs)
{
	static const char *const columns[][2] = {
		{ "RUN", "run" },	  { "SESSION", "session" }, { "CLASS", "class" },
		{ "STATE", "state" },	  { "CREATED", "created" }, { "DECIDED BY", "decided_by" },
		{ "OPTIONS", "options" }, { "COMMAND", "command" },
	};

	if (json_array_size(runs))
		rows_print(runs, columns, ARRAY_SIZE(columns), true);
	else
		puts("no runs");
}

static int runs_show(const struct cli *cli, const char *session, const char *path)
{
	_api_answer_ struct api_answer answer = { 0 };
	int code = api_call(cli->socket, NULL, "GET", path, NULL, &answer);
	const json_t *runs = json_object_get(answer.json, "runs");

	if (code == CLI_OK && session && !json_array_size(runs)) {
		code = session_find(cli, session);
		if (code != CLI_OK)
			return code;
	}
	if (cli->json && answer.text)
		json_text_print(answer.text);
	else if (code == CLI_OK)
		runs_print(runs);
	return code;
}

static bool is_state(const char *word)
{
	static const char *const states[] = { "pending", "running", "completed", "rejected", "failed" };

	return WORD_IS_ONE_OF(word, states);
}

int command_runs(struct cli *cli, int argc, char **argv)
{
	const char *state = NULL, *session = NULL;
	const struct option_spec specs[] = { { "session", .value = &session, .complete = COMPLETE_SESSION },
					     { "state", .value = &state, .complete = COMPLETE_STATE } };
	const struct options options = { argv[0], runs_help, specs, ARRAY_SIZE(specs),
					 .operands = { 0, 1, "one session at most", true } };
	_buf_ struct buf path = BUF_INIT(4096);
	int next, code = command_parse(&options, cli, argc, argv, &next);

	if (code != OPTIONS_GO_ON)
		return code;
	if (session && next < argc)
		return usage_error(argv[0], "it takes one session at most");
	if (session && session_check(argv[0], session) != CLI_OK)
		return CLI_USAGE;
	session = next < argc ? argv[next] : session;
	if (state && !is_state(state))
		return usage_error(argv[0],
				   "there is no state '%s'; there are pending, running, completed, rejected and failed",
				   state);
	buf_puts(&path, "/v1/runs");
	api_query(&path, "session", session);
	api_query(&path, "state", state);
	if (buf_error(&path))
		return usage_error(argv[0], "the name is too long");
	return runs_show(cli, session, path.data);
}
