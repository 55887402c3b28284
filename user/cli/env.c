/* SPDX-License-Identifier: MIT */
/* netpawl env USER/SESSION */
#include <string.h>

#include "api_client/api.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/session_command.h"
#include "launch/run.h"
#include "launch/trust_files.h"
#include "reason.h"

static const char env_help[] =
	"Usage: netpawl env USER/SESSION --dir DIR [OPTIONS]\n\n"
	"For cgroups that were adopted: writes what programs have to trust for TLS through the inspector into\n"
	"DIR, and prints the variables that lead them there, for a shell to read. netpawl run does the same by\n"
	"itself. The session needs a sandbox: its CA lives as long. The placeholders of its credentials are printed,\n"
	"too.\n\n"
	"Options:\n"
	"  --dir DIR        an existing directory for ca.pem, bundle.pem and bundle.jks\n"
	"  --at PATH        where programs see DIR, when it is mounted elsewhere for them\n" OPTIONS_COMMON
	"\nExample:\n"
	"  eval \"$(netpawl env alice/demo --dir /srv/trust)\"\n\n"
	"Exit codes: 0 done; 1 refused or failed (no inspector); 2 wrong usage; 3 no daemon.\n";

/* Quoted for a shell. */
static void variable_print(const char *name, const char *value)
{
	printf("export %s='", name);
	for (; *value; value++)
		if (*value == '\'')
			fputs("'\\''", stdout);
		else
			fputc(*value, stdout);
	fputs("'\n", stdout);
}

static int variable_add(void *data, const char *name, const char *value)
{
	if (data)
		json_object_set_new(data, name, json_string(value));
	else
		variable_print(name, value);
	return 0;
}

/* Without the variables that name files: in which place the caller would have them is not known here. */
static int placeholders_print(const struct cli *cli, const char *session, json_t *json)
{
	cleanup(placeholders_free) struct placeholders placeholders;
	int r = placeholders_fetch(cli->socket, session, false, &placeholders);

	for (size_t i = 0; r == 0 && i < placeholders.n; i++) {
		char *value = strchr(placeholders.env[i], '=');

		*value++ = '\0';
		variable_add(json, placeholders.env[i], value);
	}
	return r;
}

static int variables_print(const struct cli *cli, const char *session, const char *dir)
{
	_json_ json_t *json = cli->json ? json_object() : NULL;

	if (trust_variables_each(dir, variable_add, json) < 0 || placeholders_print(cli, session, json) < 0)
		return CLI_REFUSED;
	return cli->json ? json_print(take_ptr(json), CLI_OK) : CLI_OK;
}

int command_env(struct cli *cli, int argc, char **argv)
{
	const char *dir = NULL, *at = NULL;
	const struct option_spec specs[] = { { "dir", .value = &dir }, { "at", .value = &at } };
	const struct options options = { argv[0], env_help, specs, ARRAY_SIZE(specs), .operands = ONE_SESSION };
	cleanup(host_free) struct host host = { 0 };
	cleanup(trust_free) struct trust trust = { 0 };
	int next, r, code = command_parse(&options, cli, argc, argv, &next);

	if (code != OPTIONS_GO_ON)
		return code;
	if (!dir || dir[0] != '/' || (at && at[0] != '/'))
		return usage_error(argv[0], "--dir, and --at, take an absolute path");
	code = session_find(cli, argv[next]);
	if (code != CLI_OK)
		return code;
	r = host_look(NULL, &host);
	if (r < 0) {
		error_print(argv[next], NP_R_FAILED, strerror(-r));
		return CLI_REFUSED;
	}
	r = session_trust(cli->socket, argv[next], &host, true, &trust);
	if (r == 0)
		error_print(argv[next], NP_R_NO_INSPECTOR, "the session has no sandbox, or no inspector is ready");
	if (r <= 0 || trust_files_write(dir, &trust) < 0)
		return CLI_REFUSED;
	return variables_print(cli, argv[next], at ? at : dir);
}
