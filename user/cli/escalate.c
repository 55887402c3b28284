/* SPDX-License-Identifier: MIT */
/* netpawl escalate USER/SESSION LEVEL */
#include "api_client/api.h"
#include "cli/options.h"
#include "cli/session_command.h"

static const char escalate_help[] =
	"Usage: netpawl escalate USER/SESSION LEVEL [OPTIONS]\n\n"
	"Raises a session to LEVEL: PUBLIC, INTERNAL, CONFIDENTIAL or SECRET. All its sandboxes tighten at\n"
	"once and connections that are now forbidden are cut; when this returns, it is done and recorded.\n"
	"A lower level changes nothing.\n\n"
	"Options:\n"
	"  --create         make the session if there is none of that name\n"
	"  --existing       refuse then; this is the default\n"
	"  --dataset NAME   the data that makes it necessary\n"
	"  --reason TEXT    why, for the record\n" OPTIONS_COMMON "\nExample:\n"
	"  netpawl escalate alice/demo CONFIDENTIAL --dataset customers.csv --reason 'ticket 4711'\n\n"
	"Exit codes: 0 the level stands; 1 refused or failed; 2 wrong usage; 3 no daemon.\n";

static void escalate_print(const json_t *answer)
{
	bool raised = json_is_true(json_object_get(answer, "raised")),
	     created = json_is_true(json_object_get(answer, "created"));

	output_clean_line(stdout, "%s: %s%s%s, mode %s, generation %lld, %lld connections cut, %lld us",
			  member_text(answer, "session") ?: "?", created ? "made, and " : "",
			  raised ? "raised to " : "stands at ", member_text(answer, "level") ?: "?",
			  member_text(answer, "mode") ?: "?", member_number(answer, "generation"),
			  member_number(answer, "cut"), member_number(answer, "applied_us"));
}

int command_escalate(struct cli *cli, int argc, char **argv)
{
	const char *dataset = NULL, *reason = NULL;
	bool create = false, existing = false;
	const struct option_spec specs[] = {
		{ "create", .flag = &create },
		{ "existing", .flag = &existing },
		{ "dataset", .value = &dataset },
		{ "reason", .value = &reason },
	};
	const struct options options = { argv[0], escalate_help, specs, ARRAY_SIZE(specs),
					 .operands = { 2, 2, "a session and a level", true } };
	_free_ char *path = NULL;
	json_t *body;
	int next, code = command_parse(&options, cli, argc, argv, &next);

	if (code != OPTIONS_GO_ON)
		return code;
	code = level_check(argv[0], argv[next + 1]);
	if (code != CLI_OK)
		return code;
	if (create && existing)
		return usage_error(argv[0], "--create and --existing exclude each other");
	path = api_session_path(argv[next], "/datasets");
	if (!path)
		return CLI_REFUSED;
	code = api_body(argv[next],
			json_pack("{s:s,s:s*,s:s*,s:b}", "level", argv[next + 1], "dataset", dataset, "reason", reason,
				  "create", (int)create),
			&body);
	if (code != CLI_OK)
		return code;
	return session_show(cli, argv[next], "POST", path, body, escalate_print);
}
