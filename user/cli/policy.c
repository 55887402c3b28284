/* SPDX-License-Identifier: MIT */
/* netpawl policy check|test|explain|suggest|lists|schema|show|reload|save */
#include "cli/policy.h"

#include <string.h>

#include "cli/options.h"
#include "cli/output.h"
#include "reason.h"

const struct command policy_commands[] = {
	{ "check", command_policy_check, "read a policy and say what is wrong with it", 0 },
	{ "test", command_policy_test, "compare a policy with what .case files expect of it", 0 },
	{ "explain", command_policy_explain, "what a policy says to one request, and why", 0 },
	{ "suggest", command_policy_suggest, "rules for what a session was refused, or a project names", 0 },
	{ "lists", command_policy_lists, "the lists that come with netpawl, or those of a policy", 0 },
	{ "schema", command_policy_schema, "a JSON Schema of policy files, for editors", COMPLETE_NOTHING },
	{ "show", command_policy_show, "the policy that the daemon enforces", COMPLETE_NOTHING },
	{ "reload", command_policy_reload, "have the daemon read its policy again", COMPLETE_NOTHING },
	{ "save", command_policy_save, "have the daemon write a file of its policy, and read it", 0 },
};
const size_t n_policy_commands = ARRAY_SIZE(policy_commands);

static const char policy_help[] = "Usage: netpawl policy COMMAND [OPTIONS]\n\n"
				  "Policies say what a sandbox may reach; netpawl-policy(5) describes them.\n\n"
				  "Commands:\n";

static void policy_help_more(FILE *to)
{
	commands_print(policy_commands, n_policy_commands, to);
	fputs("\ncheck, test, explain, lists, schema and suggest DIR need no daemon.\n\n"
	      "Options:\n" OPTIONS_COMMON "\nExamples:\n"
	      "  netpawl policy check /etc/netpawl/policy.yaml\n"
	      "  netpawl policy explain policy.yaml --method GET --url https://api.github.com/repos/a/b\n\n"
	      "netpawl policy COMMAND --help tells more about each of them.\n\n"
	      "Exit codes: 0 done; 1 the policy has errors, or the daemon refused; 2 wrong usage; 3 no daemon.\n",
	      to);
}

int command_policy(struct cli *cli, int argc, char **argv)
{
	const struct options options = {
		argv[0],
		policy_help,
		.until_operand = true,
		.help_more = policy_help_more,
	};
	int next, code = options_parse(&options, cli, argc, argv, &next);

	return code != OPTIONS_GO_ON
		       ? code
		       : command_dispatch(&options, policy_commands, n_policy_commands, cli, argc - next, argv + next);
}

void problems_print(const struct problems *problems, bool warnings)
{
	size_t errors = 0;

	for (size_t i = 0; i < problems->count; i++) {
		const struct problem *problem = &problems->items[i];
		char text[PROBLEM_LINE_SIZE];

		errors += !problem->warning;
		if (problem->warning && !warnings)
			continue;
		problem_format(problem, text);
		output_clean_line(stderr, "%s", text);
	}
	if (problems->errors > errors)
		fprintf(stderr, "netpawl: %zu more errors are not shown\n", problems->errors - errors);
	if (warnings && problems->warnings > problems->count - errors)
		fprintf(stderr, "netpawl: %zu more warnings are not shown\n",
			problems->warnings - (problems->count - errors));
}

json_t *text_json(const char *text)
{
	_buf_ struct buf clean = BUF_INIT(OUTPUT_TEXT_MAX);

	if (!text)
		return json_null();
	output_text(&clean, text, strlen(text));
	return json_string(clean.data ? clean.data : "");
}

json_t *problems_json(const struct problems *problems, bool warnings)
{
	json_t *array = json_array();

	for (size_t i = 0; i < problems->count; i++) {
		const struct problem *problem = &problems->items[i];
		json_t *one;

		if (problem->warning != warnings)
			continue;
		one = json_pack("{s:o,s:i,s:i,s:o}", "file", text_json(problem->file), "line", (int)problem->line,
				"column", (int)problem->column, "message", text_json(problem->text));
		if (problem->other_line)
			json_object_set_new(one, "other",
					    json_pack("{s:o,s:i}", "file", text_json(problem->other_file), "line",
						      (int)problem->other_line));
		json_array_append_new(array, one);
	}
	return array;
}

json_t *rule_json(const struct policy *policy, const struct rule *rule)
{
	if (!rule)
		return json_null();
	return json_pack("{s:o,s:i,s:o}", "file", text_json(policy->files[rule->at.file]), "line", (int)rule->at.line,
			 "text", text_json(rule->text));
}

int policy_broken(const struct cli *cli, const struct problems *problems)
{
	problems_print(problems, false);
	if (!cli->json)
		return CLI_REFUSED;
	return json_print(json_pack("{s:b,s:o}", "ok", 0, "errors", problems_json(problems, false)), CLI_REFUSED);
}
