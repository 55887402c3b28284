/* SPDX-License-Identifier: MIT */
/* netpawl run -- COMMAND */
#include <errno.h>
#include <pwd.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>

#include "base/words.h"
#include "cli/api.h"
#include "cli/options.h"
#include "cli/output.h"
#include "limits.h"
#include "reason.h"
#include "sandbox/launch.h"
#include "sandbox/mounts.h"

extern char **environ;

struct run {
	const struct cli *cli;
	const char *session, *level, *user;
	char **command;
	char own_session[NP_SESSION_MAX + 64]; /* when none was named */
	bool session_ours;		       /* made by us and so for us to end */
	char *sandbox, *cgroup;
	char *notices; /* directory of the file with the session's notices; NULL: there is none */
	struct identity identity;
	char *hidden[4]; /* the daemon's directories, ends with NULL; owned */
};

static void help(FILE *to)
{
	fputs("Usage: netpawl run [OPTIONS] -- COMMAND [ARGUMENT...]\n\n"
	      "Runs a command in a new sandbox of a session. Needs root, and the daemon's network namespace.\n\n"
	      "The command sees the host's files, but not /run, devices, cgroups or other processes; /sys and\n"
	      "/proc/sys are read-only. It has no capability that reaches the kernel or the network stack, and\n"
	      "cannot gain any. Run as root it can still change the host's files: prefer --user.\n"
	      "Its environment is ours without NETPAWL_SOCKET and with NETPAWL_SESSION; NETPAWL_NOTICES names a\n"
	      "read-only file with the session's notices, see netpawl notices; with --user also HOME, USER and\n"
	      "LOGNAME are set. When it ends, whatever it started is killed.\n\n"
	      "Options:\n"
	      "  --session U/S    the session; made when missing, and it stays. Without it a new one is made\n"
	      "                   and ended afterwards\n"
	      "  --level LEVEL    raise the session to this level before the start\n"
	      "  --user USER      run as this user: a name, UID or UID:GID\n" OPTIONS_COMMON
	      "\n--json prints exit_code, session and sandbox on standard output when the command has ended.\n"
	      "\nExample:\n"
	      "  netpawl run --session alice/demo --user alice -- python3 agent.py --fast\n\n"
	      "Exit codes: the command's own; 128+N when signal N killed it; 125 netpawl failed before the\n"
	      "command started; 126 the command is not executable; 127 not found; 2 wrong usage.\n",
	      to);
}

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

/* What root in a sandbox must not reach: the record, the pins and the control socket. */
static void hidden_note(struct run *run, const json_t *health)
{
	static const char *const members[] = { "run_dir", "state_dir", "pin_dir" };
	size_t n = 0;

	for (size_t i = 0; i < ARRAY_SIZE(members); i++) {
		const char *path = member_text(health, members[i]);

		if (path)
			run->hidden[n++] = strdup(path);
	}
}

/* The gate looks at sockets in one network namespace: a sandbox elsewhere would be a promise not kept. */
static int netns_check(struct run *run)
{
	_api_answer_ struct api_answer health;
	const char *theirs;
	char ours[32];
	struct stat st;
	int code;

	code = api_call(run->cli, NULL, "GET", "/v1/health", NULL, &health);
	if (code != CLI_OK)
		return code;
	theirs = member_text(health.json, "netns");
	if (stat("/proc/self/ns/net", &st) < 0 || !theirs) {
		complain("run", NP_R_FAILED,
			 theirs ? "/proc/self/ns/net cannot be read"
				: "the daemon does not tell its network namespace");
		return CLI_REFUSED;
	}
	snprintf(ours, sizeof(ours), "%llu", (unsigned long long)st.st_ino);
	if (strcmp(ours, theirs) != 0) {
		complain_text("run", "netpawl and the daemon live in different network namespaces", "foreign_netns",
			      "start netpawl with nsenter --net, or in the daemon's namespace");
		return CLI_REFUSED;
	}
	hidden_note(run, health.json);
	return CLI_OK;
}

static int post(const struct run *run, const char *path, json_t *packed, struct api_answer *ret)
{
	json_t *body;
	int code = api_body(run->session, packed, &body);

	*ret = (struct api_answer){ 0 };
	return code == CLI_OK ? api_call(run->cli, run->session, "POST", path, body, ret) : code;
}

static int session_make(struct run *run)
{
	_api_answer_ struct api_answer made = { 0 }, raised = { 0 };
	_free_ char *path = api_session_path(run->session, "/datasets");
	int code;

	if (!path)
		return CLI_REFUSED;
	code = post(run, "/v1/sessions", json_pack("{s:s}", "session", run->session), &made);
	if (code != CLI_OK)
		return code;
	run->session_ours = run->session == run->own_session;
	if (!run->level)
		return CLI_OK;
	return post(run, path, json_pack("{s:s}", "level", run->level), &raised);
}

static int sandbox_make(struct run *run)
{
	_api_answer_ struct api_answer answer;
	int code = post(run, "/v1/sandboxes", json_pack("{s:s}", "session", run->session), &answer);
	const char *id, *cgroup, *notices;

	if (code != CLI_OK)
		return code;
	id = member_text(answer.json, "sandbox");
	cgroup = member_text(answer.json, "cgroup");
	if (!id || !cgroup) {
		complain(run->session, NP_R_FAILED, "the daemon's answer names no sandbox");
		return CLI_REFUSED;
	}
	run->sandbox = strdup(id);
	run->cgroup = strdup(cgroup);
	notices = member_text(answer.json, "notices");
	/* A convenience: the daemon may have failed to make it, and that is no reason not to run. */
	if (notices && strrchr(notices, '/') && access(notices, R_OK) == 0)
		run->notices = strndup(notices, (size_t)(strrchr(notices, '/') - notices));
	return run->sandbox && run->cgroup ? CLI_OK : CLI_REFUSED;
}

/* The daemon sweeps emptied sandboxes too, and may have been first. */
static void run_clean_up(struct run *run)
{
	cleanup(client_answer_free) struct client_answer answer = { 0 };
	cleanup(buf_free) struct buf path = BUF_INIT(4096);
	int err;

	if (run->sandbox) {
		buf_puts(&path, "/v1/sandboxes/");
		api_escape(&path, run->sandbox);
		err = path.data ? client_call(run->cli->socket, "DELETE", path.data, NULL, &answer) : -ENOMEM;
		if (err < 0)
			api_unreachable(run->cli, run->sandbox, err);
		else if (answer.status != 200 && answer.status != 404)
			api_refused(run->sandbox, answer.status, answer.body.data);
	}
	if (run->session_ours) {
		_free_ char *session = api_session_path(run->session, "");
		_api_answer_ struct api_answer ended = { 0 };

		if (session)
			api_call(run->cli, run->session, "DELETE", session, NULL, &ended);
	}
	free(run->sandbox);
	free(run->cgroup);
	free(run->notices);
}

static int environment_set(const struct run *run)
{
	int err = unsetenv("NETPAWL_SOCKET") | setenv("NETPAWL_SESSION", run->session, 1);

	err |= run->notices ? setenv("NETPAWL_NOTICES", MOUNTS_NOTICES "/notices.ndjson", 1)
			    : unsetenv("NETPAWL_NOTICES");
	if (run->user && run->identity.name[0])
		err |= setenv("USER", run->identity.name, 1) | setenv("LOGNAME", run->identity.name, 1);
	if (run->user && run->identity.home[0])
		err |= setenv("HOME", run->identity.home, 1);
	return err ? -ENOMEM : 0;
}

static void result_print(const struct run *run, const struct launch_result *result)
{
	_json_ json_t *json = json_pack("{s:i,s:s,s:s}", "exit_code", result->exit_code, "session", run->session,
					"sandbox", run->sandbox);

	if (json && json_dumpf(json, stdout, JSON_COMPACT) == 0)
		fputc('\n', stdout);
}

/* Signals are held from here on: none of them may end us between making the sandbox and removing it. */
static int run_sandboxed(struct run *run)
{
	struct launch_result result = { .exit_code = LAUNCH_FAILED };
	struct launch_plan plan = { .argv = run->command, .keep_stdout = run->cli->json };
	sigset_t mask;

	launch_hold_signals(&mask);
	if (session_make(run) == CLI_OK && sandbox_make(run) == CLI_OK) {
		if (environment_set(run) < 0) {
			complain("run", NP_R_FAILED, strerror(ENOMEM));
		} else {
			plan.cgroup = run->cgroup;
			plan.envp = environ;
			plan.notices = run->notices;
			plan.mask = &mask;
			plan.hidden = (const char *const *)run->hidden;
			plan.identity = run->user ? &run->identity : NULL;
			launch_run(&plan, &result);
			if (!result.started)
				output_clean_line(stderr, "netpawl: run: %s", result.problem);
		}
		if (run->cli->json)
			result_print(run, &result);
	}
	run_clean_up(run);
	return result.exit_code;
}

static int user_find(struct run *run)
{
	int err = run->user ? identity_find(run->user, &run->identity) : 0;

	if (err == 0)
		return 0;
	complain_text(run->user,
		      err == -ENOENT  ? "there is no such user"
		      : err == -E2BIG ? "the user is in too many groups"
				      : "that is neither a user's name nor UID or UID:GID",
		      reason_token(NP_R_BAD_FIELD), err == -ENOENT ? "a uid without a name is written UID:GID" : NULL);
	return err;
}

int command_run(struct cli *cli, int argc, char **argv)
{
	struct run run = { .cli = cli };
	const struct option_spec specs[] = {
		{ "session", .value = &run.session },
		{ "level", .value = &run.level },
		{ "user", .value = &run.user },
	};
	const struct options options = { argv[0], help, specs, ARRAY_SIZE(specs), .until_operand = true };
	int next, code;

	code = options_parse(&options, cli, argc, argv, &next);
	if (code != OPTIONS_GO_ON)
		return code;
	if (next == argc)
		return usage_error(argv[0], "it takes a command");
	run.command = argv + next;
	if (geteuid() != 0) {
		complain("run", NP_R_NOT_PERMITTED, NULL);
		return LAUNCH_FAILED;
	}
	if (user_find(&run) < 0 || netns_check(&run) != CLI_OK)
		return LAUNCH_FAILED;
	if (!run.session)
		session_name_make(&run);
	return run_sandboxed(&run);
}
