/* SPDX-License-Identifier: MIT */
/* netpawl run -- COMMAND */
#include <string.h>

#include "cli/options.h"
#include "cli/output.h"
#include "launch/run.h"

#define HELP_COLUMN 17

/* "  --name VALUE   what it is for", or that on the next line, where the first is too long. */
static void option_help(FILE *to, const struct run_option *option)
{
	char name[RUN_DASHED_SIZE];
	int n = fprintf(to, "  --%s%s%s", run_option_dashed(option, name), option->value ? " " : "",
			option->value ? option->value : "");

	n = n < HELP_COLUMN + 2 ? n : (fputc('\n', to), 0);
	for (const char *line = option->about; *line; line += strcspn(line, "\n"), line += *line == '\n', n = 0)
		fprintf(to, "%*s%.*s\n", HELP_COLUMN + 2 - n, "", (int)strcspn(line, "\n"), line);
}

static const char run_help[] =
	"Usage: netpawl run [OPTIONS] -- COMMAND [ARGUMENT...]\n\n"
	"Runs a command in a new sandbox of a session. Needs root, user namespaces, and the daemon's network\n"
	"namespace; or a role of platform (access: in the policy): then the daemon runs it, with this terminal.\n\n"
	"The command sees the system (/usr, /etc, ...) read-only, the session's files in /workspace, a private\n"
	"/tmp, /dev, /proc and /run, and nothing else of the host. It runs as a user of its own, has no\n"
	"capability, cannot gain any, and may not make the system calls that would lead around the gate.\n"
	"Where an inspector runs, programs trust the session's CA. Of the caller's environment the command gets\n"
	"PATH, LANG, TERM, TZ and what --env names; NETPAWL_SESSION, HOME=/workspace and what leads programs to\n"
	"certificates are added. NETPAWL_NOTICES names a read-only file with the session's notices. When the\n"
	"command ends, whatever it started is killed.\n\n"
	"Options:\n";

static void run_help_more(FILE *to)
{
	for (size_t i = 0; i < RUN_N_OPTIONS; i++)
		if (run_options[i].places & RUN_CLI)
			option_help(to, &run_options[i]);
	fputs(OPTIONS_COMMON
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

static struct option_spec option_spec_of(const struct run_option *option, struct run_options *o,
					 char name[static RUN_DASHED_SIZE])
{
	struct option_spec spec = { .name = run_option_dashed(option, name) };

	if (option->kind == RUN_FLAG)
		spec.flag = run_option_flag(option, o);
	else if (option->kind == RUN_TEXTS)
		spec.list = run_option_texts(option, o);
	else
		spec.value = run_option_word(option, o);
	if (spec.value == &o->session)
		spec.complete = COMPLETE_SESSION;
	else if (spec.value == &o->level)
		spec.complete = COMPLETE_LEVEL;
	else if (spec.value == &o->class)
		spec.complete = COMPLETE_CLASS;
	return spec;
}

int command_run(struct cli *cli, int argc, char **argv)
{
	static struct run run; /* too large for a stack */
	struct run_options *o = &run.options;
	static char names[RUN_N_OPTIONS][RUN_DASHED_SIZE]; /* completion has them after we returned */
	struct option_spec specs[RUN_N_OPTIONS];
	struct options options = {
		argv[0], run_help, specs, 0, .until_operand = true, .help_more = run_help_more,
	};
	int next, code;

	for (size_t i = 0; i < RUN_N_OPTIONS; i++)
		if (run_options[i].places & RUN_CLI)
			specs[options.count++] = option_spec_of(&run_options[i], o, names[i]);
	code = options_parse(&options, cli, argc, argv, &next);
	if (code != OPTIONS_GO_ON)
		return code;
	if (next == argc)
		return usage_error(argv[0], "it takes a command");
	if (!*argv[next])
		return usage_error(argv[0], "the command is empty");
	if (o->keep && !o->session)
		return usage_error(argv[0], "--keep needs --session: the sandbox is kept for its next run");
	if (o->keep && (o->class || (o->isolation && strcmp(o->isolation, "full") != 0)))
		return usage_error(argv[0],
				   "--keep goes with neither --class, which is for one run, nor --isolation none");
	run.command = argv + next;
	run.socket = cli->socket;
	run.json = cli->json;
	code = run_perform(&run);
	if (run.has_ended)
		run_result_print(&run);
	if (run.has_ended && run.json)
		json_print(run_result_json(&run), code);
	else if (o->dry_run && code == CLI_OK)
		json_print(run_plan_json(&run), code);
	run_free(&run);
	return code;
}
