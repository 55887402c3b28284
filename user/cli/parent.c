/* SPDX-License-Identifier: MIT */
/* netpawl parent USER/SESSION */
#include <string.h>

#include "api_client/api.h"
#include "api_client/container.h"
#include "cli/options.h"
#include "reason.h"

static const char parent_help[] =
	"Usage: netpawl parent USER/SESSION [OPTIONS]\n\n"
	"Prints a cgroup that is a sandbox of the session, for --cgroup-parent of Docker and Podman: containers "
	"are\n"
	"born inside, and have the session's mode from their first instruction on. It is made if the session "
	"has\n"
	"none yet, and stays until it is removed or the session ends. netpawl docker and netpawl podman ask for "
	"it\n"
	"by themselves, and bring what containers have to trust.\n\n"
	"Options:\n"
	"  --systemd        print its name as a slice, for engines that leave cgroups to systemd\n" OPTIONS_COMMON
	"\nExample:\n"
	"  podman run --cgroup-parent \"$(netpawl parent alice/demo)\" --cgroups no-conmon --cap-drop NET_RAW "
	"alpine\n\n"
	"Exit codes: 0 done; 1 refused or failed; 2 wrong usage; 3 no daemon.\n";

int command_parent(struct cli *cli, int argc, char **argv)
{
	bool systemd = false;
	const struct option_spec specs[] = { { "systemd", .flag = &systemd } };
	const struct options options = { argv[0], parent_help, specs, ARRAY_SIZE(specs), .operands = ONE_SESSION };
	_api_answer_ struct api_answer answer = { 0 };
	const char *parent;
	int next, code;

	code = command_parse(&options, cli, argc, argv, &next);
	if (code != OPTIONS_GO_ON)
		return code;
	code = container_parent(cli->socket, argv[next], systemd, &answer);
	if (code != CLI_OK)
		return code;
	parent = member_text(answer.json, "cgroup_parent");
	/* There alone is it where systemd looks for a slice of that name. */
	if (systemd && strncmp(parent, "/netpawl.slice/", strlen("/netpawl.slice/")) != 0) {
		error_print(argv[next], NP_R_UNSUPPORTED, "netpawld's own cgroup is another than netpawl.slice");
		return CLI_REFUSED;
	}
	if (cli->json)
		output_clean_line(stdout, "%s", answer.text);
	else
		output_clean_line(stdout, "%s", systemd ? strrchr(parent, '/') + 1 : parent);
	return output_finish(CLI_OK);
}
