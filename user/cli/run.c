/* SPDX-License-Identifier: MIT */
/* netpawl run -- COMMAND */
#include <string.h>

#include "cli/options.h"
#include "cli/output.h"
#include "launch/run.h"

static void run_help(FILE *to)
{
	fputs("Usage: netpawl run [OPTIONS] -- COMMAND [ARGUMENT...]\n\n"
	      "Runs a command in a new sandbox of a session. Needs root, bubblewrap, and the daemon's network\n"
	      "namespace.\n\n"
	      "The command sees the system (/usr, /etc, ...) read-only, the session's files in /workspace, a private\n"
	      "/tmp, /dev, /proc and /run, and nothing else of the host. It runs as a user of its own, has no\n"
	      "capability, cannot gain any, and may not make the system calls that would lead around the gate.\n"
	      "Where an inspector runs, programs trust the session's CA. The environment is the caller's, without\n"
	      "NETPAWL_SOCKET, with NETPAWL_SESSION, HOME=/workspace and what leads programs to certificates.\n"
	      "NETPAWL_NOTICES names a read-only file with the session's notices. When the command ends, whatever it\n"
	      "started is killed.\n\n"
	      "Options:\n"
	      "  --session U/S    the session; made when missing, and it stays, as does its workspace. Without it a\n"
	      "                   new one is made and ended afterwards, with a workspace in memory\n"
	      "  --level LEVEL    raise the session to this level before the start\n"
	      "  --class CLASS    what it may do on the network, whatever the session may: none; read_only (GET, HEAD "
	      "and\n"
	      "                   OPTIONS through the inspector); write (what the session may, once `netpawl approve`\n"
	      "                   let it: until then it waits)\n"
	      "  --keep           run it in the session's kept sandbox, which is made by the first such run and stays\n"
	      "                   with all that runs in it, until nobody used it for a while (sandbox: idle: in the\n"
	      "                   policy; 1h) or `netpawl remove` ends it. Limits may be left out later; what else it\n"
	      "                   was made with must be the same. --timeout and --output-limit are each run's own\n"
	      "  --user USER      run as this user: a name; the UID of a user that this host knows, with its groups; "
	      "or\n"
	      "                   UID:GID for any other, as in 1234:1234\n"
	      "  --bind S:D[:ro]  show the host's S at D; only what the policy's sandbox: section permits\n"
	      "  --chdir DIR      where to start (else the directory netpawl was started in, when the sandbox\n"
	      "                   sees it; else /workspace)\n"
	      "  --memory SIZE, --cpus N, --pids N\n"
	      "                   limits of the whole sandbox\n"
	      "  --timeout TIME   kill the sandbox after 90s, 5m, 1h; the exit code is then 124\n"
	      "  --output-limit SIZE\n"
	      "                   bytes of standard output and error together; the rest is thrown away\n"
	      "  --disk SIZE      of /tmp and every other file system in memory, and of the workspace\n"
	      "  --best-effort    go on when a limit cannot be set here, and say so\n"
	      "  --isolation none take only the network away. For those who bring their own isolation\n"
	      "  --dry-run        print the plan as JSON, and do nothing\n" OPTIONS_COMMON
	      "\n--json prints one object when the command has ended: exit_code, timed_out, killed_by, stdout, stderr\n"
	      "(the first MiB of each, or --output-limit), times, cpu_us, memory_peak, bytes, requests, queries, "
	      "denied.\n"
	      "\nExample:\n"
	      "  netpawl run --session alice/demo --memory 2GiB --timeout 10m -- python3 agent.py --fast\n\n"
	      "Exit codes: the command's own; 128+N when signal N killed it; 124 the time was over; 125 netpawl\n"
	      "failed before the command started (no daemon, too); 126 the command is not executable; 127 not found;\n"
	      "2 wrong usage.\n",
	      to);
}

static void json_print(json_t *owned)
{
	_json_ json_t *json = owned;

	if (json && json_dumpf(json, stdout, JSON_COMPACT) == 0)
		fputc('\n', stdout);
}

int command_run(struct cli *cli, int argc, char **argv)
{
	static struct run run; /* too large for a stack */
	struct run_options *o = &run.options;
	struct option_list binds = { o->binds, 0, ARRAY_SIZE(o->binds) };
	const struct option_spec specs[] = {
		{ "session", .value = &o->session, .complete = COMPLETE_SESSION },
		{ "level", .value = &o->level, .complete = COMPLETE_LEVEL },
		{ "class", .value = &o->class, .complete = COMPLETE_CLASS },
		{ "user", .value = &o->user },
		{ "isolation", .value = &o->isolation },
		{ "chdir", .value = &o->directory },
		{ "bind", .list = &binds },
		{ "memory", .value = &o->memory },
		{ "cpus", .value = &o->cpus },
		{ "pids", .value = &o->pids },
		{ "timeout", .value = &o->timeout },
		{ "output-limit", .value = &o->output },
		{ "disk", .value = &o->disk },
		{ "best-effort", .flag = &o->best_effort },
		{ "dry-run", .flag = &o->dry_run },
		{ "keep", .flag = &o->keep },
	};
	const struct options options = { argv[0], run_help, specs, ARRAY_SIZE(specs), .until_operand = true };
	int next, code;

	code = options_parse(&options, cli, argc, argv, &next);
	if (code != OPTIONS_GO_ON)
		return code;
	if (next == argc)
		return usage_error(argv[0], "it takes a command");
	if (o->keep && !o->session)
		return usage_error(argv[0], "--keep needs --session: the sandbox is kept for its next run");
	if (o->keep && (o->class || (o->isolation && strcmp(o->isolation, "bwrap") != 0)))
		return usage_error(argv[0],
				   "--keep goes with neither --class, which is for one run, nor --isolation none");
	o->n_binds = binds.n;
	run.command = argv + next;
	run.socket = cli->socket;
	run.json = cli->json;
	code = run_perform(&run);
	if (run.has_ended)
		run_result_print(&run);
	if (run.has_ended && run.json)
		json_print(run_result_json(&run));
	else if (o->dry_run && code == CLI_OK)
		json_print(run_plan_json(&run));
	run_free(&run);
	return code;
}
