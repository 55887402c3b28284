/* SPDX-License-Identifier: MIT */
/* netpawl policy lists [FILE] */
#include <string.h>

#include "cli/options.h"
#include "cli/output.h"
#include "cli/policy.h"
#include "policy/reach_summary.h"
#include "policy/shipped.h"

static const char policy_lists_help[] =
	"Usage: netpawl policy lists [FILE] [OPTIONS]\n\n"
	"Prints the lists that come with netpawl, as a policy file: allow: \"@llm\" in a policy means the first.\n"
	"Of a policy, the lists that its rules use: where each destination is written, and by which rule it is\n"
	"used. Needs no daemon.\n\n"
	"Options:\n" OPTIONS_COMMON "\nExample:\n"
	"  netpawl policy lists /etc/netpawl/policy.yaml\n\n"
	"Exit codes: 0 done; 1 the policy has errors; 2 wrong usage.\n";

/* "policy.yaml:14" of a pattern and of its rule. */
static json_t *entry_json(const struct policy *policy, const struct rule *rule, const struct pattern *pattern)
{
	_buf_ struct buf destination = BUF_INIT(OUTPUT_TEXT_MAX);
	char at[PLACE_TEXT_SIZE], used[PLACE_TEXT_SIZE];

	pattern_put(&destination, pattern);
	place_format(policy, &pattern->at, at);
	place_format(policy, &rule->at, used);
	return json_pack("{s:o,s:o,s:o,s:o,s:b,s:b}", "list", text_json(pattern->list), "destination",
			 text_json(destination.data), "at", text_json(at), "used", text_json(used), "shipped",
			 !strcmp(policy->files[pattern->at.file], SHIPPED_FILE), "quiet", pattern->quiet);
}

static json_t *entries_json(const struct policy *policy)
{
	json_t *entries = json_array();

	for (size_t i = 0; i < policy->n_rules + policy->n_full; i++) {
		const struct rule *rule = i < policy->n_rules ? &policy->rules[i] : &policy->full[i - policy->n_rules];

		for (uint32_t k = 0; k < rule->n_patterns; k++)
			if (policy->patterns[rule->pattern + k].list)
				json_array_append_new(entries,
						      entry_json(policy, rule, &policy->patterns[rule->pattern + k]));
	}
	return entries;
}

int command_policy_lists(struct cli *cli, int argc, char **argv)
{
	static const char *const columns[][2] = {
		{ "LIST", "list" }, { "DESTINATION", "destination" }, { "WHERE", "at" }, { "USED BY", "used" }
	};
	const struct options options = { .command = "policy lists",
					 .help = policy_lists_help,
					 .operands = { 0, 1, "one file, or none", false } };
	_problems_ struct problems problems = { 0 };
	_policy_ struct policy *policy = NULL;
	int next, code = command_parse(&options, cli, argc, argv, &next);
	_json_ json_t *entries = NULL;

	if (code != OPTIONS_GO_ON)
		return code;
	if (next == argc) {
		if (cli->json)
			return json_print(json_pack("{s:s}", "yaml", shipped_lists), CLI_OK);
		fputs(shipped_lists, stdout);
		return CLI_OK;
	}
	if (policy_load_file(argv[next], &policy, &problems) < 0)
		return policy_broken(cli, &problems);
	entries = entries_json(policy);
	if (cli->json)
		return json_print(json_pack("{s:O}", "entries", entries), CLI_OK);
	if (!json_array_size(entries))
		puts("No rule of it uses a list.");
	else
		rows_print(entries, columns, ARRAY_SIZE(columns), true);
	return CLI_OK;
}
