/* SPDX-License-Identifier: MIT */
/* netpawl approve ID, netpawl reject ID --reason TEXT, netpawl cancel ID */
#include <string.h>

#include "api_client/api.h"
#include "cli/options.h"
#include "cli/output.h"

static const char approve_help[] =
	"Usage: netpawl approve ID [OPTIONS]\n\n"
	"Lets a run that waits (`netpawl runs`) go on. The approval is for that run, its command and its\n"
	"options; it is given once, and void when the run does not start within a minute.\n\n"
	"Options:\n"
	"  --reason TEXT    why, for the record\n" OPTIONS_COMMON "\nExample:\n"
	"  netpawl approve 7\n\n"
	"Exit codes: 0 approved; 1 refused or failed; 2 wrong usage; 3 no daemon.\n";

static const char reject_help[] =
	"Usage: netpawl reject ID --reason TEXT [OPTIONS]\n\n"
	"Ends a run that waits (`netpawl runs`); it is never started.\n\n"
	"Options:\n"
	"  --reason TEXT    why; whoever asked for the run is told\n" OPTIONS_COMMON "\nExample:\n"
	"  netpawl reject 7 --reason 'the release is frozen'\n\n"
	"Exit codes: 0 rejected; 1 refused or failed; 2 wrong usage; 3 no daemon.\n";

static const char cancel_help[] =
	"Usage: netpawl cancel ID [OPTIONS]\n\n"
	"Ends a run on record (`netpawl runs`): all that it has started is killed, and nothing else, in a kept\n"
	"sandbox, too. One that waits is never started.\n\n"
	"Options:\n"
	"  --reason TEXT    why, for the record\n" OPTIONS_COMMON "\nExample:\n"
	"  netpawl cancel 7\n\n"
	"Exit codes: 0 it is over; 1 refused or failed; 2 wrong usage; 3 no daemon.\n";

static void cancel_print(const json_t *answer)
{
	output_clean_line(stdout, "run %lld of %s: cancelled, and %s", member_number(answer, "run"),
			  member_text(answer, "session") ?: "?", member_text(answer, "state") ?: "?");
}

static void approve_print(const json_t *answer)
{
	_free_ char *text = json_dumps(json_object_get(answer, "command"), JSON_COMPACT);
	_free_ char *options = json_dumps(json_object_get(answer, "options"), JSON_COMPACT);

	output_clean_line(stdout, "run %lld of %s: %s: %s with %s", member_number(answer, "run"),
			  member_text(answer, "session") ?: "?",
			  json_is_true(json_object_get(answer, "approved")) ? "approved" : "rejected", text ?: "?",
			  options ?: "?");
}

static int approve_decide(struct cli *cli, int argc, char **argv, const char *help, void (*print)(const json_t *answer),
			  bool needs_reason)
{
	const char *reason = NULL;
	const struct option_spec specs[] = { { "reason", .value = &reason } };
	const struct options options = { argv[0], help, specs, ARRAY_SIZE(specs),
					 .operands = { 1, 1, "the id of a run, a number", false } };
	_buf_ struct buf path = BUF_INIT(1024);
	json_t *body;
	int next, code = command_parse(&options, cli, argc, argv, &next);

	if (code != OPTIONS_GO_ON)
		return code;
	if (!*argv[next] || strspn(argv[next], "0123456789") != strlen(argv[next]))
		return usage_error(argv[0], "it takes the id of a run, a number");
	if (needs_reason && !reason)
		return usage_error(argv[0], "it takes --reason");
	buf_printf(&path, "/v1/runs/%s/%s", argv[next], argv[0]);
	if (buf_error(&path))
		return usage_error(argv[0], "there is no such id");
	code = api_body(argv[next], json_pack("{s:s*}", "reason", reason), &body);
	return code == CLI_OK ? api_show(cli, argv[next], "POST", path.data, body, print) : code;
}

int command_approve(struct cli *cli, int argc, char **argv)
{
	return approve_decide(cli, argc, argv, approve_help, approve_print, false);
}

int command_reject(struct cli *cli, int argc, char **argv)
{
	return approve_decide(cli, argc, argv, reject_help, approve_print, true);
}

int command_cancel(struct cli *cli, int argc, char **argv)
{
	return approve_decide(cli, argc, argv, cancel_help, cancel_print, false);
}
