/* SPDX-License-Identifier: MIT */
/* netpawl run -- COMMAND */
#include <pwd.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "vocab/words.h"
#include "cli/api.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/run.h"
#include "reason.h"
#include "vocab/limits.h"

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

/* Mounts of the host may come and go while a sandbox is made, and what was to be covered is gone: another look helps. */
#define MAKE_TRIES 3

static bool name_char(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '_' ||
	       c == '-';
}

static bool name_is_fit(const char *name)
{
	if (!name || !name_char(*name) || strchr("._-", *name) || strlen(name) > NP_NAME_MAX)
		return false;
	while (*name && name_char(*name))
		name++;
	return !*name;
}

/* $USER/run-PID-RANDOM: the pid is for people, the rest keeps it from meeting an older one. */
static void session_name_make(struct run *run)
{
	const struct passwd *pw = getpwuid(getuid());
	const char *user = getenv("USER");
	unsigned salt = 0;

	if (!name_is_fit(user))
		user = pw && name_is_fit(pw->pw_name) ? pw->pw_name : "root";
	if (getrandom(&salt, sizeof(salt), 0) < 0)
		salt = 0;
	snprintf(run->own_session, sizeof(run->own_session), "%s/run-%d-%08x", user, getpid(), salt);
	run->session = run->own_session;
}

uint64_t wall_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

static void json_print(json_t *owned)
{
	_json_ json_t *json = owned;

	if (json && json_dumpf(json, stdout, JSON_COMPACT) == 0)
		fputc('\n', stdout);
}

/* Loud, for it is a sandbox in name only. */
static void isolation_warn(const struct run *run)
{
	if (!run->isolated)
		fputs("netpawl: run: --isolation none: only the network is confined. The command sees the host's "
		      "files,\n"
		      "processes and devices, keeps its user and its capabilities, and no system call is refused: as "
		      "root\n"
		      "it can leave its cgroup and so the gate. Isolate it yourself, or leave this option out.\n",
		      stderr);
}

void run_result_print(struct run *run, const struct launch_result *result)
{
	if (result->missing[0])
		output_clean_line(stderr, "netpawl: run: not set, for this host cannot: %s", result->missing);
	if (result->timed_out && !run->cli->json)
		output_clean_line(stderr, "netpawl: run: the time was over; the sandbox was killed");
	else if (!result->started && result->problem[0])
		output_clean_line(stderr, "netpawl: run: %s", result->problem);
	for (int fd = 1; !run->cli->json && fd < 3; fd++)
		if (result->truncated[fd])
			output_clean_line(stderr, "netpawl: run: standard %s was cut at --output-limit",
					  fd == 1 ? "output" : "error");
	if (run->cli->json)
		json_print(run_result_json(run, result));
}

/* Signals are held from here on: none of them may end us between making the sandbox and removing it. */
static int run_sandboxed(struct run *run)
{
	struct launch_result result = { .exit_code = LAUNCH_FAILED };
	struct launch_order order = {
		.plan = &run->plan,
		.keep_output = run->cli->json,
		.outlive_reader = run->options.record,
		.on_ended = run_on_ended,
		.data = run,
	};
	sigset_t mask;
	int code;

	launch_hold_signals(&mask);
	code = session_make(run);
	if (code == CLI_OK)
		code = run_on_record(run);
	if (code == CLI_OK && run->options.keep) /* the record may say so, too */
		return run_kept(run, &mask);
	if (code == CLI_OK && sandbox_make(run) == CLI_OK && run_plan(run) == CLI_OK) {
		isolation_warn(run);
		order.cgroup = run->cgroup;
		order.mask = &mask;
		run->started_us = wall_us();
		launch_run(&order, &result);
		for (unsigned i = 1; i < MAKE_TRIES && result.unmade && sandbox_renew(run); i++) {
			launch_result_free(&result);
			order.cgroup = run->cgroup;
			launch_run(&order, &result);
		}
		run_ended(run, &result);
		run_result_print(run, &result);
	}
	run_report(run, &result);
	run_clean_up(run, result.started && run->isolated);
	launch_result_free(&result);
	return result.exit_code;
}

/* The plan as it would be: the user is chosen when the sandbox is made. */
static int run_dry(struct run *run)
{
	char path[FS_PATH_SIZE];

	if (run->session != run->own_session && run->isolated && run->data_dir &&
	    fs_path(path, "%s/%s", run->data_dir, run->session) == 0)
		run->workspace = strdup(path);
	run->has_identity = run->has_identity || run->isolated;
	run->identity.root = NP_UID_FIRST;
	if (!run->options.user)
		run->identity.uid = run->identity.gid = NP_UID_FIRST;
	if (run_plan(run) != CLI_OK)
		return LAUNCH_FAILED;
	json_print(run_plan_json(run));
	return output_finish(CLI_OK);
}

static int run_checked(struct run *run)
{
	int code = run->options.record ? run_record_read(run) : CLI_OK;

	if (code == CLI_OK) /* options that are wrong are told before anybody is asked */
		code = run_read(run);
	if (code != CLI_OK)
		return code;
	if (geteuid() != 0) {
		error_print("run", NP_R_NOT_PERMITTED, NULL);
		return LAUNCH_FAILED;
	}
	run->session = run->options.session;
	if ((!run->options.keep || run->options.dry_run) &&
	    run_facts_get(run) != CLI_OK) /* else they come with the sandbox */
		return LAUNCH_FAILED;
	if (!run->session)
		session_name_make(run);
	return run->options.dry_run ? run_dry(run) : run_sandboxed(run);
}

/* Is there an option that says how it is to be run? */
static bool any_option_given(const struct run_options *o)
{
	return o->level || o->class || o->user || o->isolation || o->directory || o->memory || o->cpus || o->pids ||
	       o->timeout || o->output || o->disk || o->best_effort || o->keep;
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
		{ "record", .value = &o->record, .hidden = true }, /* netpawld's: a run that is on record already */
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

	run.cli = cli;
	code = options_parse(&options, cli, argc, argv, &next);
	if (code != OPTIONS_GO_ON)
		return code;
	if (!o->record && next == argc)
		return usage_error(argv[0], "it takes a command");
	if (o->record && (next != argc || o->dry_run || any_option_given(o) || binds.n))
		return usage_error(argv[0],
				   "a run on record has its command, class and options there, and is for running");
	if (o->keep && !o->session)
		return usage_error(argv[0], "--keep needs --session: the sandbox is kept for its next run");
	if (o->keep && (o->class || (o->isolation && strcmp(o->isolation, "bwrap") != 0)))
		return usage_error(argv[0],
				   "--keep goes with neither --class, which is for one run, nor --isolation none");
	o->n_binds = binds.n;
	run.command = argv + next; /* --record: none */
	code = run_checked(&run);
	run_free(&run);
	return code;
}
