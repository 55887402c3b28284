/* SPDX-License-Identifier: MIT */
/* netpawl policy schema */
#include "base/buf.h"
#include "cli/options.h"
#include "cli/policy.h"
#include "policy/keys.h"
#include "reason.h"

#define SCHEMA_MAX (256u << 10) /* twenty times what it is */

static const char policy_schema_help[] =
	"Usage: netpawl policy schema [OPTIONS]\n\n"
	"Prints a JSON Schema of policy files, with which editors complete and check them: their keys and the\n"
	"shapes of their values. What the values mean is left to `netpawl policy check`. Editors that use the\n"
	"YAML language server take it from a comment in the policy's first line:\n"
	"  # yaml-language-server: $schema=/usr/local/share/netpawl/policy.schema.json\n\n"
	"Options:\n" OPTIONS_COMMON "\nExample:\n"
	"  netpawl policy schema > policy.schema.json\n\n"
	"Exit codes: 0 done; 1 failed; 2 wrong usage.\n";

int command_policy_schema(struct cli *cli, int argc, char **argv)
{
	const struct options options = { .command = "policy schema", .help = policy_schema_help };
	_buf_ struct buf text = BUF_INIT(SCHEMA_MAX);
	_json_ json_t *schema = NULL;
	int next, code = command_parse(&options, cli, argc, argv, &next);

	if (code != OPTIONS_GO_ON)
		return code;
	policy_schema(&text);
	if (!buf_error(&text))
		schema = json_loadb(text.data, text.len, JSON_REJECT_DUPLICATES, NULL);
	if (!schema || json_dumpf(schema, stdout, cli->json ? JSON_COMPACT : JSON_INDENT(2)) < 0) {
		error_print(NULL, NP_R_FAILED, "the schema could not be written");
		return CLI_REFUSED;
	}
	putchar('\n');
	return CLI_OK;
}
