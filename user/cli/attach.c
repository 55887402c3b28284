/* SPDX-License-Identifier: MIT */
/* netpawl attach USER/SESSION --cgroup PATH */
#include <errno.h>
#include <string.h>

#include "api_client/api.h"
#include "cli/options.h"
#include "cli/output.h"
#include "reason.h"

static const char attach_help[] =
	"Usage: netpawl attach USER/SESSION --cgroup PATH [OPTIONS]\n\n"
	"Makes a sandbox of a cgroup v2 directory that exists, with all that runs in it and below. What its\n"
	"processes hold open counts: connections that the session's mode forbids are cut, and sockets that\n"
	"cannot be governed are a reason to refuse. What `netpawl run` shuts beyond that stays open here;\n"
	"`netpawl doctor` tells what it means.\n\n"
	"Options:\n"
	"  --cgroup PATH    the cgroup's directory\n" OPTIONS_COMMON "\nExample:\n"
	"  netpawl attach alice/demo --cgroup /sys/fs/cgroup/machine.slice/agent-7\n\n"
	"Exit codes: 0 adopted; 1 refused or failed; 2 wrong usage; 3 no daemon.\n";

static void attach_print(const json_t *answer)
{
	output_clean_line(stdout, "%s: adopted %s as %s, mode %s, %lld connections cut",
			  member_text(answer, "session") ?: "?", member_text(answer, "cgroup") ?: "?",
			  member_text(answer, "sandbox") ?: "?", member_text(answer, "mode") ?: "?",
			  (long long)json_integer_value(json_object_get(answer, "cut")));
}

int command_attach(struct cli *cli, int argc, char **argv)
{
	const char *cgroup = NULL;
	const struct option_spec specs[] = { { "cgroup", .value = &cgroup } };
	const struct options options = { argv[0], attach_help, specs, ARRAY_SIZE(specs),
					 .operands = { 1, 1, "one session, and --cgroup", true } };
	_free_ char *absolute = NULL;
	json_t *body;
	int next, code = command_parse(&options, cli, argc, argv, &next);

	if (code != OPTIONS_GO_ON)
		return code;
	if (!cgroup)
		return usage_error(argv[0], "it takes --cgroup");
	absolute = realpath(cgroup, NULL); /* the daemon does not know our working directory */
	if (!absolute) {
		char detail[512];

		snprintf(detail, sizeof(detail), "%s: %s", cgroup, strerror(errno));
		error_print(argv[next], NP_R_BAD_CGROUP, detail);
		return CLI_REFUSED;
	}
	code = api_body(argv[next], json_pack("{s:s,s:s}", "session", argv[next], "cgroup", absolute), &body);
	if (code != CLI_OK)
		return code;
	return api_show(cli, argv[next], "POST", "/v1/sandboxes", body, attach_print);
}
