/* SPDX-License-Identifier: MIT */
#include "cli/session.h"

#include "base/cleanup.h"
#include "cli/api.h"
#include "cli/options.h"
#include "policy/level.h"

int session_check(const char *command, const char *session)
{
	return api_session_form(session)
		       ? CLI_OK
		       : usage_error(command, "a session is written USER/SESSION, and not '%s'", session);
}

int level_check(const char *command, const char *level)
{
	enum level ignored;

	return level_parse(level, &ignored) == 0
		       ? CLI_OK
		       : usage_error(command,
				     "there is no level '%s'; there are PUBLIC, INTERNAL, CONFIDENTIAL and SECRET",
				     level);
}

int session_command(struct cli *cli, int argc, char **argv, void (*help)(FILE *to), const char *method,
		    void (*print)(const json_t *answer))
{
	const struct options options = { argv[0], help, NULL, 0, false };
	_free_ char *path = NULL;
	int next, code;

	code = options_parse(&options, cli, argc, argv, &next);
	if (code != OPTIONS_GO_ON)
		return code;
	if (argc - next != 1)
		return usage_error(argv[0], "it takes one session");
	code = session_check(argv[0], argv[next]);
	if (code != CLI_OK)
		return code;
	path = api_session_path(argv[next], "");
	if (!path)
		return CLI_REFUSED;
	return api_show(cli, argv[next], method, path, NULL, print);
}
