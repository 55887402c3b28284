/* SPDX-License-Identifier: MIT */
/* What every subcommand shares: its settings, its exit codes, its place in the table. */
#ifndef NP_CLI_H
#define NP_CLI_H

#include <stdbool.h>

#define CLI_SOCKET "/run/netpawl/control.sock"

struct cli {
	const char *socket;
	bool json;
};

enum cli_exit {
	CLI_OK = 0,
	CLI_REFUSED = 1,   /* the daemon refused, or the operation failed */
	CLI_USAGE = 2,	   /* wrong usage */
	CLI_NO_DAEMON = 3, /* the daemon is not reachable */
	CLI_MISSING = 4,   /* doctor: this kernel lacks something */
};

/* argv[0] is the subcommand's name. Each returns an exit code. */
typedef int cli_fn(struct cli *cli, int argc, char **argv);

cli_fn command_run, command_escalate, command_sessions, command_show, command_attach, command_end, command_events,
	command_why, command_notices, command_status, command_policy, command_doctor, command_path, command_env,
	command_approve, command_reject, command_runs, command_remove, command_cp, command_forward;

#endif
