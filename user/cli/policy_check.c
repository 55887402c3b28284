/* SPDX-License-Identifier: MIT */
/* netpawl policy check FILE */
#include <errno.h>

#include "cli/options.h"
#include "cli/output.h"
#include "cli/policy.h"
#include "policy/accounts.h"
#include "policy/tables.h"

static const char policy_check_help[] =
	"Usage: netpawl policy check FILE [OPTIONS]\n\n"
	"Reads a policy and all that it includes, and names everything that is wrong with it by file, line\n"
	"and column. Needs no daemon.\n\n"
	"Options:\n"
	"  --strict         warnings fail too, but for users and groups that this host does not have\n" OPTIONS_COMMON
	"\nExample:\n"
	"  netpawl policy check --strict /etc/netpawl/policy.yaml\n\n"
	"Exit codes: 0 the policy can be used; 1 it has errors; 2 wrong usage.\n";

/* What the daemon would say of it later. */
static bool policy_fits(const struct policy *policy, const char *file, struct problems *problems)
{
	struct gate_tables tables;
	int r = gate_tables_make(policy, &tables);

	if (r == 0)
		gate_tables_free(&tables);
	else
		problem_add(problems, false, file, 0, 0, "%s",
			    r == -E2BIG ? "its address rules make more entries than the gate's tables hold"
					: "out of memory");
	return r == 0;
}

int command_policy_check(struct cli *cli, int argc, char **argv)
{
	bool strict = false;
	const struct option_spec specs[] = { { "strict", .flag = &strict } };
	const struct options options = { "policy check", policy_check_help, specs, ARRAY_SIZE(specs),
					 .operands = { 1, 1, "one file", false } };
	_problems_ struct problems problems = { 0 };
	_policy_ struct policy *policy = NULL;
	int next, code = command_parse(&options, cli, argc, argv, &next);

	if (code != OPTIONS_GO_ON)
		return code;
	code = policy_load_file(argv[next], &policy, &problems) < 0 || !policy_fits(policy, argv[next], &problems)
		       ? CLI_REFUSED
		       : CLI_OK;
	if (strict && problems.warnings)
		code = CLI_REFUSED;
	if (policy) /* what this host has is no fault of the file, which may be meant for another */
		policy_accounts_check(policy, argv[next], &problems);
	if (cli->json)
		return json_print(json_pack("{s:o,s:b,s:o,s:i,s:o,s:o}", "file", text_json(argv[next]), "ok",
					    code == CLI_OK, "hash", text_json(policy ? policy->hash : NULL), "rules",
					    policy ? (int)(policy->n_rules + policy->n_full) : 0, "errors",
					    problems_json(&problems, false), "warnings",
					    problems_json(&problems, true)),
				  code);
	problems_print(&problems, true);
	if (policy && code == CLI_OK)
		output_clean_line(stdout, "%s: ok, %zu rule%s, hash %.*s", argv[next], policy->n_rules + policy->n_full,
				  policy->n_rules + policy->n_full == 1 ? "" : "s", POLICY_HASH_SHOWN, policy->hash);
	return code;
}
